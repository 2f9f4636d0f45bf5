"""Writes variations of a folder of traces: other loads of the same kind, for `python -m benchmarks.forecast --traces`.

No choice was made on them, but they are made of traces on which choices were made: what holds on the traces and not on
their variations was fitted to them.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.forecast import traces
from benchmarks.forecast.traces import Trace
from models.series import Floats

SPARSE = 3.0  # requests a step on average: counts that are mostly chance
DAY = 86400.0


def main() -> int:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecast.varied", description=__doc__)
    parser.add_argument("traces", type=Path, help="folder of traces")
    parser.add_argument("out", type=Path, help="folder for their variations")
    parser.add_argument("--seed", type=int, default=1, help="what is drawn goes by it")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    loaded = traces.read(asked.traces, lambda said: print(said, file=sys.stderr))
    for name, step, counts in variations(loaded, np.random.default_rng(asked.seed)):
        rows = pd.DataFrame({"minute": np.arange(len(counts)) * step / traces.MINUTE, "requests": counts})
        rows.to_csv(asked.out / f"{name}.csv", index=False)
    return 0


def variations(loaded: list[Trace], rng: np.random.Generator) -> Iterator[tuple[str, float, Floats]]:
    """Name, step in seconds and counts of each variation of the traces that are long enough to be averaged.

    `sparse`: thinned to three requests a step. `back`: backwards in time, so that surges ebb away at once and come up
    slowly. `day`: the busiest single day. `with`: added to the next trace on the same grid, scaled to the same mean.
    """
    long = [trace for trace in loaded if trace.long and np.nanmean(trace.counts) > 0]
    for i, trace in enumerate(long):
        yield f"sparse_{trace.name}", trace.step, thinned(trace.counts, SPARSE / np.nanmean(trace.counts), rng)
        yield f"back_{trace.name}", trace.step, trace.counts[::-1]
        points = round(DAY / trace.step)
        if len(trace.counts) >= 2 * points and points * trace.step >= DAY and trace.step <= traces.MINUTE:
            days = trace.counts[: len(trace.counts) // points * points].reshape(-1, points)
            yield f"day_{trace.name}", trace.step, days[np.argmax(np.nansum(days, axis=1))]
        following = next((other for other in long[i + 1 :] if other.step == trace.step), None)
        if following:
            both = min(len(trace.counts), len(following.counts))
            scale = np.nanmean(trace.counts) / np.nanmean(following.counts)
            yield (
                f"with_{trace.name}",
                trace.step,
                trace.counts[:both] + np.rint(following.counts[:both] * scale),
            )


def thinned(counts: Floats, share: float, rng: np.random.Generator) -> Floats:
    """Each request kept with a probability, at most one; unknown counts stay unknown."""
    out = np.full(len(counts), np.nan)
    known = ~np.isnan(counts)
    out[known] = rng.binomial(counts[known].astype(np.int64), min(share, 1.0))
    return out


if __name__ == "__main__":
    sys.exit(main())
