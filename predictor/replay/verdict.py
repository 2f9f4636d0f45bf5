"""Whether a floor pays on a history, in a sentence; docs/backtest.md explains the rule and its limits."""

import dataclasses
import enum
import math
from collections.abc import Iterable, Sequence

import numpy as np

from models.forecasting.settings import DAY
from predictor.replay.economics import Economics, Kind, Option
from predictor.settings import durations

OBJECTIVE = 0.99  # share of the load that should find enough replicas, as in the benchmark
MATTERS = 0.03  # share of replica-hours; another week would move the figures by as much
CAUGHT = 0.5  # share of what reactive alone leaves unmet; a floor that catches less is no remedy


class Answer(enum.StrEnum):
    """What the sentence says."""

    PAYS = "a floor pays"
    HELPS = "a floor helps, but not enough"
    NOT = "a floor does not pay"
    UNSAID = "it cannot be said"


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one target at one warm-up.

    Attributes:
        target: whose.
        warm_up: seconds.
        answer: in a word.
        sentence: for a person to act on.
        floor: the floor it is about; None where there is none to speak of.
        instead: the cheapest way without a floor that does as well.
    """

    target: str
    warm_up: float
    answer: Answer
    sentence: str
    floor: Option | None = None
    instead: Option | None = None


def of(economics: Economics, *, objective: float = OBJECTIVE, only: float | None = None) -> Verdict:
    """The verdict on one target.

    Args:
        economics: every way and what became of it.
        objective: share of the load that should find enough replicas.
        only: the one probability to consider; None for all.
    """
    floors = [one for one in economics.of(Kind.FLOOR) if only is None or abs(one.setting - only) < 1e-9]  # noqa: PLR2004
    unsaid = _unsaid(economics)
    if unsaid:
        return _verdict(economics, Answer.UNSAID, unsaid)
    if economics.reactive.met >= objective:
        return _verdict(economics, Answer.NOT, _enough_already(economics, objective))
    reaching = [one for one in floors if one.met >= objective]
    if reaching:
        best = min(reaching, key=lambda one: one.paid)
        return _against(economics, best, objective)
    return _short_of(economics, max(floors, key=lambda one: one.met), objective)


def headline(verdicts: Sequence[Verdict]) -> str:
    """One sentence over all targets and warm-ups."""
    if len(verdicts) == 1:
        return verdicts[0].sentence
    if not verdicts:
        return "It cannot be said whether a floor pays: no load could be turned into replicas."
    answers = [answer for answer in Answer if any(one.answer is answer for one in verdicts)]
    several = len({one.target for one in verdicts}) > 1
    parts = [f"{answer} {_places(verdicts, answer, several=several)}" for answer in answers]
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _places(verdicts: Iterable[Verdict], answer: Answer, *, several: bool, most: int = 6) -> str:
    """Where an answer holds, and at which quantile where that matters: "for chat (5m warm-up) at p90"."""
    names = []
    for one in verdicts:
        if one.answer is answer:
            warm_up = durations.written(one.warm_up)
            place = f"for {one.target} (warm-up {warm_up})" if several else f"with a warm-up of {warm_up}"
            at = f" at {name(one.floor)}" if one.floor and answer in (Answer.PAYS, Answer.HELPS) else ""
            names.append(f"{place}{at}")
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _unsaid(economics: Economics) -> str:
    if economics.step > economics.warm_up:
        return (
            f"It cannot be said whether a floor pays: the points are {durations.written(economics.step)} apart and a"
            f" warm-up takes {durations.written(economics.warm_up)}, so what happens within one is not seen; record the"
            " load at least once a minute."
        )
    if economics.hours * 3600 < DAY:
        return (
            f"It cannot be said yet whether a floor pays: only {economics.hours:.1f} h could be judged; come back with"
            " two days of history, better eight."
        )
    if not np.nansum(economics.need[economics.scored_from :]) > 0:
        return (
            f"It cannot be said whether a floor pays: no load came in the {economics.hours:.1f} h that could be judged;"
            " is this the right series or column?"
        )
    return ""


def _enough_already(economics: Economics, objective: float) -> str:
    reactive = economics.reactive
    return (
        f"A floor does not pay here: without one {reactive.met:.2%} of the load already finds enough replicas"
        f" ({objective * 100:g}% wanted), since it hardly ever grows by a replica within a warm-up of"
        f" {durations.written(economics.warm_up)}."
    )


def _against(economics: Economics, best: Option, objective: float) -> Verdict:
    """A floor reaches the objective: is anything simpler as cheap?"""
    instead = _cheapest(economics, objective)
    gain = 1 - best.paid / instead.paid
    reached = (
        f"it raises the share of the load that finds enough replicas from {economics.reactive.met:.1%} to"
        f" {best.met:.1%}"
    )
    if gain >= MATTERS:
        text = (
            f"A floor pays here, at {name(best)}: {reached} for {_more(best, economics.reactive)} replica-hours;"
            f" without it {name(instead)} would be needed, at {instead.paid / best.paid - 1:.0%} more."
        )
        return _verdict(economics, Answer.PAYS, text, best, instead)
    comparison = "cheaper" if gain < -MATTERS else "as good"
    text = (
        f"A floor does not pay here: {name(instead)} is {comparison}"
        f" ({instead.paid:,.0f} replica-hours against {best.paid:,.0f} at {name(best)}, for {objective * 100:g}% of the"
        f" load): {_why(instead)}."
    )
    return _verdict(economics, Answer.NOT, text, best, instead)


def _short_of(economics: Economics, best: Option, objective: float) -> Verdict:
    """No floor reaches the objective."""
    reactive = economics.reactive
    caught = 1 - (1 - best.met) / max(1 - reactive.met, 1e-12)
    instead = _cheapest(economics, best.met)
    surges = (
        f"the forecast does not see the load's surges coming in time: even at {name(best)} a floor lifts the share of"
        f" the load that finds enough replicas only from {reactive.met:.1%} to {_rounded_down(best.met):.2%}"
        f" ({objective * 100:g}% wanted), for {_more(best, reactive)} replica-hours"
    )
    if caught >= CAUGHT and best.paid < instead.paid * (1 - MATTERS):
        text = (
            f"A floor at {name(best)} helps here but is not enough: {surges}; the same without it takes"
            f" {name(instead)}, {instead.paid / best.paid - 1:.0%} more replica-hours; shorten the warm-up as"
            " well, or let work wait that can."
        )
        return _verdict(economics, Answer.HELPS, text, best, instead)
    cure = _cheapest(economics, objective)
    # Where it does catch them, what it is not worth is said by what does as much.
    as_much = f"; {name(instead)} does as much for {_more(instead, reactive)}" if caught >= CAUGHT else ""
    text = (
        f"A floor does not pay here: {surges}{as_much}; only {name(cure)} would reach it, for {_more(cure, reactive)}"
        " replica-hours, or a shorter warm-up."
    )
    return _verdict(economics, Answer.NOT, text, best, cure)


def _rounded_down(share: float) -> float:
    """To a hundredth of a percent, so that what just misses an objective is not written as reaching it."""
    return math.floor(share * 1e4) / 1e4


def _cheapest(economics: Economics, met: float) -> Option:
    """The cheapest way without a floor that meets as much; the one that meets most where none does."""
    others = [one for one in economics.options if one.kind is not Kind.FLOOR]
    enough = [one for one in others if one.met >= met - 1e-9]
    return min(enough, key=lambda one: one.paid) if enough else max(others, key=lambda one: one.met)


def name(option: Option) -> str:
    """A way, for a person."""
    match option.kind:
        case Kind.FLOOR:
            return f"p{option.setting * 100:g}"
        case Kind.MINIMUM:
            return f"a fixed minimum of {option.setting:.0f} replicas"
        case Kind.HEADROOM:
            return f"{option.setting:.0%} headroom on every replica"
        case Kind.REACTIVE:
            return "the autoscaler alone"


def _why(instead: Option) -> str:
    if instead.kind is Kind.MINIMUM:
        return "the load is flat, its surges unannounced, or the fleet small, so that there is little to foresee"
    if instead.kind is Kind.HEADROOM:
        return "the load rises in proportion to itself and slowly, so that a constant margin is ahead of it"
    return "the load hardly ever outgrows what is there"


def _more(option: Option, base: Option) -> str:
    share = option.paid / max(base.paid, 1e-12) - 1
    return f"{share:.0%} more" if share < 1 else f"{share + 1:.1f} times the"


def _verdict(
    economics: Economics, answer: Answer, sentence: str, best: Option | None = None, instead: Option | None = None
) -> Verdict:
    return Verdict(economics.target, economics.warm_up, answer, sentence, best, instead)
