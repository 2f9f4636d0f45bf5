"""From bounds to figures."""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.forecast import baselines
from benchmarks.forecast.baselines import Task
from benchmarks.forecast.ours import Bounds
from benchmarks.forecast.traces import Trace, largest_ahead
from models.forecasting import scoring
from models.series import Floats

BLOCK = 3 * 3600.0
JUDGED = (0.9, 0.95, 0.99)
SAMPLES = 10  # origins at which slow baselines are asked: an automatic ARIMA takes half a second each


@dataclasses.dataclass(frozen=True)
class Figures:
    """One trace at one warm-up.

    Attributes:
        trace: name.
        held_out: whether no choice was made on it.
        averaged: whether it is long enough to count in averages.
        warm_up: seconds.
        scored: forecasts.
        coverage: probability -> share covered.
        worst_block: least coverage of p95 in any three hours.
        pinball: probability -> mean loss, requests per step.
        ratios: baseline -> probability -> pinball over that of the baseline, on the same origins.
        baseline_coverage: baseline -> probability -> share covered.
    """

    trace: str
    held_out: bool
    averaged: bool
    warm_up: float
    scored: int
    coverage: dict[float, float]
    worst_block: float
    pinball: dict[float, float]
    ratios: dict[str, dict[float, float]]
    baseline_coverage: dict[str, dict[float, float]]


def figures(
    traces: Sequence[Trace],
    warm_ups: Sequence[float],
    mine: Bounds,
    probabilities: tuple[float, ...],
    *,
    slow: bool,
    tell: Callable[[str], None],
) -> list[Figures]:
    """Figures of every trace and warm-up."""
    asked = {name: make for name, make in baselines.SLOW.items() if slow and name not in baselines.missing()}
    for name in baselines.missing() if slow else ():
        tell(f"{name} is not installed: left out")
    out = []
    for trace in traces:
        tell(f"baselines on {trace.name}")
        level = baselines.levels(trace)
        for warm_up in warm_ups:
            steps = max(round(warm_up / trace.step), 1)
            task = Task(trace, steps, largest_ahead(trace, steps), probabilities)
            out.append(_figures(task, warm_up, mine[trace.name, warm_up], level, asked))
    return out


def _figures(
    task: Task, warm_up: float, mine: Floats, level: Floats, slow: dict[str, Callable[[Task, list[int]], Floats]]
) -> Figures:
    trace = task.trace
    came = np.where(trace.origins >= trace.scored_from, task.came[trace.origins], np.nan)
    others = {name: make(task, level)[trace.origins] for name, make in baselines.FAST.items()}
    if trace.long and slow:
        known = np.flatnonzero(~np.isnan(came))
        places = known[np.linspace(0, len(known) - 1, min(SAMPLES, len(known))).astype(np.intp)]
        for name, make in slow.items():
            others[name] = np.full_like(mine, np.nan)
            others[name][places] = make(task, trace.origins[places].tolist())
    block = max(round(BLOCK / trace.step), 1)
    q95 = task.probabilities.index(0.95)
    return Figures(
        trace=trace.name,
        held_out=trace.held_out,
        averaged=trace.long,
        warm_up=warm_up,
        scored=int(np.count_nonzero(~np.isnan(came))),
        coverage=_named(task, scoring.coverage(came, mine)),
        worst_block=scoring.worst_block(came, mine[:, q95], block),
        pinball=_named(task, scoring.pinball(came, mine, task.probabilities)),
        ratios={name: _named(task, _ratio(task, came, mine, bounds)) for name, bounds in others.items()},
        baseline_coverage={name: _named(task, scoring.coverage(came, bounds)) for name, bounds in others.items()},
    )


def _ratio(task: Task, came: Floats, mine: Floats, other: Floats) -> Floats:
    both = np.where(np.isnan(mine) | np.isnan(other), np.nan, came[:, None])
    own = [scoring.pinball(both[:, j], mine[:, [j]], (q,))[0] for j, q in enumerate(task.probabilities)]
    his = [scoring.pinball(both[:, j], other[:, [j]], (q,))[0] for j, q in enumerate(task.probabilities)]
    # Where the baseline errs by nothing (a trace that is silent for days), no ratio says anything.
    least = 1e-9 * (1 + float(np.nanmax(came, initial=0.0)))
    return np.array([a / b if b > least else np.nan for a, b in zip(own, his, strict=True)])


def _named(task: Task, values: Floats) -> dict[float, float]:
    return dict(zip(task.probabilities, np.asarray(values).tolist(), strict=True))


@dataclasses.dataclass(frozen=True)
class Summary:
    """Averages over traces that are long enough; of each trace, its warm-ups are averaged first.

    Attributes:
        traces: how many.
        coverage: probability -> mean.
        least: probability -> least coverage of a trace.
        worst_block: mean over traces and warm-ups of the worst three hours of p95.
        ratios: baseline -> probability -> geometric mean of pinball ratios.
        overall: baseline -> geometric mean over p90, p95 and p99 as well.
    """

    traces: int
    coverage: dict[float, float]
    least: dict[float, float]
    worst_block: float
    ratios: dict[str, dict[float, float]]
    overall: dict[str, float]


def summary(found: Sequence[Figures]) -> Summary | None:
    """Summary of figures, None when no trace is long enough."""
    counted = [f for f in found if f.averaged and f.scored]
    if not counted:
        return None
    names = sorted({f.trace for f in counted})
    each = {
        q: [float(np.mean([f.coverage[q] for f in counted if f.trace == name])) for name in names]
        for q in counted[0].coverage
    }
    baselines_known = sorted({name for f in counted for name in f.ratios})
    ratios = {
        name: {q: _geometric([f.ratios[name][q] for f in counted if name in f.ratios]) for q in JUDGED}
        for name in baselines_known
    }
    return Summary(
        traces=len(names),
        coverage={q: float(np.mean(values)) for q, values in each.items()},
        least={q: min(values) for q, values in each.items()},
        worst_block=float(np.nanmean([f.worst_block for f in counted])),
        ratios=ratios,
        overall={name: _geometric(list(by.values())) for name, by in ratios.items()},
    )


def _geometric(values: Sequence[float]) -> float:
    good = [math.log(v) for v in values if v > 0 and math.isfinite(v)]
    return math.exp(sum(good) / len(good)) if good else math.nan
