"""The memory of a simulated pool: one record a pool, one a replica slot, one a request in flight.

Compiled code works on these records in place, so a pool is resumed by calling again with the same arrays. Memory grows
with the slots and with the requests in flight, not with the requests served.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MOST_SEQUENCES = 1024  # sequences in one batch at most: the heap of a replica has this many places
NOTHING = -1  # no request, no slot
NEVER = np.inf
ID_BITS = 24  # requests in flight at most 2^24: a heap entry is (step << ID_BITS) | request

# Latency histograms: logarithmic bins of 1 %, 0.1 ms to 10,000 s; the quantile of a bin is off by half a per cent.
BINS = 1852
BIN_FLOOR = 1e-4
BINS_PER_E = 1 / np.log(1.01)
PAGE_BUCKETS = 24  # buckets of a vLLM page's histogram at most, +Inf included

# Phases of a replica slot.
EMPTY, STARTING, READY, DRAINING = 0, 1, 2, 3
# What a replica's engine is doing.
IDLE, STRETCH, MIXED = 0, 1, 2
# Where a request is.
FREE, ROUTED, WAITING, RUNNING, RETRYING = 0, 1, 2, 3, 4
# Routers.
ROUND_ROBIN, LEAST_IN_FLIGHT, LEAST_TOKENS, PREFIX_AFFINE = 0, 1, 2, 3
# Why the compiled loop returned.
REACHED, NEED_ARRIVALS, NEED_REQUESTS, NEED_DEADLINES, LIFE = 0, 1, 2, 3, 4
# What happened to a replica (the `life` record).
BECAME_READY, CRASHED, GONE = 0, 1, 2

# Columns of a scrape.
(
    AT, POD, SEEN_RUNNING, SEEN_WAITING, SEEN_KV, SEEN_ARRIVED, SEEN_FINISHED, SEEN_PROMPT, SEEN_TOKENS, SEEN_PREEMPTED,
    SEEN_TTFT_SUM, SEEN_ITL_SUM, SEEN_E2E_SUM,
) = range(13)  # fmt: skip
SEEN_TTFT = 13
SEEN_ITL = SEEN_TTFT + PAGE_BUCKETS
SEEN_E2E = SEEN_ITL + PAGE_BUCKETS
SCRAPE_COLUMNS = SEEN_E2E + PAGE_BUCKETS

FLOAT, INT, SHORT = np.float64, np.int64, np.int32


def _fields(kind: type, names: str) -> list[tuple[str, type]]:
    return [(name, kind) for name in names.split()]


# Constants first. Seconds, tokens and blocks throughout; `fixed` is a + overhead, `w4` is w^4, both of the step law.
POOL = np.dtype(
    [
        *_fields(FLOAT, "fixed w4 d b c q alpha0"),
        ("base", FLOAT, (MOST_SEQUENCES + 1,)),  # seconds of a decode step by sequences, KV reads not included
        *_fields(
            INT, "blocks shift mask budget max_seqs reserve_prompt ahead prefix router leaves slots retries router_room"
        ),
        *_fields(FLOAT, "objective timeout backoff scrape_interval scrape_loss affinity_slack"),
        *_fields(INT, "seed window keeps_log"),
        # Where the arrays are, and how long those are that grow with the requests; see `view`.
        *_fields(INT, "replicas_at requests_at when_at load_at retries_at deadlines_at scrapes_at router_scrapes_at"),
        *_fields(INT, "life_at cache_at homes_at log_at requests_size deadlines_size log_size"),
        ("bucket_of", np.int8, (3, BINS)),  # page bucket by bin: TTFT, ITL, end to end
        # State of the pool.
        *_fields(FLOAT, "now area area_at below below_at router_scrape_at last_end"),
        *_fields(
            INT,
            "next_arrival sequence arrived finished rejected timed_out failed resent met late in_system ready blocked"
            " is_below preempted tokens first_tokens gaps peak_running peak_waiting recomputed hit_tokens",
        ),
        *_fields(INT, "router_head router_tail router_waiting free_head requests_used"),
        *_fields(INT, "retry_count ring_head ring_count"),
        *_fields(INT, "turn life_count router_scrapes"),
        *_fields(FLOAT, "ttft_sum itl_sum e2e_sum tpot_sum"),
        *_fields(INT, "tpot_count"),
        ("ttft", INT, (BINS,)),
        ("itl", INT, (BINS,)),
        ("e2e", INT, (BINS,)),
    ],
    align=True,
)

REPLICA = np.dtype(
    [
        *_fields(INT, "phase command slot pod mode rows"),
        *_fields(FLOAT, "ends life_at scrape_at began mute_until square seen_until crash_at drain_until"),
        # The batch. `step` counts engine steps; sequences finish at a step, the heap is ordered by it.
        *_fields(
            INT,
            "step planned running decoding partial completing free context run_tail prefill owed_blocks owed_places",
        ),
        *_fields(INT, "wait_head wait_tail waiting waiting_tokens blocked last_pick"),
        # Counters of its page.
        *_fields(INT, "arrived finished prompt_tokens tokens preempted scrapes allocated"),
        *_fields(FLOAT, "ttft_sum itl_sum e2e_sum"),
        ("phases", INT, (64,)),  # decoding sequences by the step (mod block) at which they need a block
        ("ttft", INT, (PAGE_BUCKETS,)),
        ("itl", INT, (PAGE_BUCKETS,)),
        ("e2e", INT, (PAGE_BUCKETS,)),
        ("heap", INT, (MOST_SEQUENCES,)),
    ],
    align=True,
)

# `arrived` is the client's first try, `sent` the present one; `target` what is to be prefilled, `done` of it.
REQUEST = np.dtype(
    [
        *_fields(FLOAT, "arrived sent queued first last"),
        *_fields(INT, "finish sequence session"),
        *_fields(SHORT, "prompt output made target done shared next prev state replica tries met log"),
    ],
    align=True,
)

LIFE_EVENT = np.dtype([("at", FLOAT), ("slot", INT), ("kind", INT)], align=True)
LOG = np.dtype([("first", FLOAT), ("end", FLOAT), ("scheduled", FLOAT), ("preempted", INT)], align=True)
CACHED = np.dtype([("session", INT), ("tokens", INT), ("stored", INT)], align=True)
MOST_LIFE_EVENTS = 256
CACHE_PLACES = 4096  # sessions a replica remembers the prefix of, by hash; a power of two


class Memory(NamedTuple):
    """All arrays of a pool.

    `trees` has shape (2, 2 x leaves): when each slot has its next event, and how loaded it is for the router.
    `scrapes` has shape (slots, window, SCRAPE_COLUMNS), `router_scrapes` (window, 4).
    `deadlines` is a ring of requests by the time at which their clients give up, shape (n,).
    """

    pool: npt.NDArray[np.void]
    replicas: npt.NDArray[np.void]
    requests: npt.NDArray[np.void]
    trees: npt.NDArray[np.float64]
    retries: npt.NDArray[np.void]
    deadlines: npt.NDArray[np.void]
    scrapes: npt.NDArray[np.float64]
    router_scrapes: npt.NDArray[np.float64]
    life: npt.NDArray[np.void]
    cache: npt.NDArray[np.void]
    homes: npt.NDArray[np.int64]
    log: npt.NDArray[np.void]


class Chunk(NamedTuple):
    """Arrivals: times in seconds, tokens, session (or -1), prompt tokens shared with the session's last turn."""

    times: npt.NDArray[np.float64]
    prompts: npt.NDArray[np.int64]
    outputs: npt.NDArray[np.int64]
    sessions: npt.NDArray[np.int64]
    shared: npt.NDArray[np.int64]
