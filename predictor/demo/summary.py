"""What the day came to, for people and for programs."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import rich.box
import rich.console
import rich.table

from models.fleet import scorecard
from models.signals import Signal
from predictor.demo import film, scenario
from predictor.demo.cluster import Autoscaled
from predictor.demo.graded import Graded
from predictor.demo.stage import Stage

JUDGED = "0.95"


@dataclasses.dataclass(frozen=True, slots=True)
class Measure:
    """One row: its name, how to show it, and by how much two values have to differ to count as different."""

    name: str
    key: str
    show: Callable[[float | None], str]
    margin: float = 0.0
    judged: bool = True


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f} s" if value < 1 else f"{value:.1f} s"


MEASURES = (
    Measure("requests", "requests", _count, judged=False),
    Measure(f"first token later than {scenario.TTFT_OBJECTIVE:g} s", "missed_ttft", _count),
    Measure("no answer", "rejected", _count),
    Measure("replica-hours, warming included", "replica_hours", lambda v: f"{v:.1f}", margin=0.05),
    Measure("GPU cost", "cost_dollars", lambda v: f"${v:,.0f}", judged=False),
    Measure("replicas started", "starts", _count),
    Measure("first token, median", "ttft_p50_seconds", _seconds, judged=False),
    Measure("first token, 99 of 100 within", "ttft_p99_seconds", _seconds, margin=0.02, judged=False),
    Measure("between tokens, 99 of 100 within", "itl_p99_seconds", _seconds, judged=False),
    Measure("most waiting at once", "peak_queue", _count, judged=False),
)


def result(stage: Stage) -> dict[str, Any]:
    """The day as one object, ready for JSON."""
    both = {"floorcast": _side(stage.floorcast), "hpa": _side(stage.hpa)}
    for name, side in both.items():
        side["peak_queue"] = max((getattr(frame, name).queued for frame in stage.frames), default=0)
    return {
        "seed": stage.options.seed,
        "simulated_seconds": stage.seconds,
        "owner": str(stage.options.owner),
        "rival": str(stage.options.rival),
        "ttft_objective_seconds": scenario.TTFT_OBJECTIVE,
        **both,
        "promise_kept": promise_kept(both["floorcast"], both["hpa"]),
        "verdict": verdict(both["floorcast"], both["hpa"]),
    }


def verdict(floorcast: dict[str, Any], hpa: dict[str, Any]) -> str:
    """Which fleet did better on which measure, in words; no measure is passed over."""
    better: list[str] = []
    worse: list[str] = []
    equal: list[str] = []
    for measure in MEASURES:
        if measure.judged:
            difference = floorcast[measure.key] - hpa[measure.key]
            group = equal if abs(difference) <= measure.margin else better if difference < 0 else worse
            said = f"{measure.show(floorcast[measure.key])} against {measure.show(hpa[measure.key])}"
            group.append(f"{measure.name} ({said})")
    parts = [("Floorcast did better on", better), ("The HPA did better on", worse), ("No difference on", equal)]
    return ". ".join(f"{words} {', '.join(group)}" for words, group in parts if group) + "."


def promise_kept(floorcast: dict[str, Any], hpa: dict[str, Any]) -> bool:
    """Whether Floorcast's fleet has fewer misses at no more replica-hours: what the demo is there to show."""
    misses = [side["missed_ttft"] + side["rejected"] for side in (floorcast, hpa)]
    return bool(misses[0] < misses[1] and floorcast["replica_hours"] <= hpa["replica_hours"])


def grades(found: Mapping[Signal, Graded]) -> dict[str, Any]:
    """How the forecasts did by the service's own count and by a back-test of the same day, ready for JSON."""
    return {
        str(signal): {
            "scored": one.scored,
            "coverage": {f"{q:g}": round(share, 4) for q, share in one.coverage.items()},
            "backtest": {f"{q:g}": round(share, 4) for q, share in one.backtested.items()},
        }
        for signal, one in found.items()
    }


def graded(signal: str, grade: dict[str, Any]) -> str:
    """The same as a sentence, of the quantile that usually holds a floor."""
    own, other = (100 * grade[which][JUDGED] for which in ("coverage", "backtest"))
    return (
        f"p{100 * float(JUDGED):g} of {signal.replace('_', ' ')} covered {own:.1f} % of {grade['scored']} forecasts;"
        f" a back-test of the same day says {other:.1f} %."
    )


def table(outcome: dict[str, Any]) -> rich.table.Table:
    """The two fleets side by side."""
    hours = outcome["simulated_seconds"] / 3600
    shown = rich.table.Table(title=f"{hours:.4g} h simulated, seed {outcome['seed']}", box=rich.box.SIMPLE_HEAD)
    shown.add_column("since midnight")
    shown.add_column("Floorcast", justify="right")
    shown.add_column(f"HPA on {outcome['rival']}", justify="right")
    for measure in MEASURES:
        shown.add_row(measure.name, *(measure.show(outcome[side][measure.key]) for side in ("floorcast", "hpa")))
    return shown


def show(console: rich.console.Console, outcome: dict[str, Any]) -> None:
    """Prints the table and the verdict."""
    console.print(table(outcome))
    kept = "Fewer misses at no more replica-hours" if outcome["promise_kept"] else "NOT fewer misses at no more hours"
    console.print(f"{kept}. {outcome['verdict']}", highlight=False)
    for signal, grade in outcome.get("forecast", {}).items():
        console.print(graded(signal, grade), highlight=False)


def _side(side: Autoscaled) -> dict[str, Any]:
    card = scorecard.of(side.deployment)
    return {
        "requests": card.requests,
        "missed_ttft": film.late(card),
        "rejected": film.unserved(card),
        "finished": card.finished,
        "in_flight": card.in_system,
        "attainment": card.attainment,
        "replica_hours": round(card.replica_hours, 3),
        "cost_dollars": round(card.cost(scenario.GPU_PRICE), 2),
        "starts": card.costs.starts,
        "wasted_starts": card.costs.wasted,
        "hours_below_demand": round(card.seconds_below / 3600, 4),
        "ttft_p50_seconds": card.ttft.quantile(0.5),
        "ttft_p99_seconds": card.ttft.quantile(0.99),
        "itl_p99_seconds": card.itl.quantile(0.99),
    }
