"""Who met the objective, by an example that one can add up by head."""

import dataclasses

import pytest

from models.fleet import scorecard
from models.fleet.cluster import Cluster
from models.fleet.deployment import Deployment
from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.scorecard import Scorecard
from models.fleet.warmup import FixedWarmUp
from tests.models.fleet.cases import PLAIN, requests

# One request at a time: 11 ms to the first of 10 tokens, 10 ms for each further one, 101 ms in all.
SINGLE = dataclasses.replace(PLAIN, max_num_seqs=1)


def at(*times: float, timeout: float | None = None) -> list[Scorecard]:
    """One replica, three requests at 0, 1 and 60 ms, and 50 ms to the first token asked for."""
    settings = PoolSettings(ttft_objective=0.05, timeout=timeout, scrape_interval=None)
    target = Deployment(Pool(SINGLE, settings), FixedWarmUp(0.0), seed=(1,))
    cluster = Cluster({"chat": target})
    cluster.scale("chat", 1)
    target.pool.offer(requests((0.0, 100, 10), (0.001, 100, 10), (0.06, 100, 10)))
    cards = []
    for time in times:
        cluster.advance(time)
        cards.append(scorecard.of(target))
    return cards


def test_nothing_is_judged_before_the_first_token_or_the_objective_is_due() -> None:
    (card,) = at(0.005)
    assert (card.requests, card.in_system, card.met, card.missed) == (2, 2, 0, 0)
    assert card.attainment is None


def test_who_waits_longer_than_the_objective_is_missed_before_being_served() -> None:
    """At 49 ms the second has waited 48 ms; at 80 ms 79, and the third 20."""
    early, later = at(0.049, 0.08)
    assert (early.met, early.overdue, early.attainment) == (1, 0, 1.0)
    assert (later.requests, later.met, later.overdue, later.late) == (3, 1, 1, 0)
    assert later.attainment == 0.5


def test_who_was_overdue_is_late_once_served_and_counts_once() -> None:
    """The second is overdue from 51 to 112 ms and then late, the third from 110 to 213: each is missed once."""
    cards = at(0.105, 0.115, 0.2, 0.23, 1.0)
    assert [(card.overdue, card.late) for card in cards] == [(1, 0), (1, 1), (1, 1), (0, 2), (0, 2)]
    assert [card.missed for card in cards] == [1, 2, 2, 2, 2]
    assert [card.attainment for card in cards] == [0.5, *[pytest.approx(1 / 3)] * 4]
    assert cards[-1].finished == cards[-1].met + cards[-1].missed == 3


def test_who_gives_up_is_missed_though_no_longer_waiting() -> None:
    """The second gives up at 81 ms; the third is served right after the first, in 101 + 11 - 60 = 52 ms: late."""
    waiting, gone = at(0.08, 1.0, timeout=0.08)
    assert (waiting.overdue, waiting.timed_out) == (1, 0)
    assert (gone.met, gone.late, gone.overdue, gone.timed_out) == (1, 1, 0, 1)
    assert gone.attainment == pytest.approx(1 / 3)
