"""What a simulation comes to, in a sentence: who is cheapest, who is as cheap, and who never gets there.

Amounts are compared as they are shown: two that read alike are not told apart.
"""

import dataclasses
from collections.abc import Sequence

MORE = "--sweep 2"  # what to add where every policy was run at its default setting only


@dataclasses.dataclass(frozen=True, slots=True)
class Price:
    """What a policy costs at the attainment.

    Attributes:
        policy: its name.
        amount: money; None where no run of it gets there.
        at_most: whether its cheapest run is that good already, so that it may cost less at another setting.
        runs: settings it was run at.
        given: whether its setting is the user's own, which no sweep turns.
    """

    policy: str
    amount: float | None
    at_most: bool = False
    runs: int = 1
    given: bool = False

    @property
    def to_be_had(self) -> bool:
        """Whether anybody can run it: an oracle knows the arrivals in advance."""
        return not self.policy.startswith("oracle")


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    """What is asked of the policies: share of requests (0..1) with their first token within so many seconds."""

    attainment: float
    objective: float

    def __str__(self) -> str:
        return f"{self.attainment * 100:.4g} % of the requests within {self.objective:.2g} s"


def money(amount: float, currency: str) -> str:
    """As in every table."""
    return f"{currency}{amount:,.2f}"


def sentence(prices: Sequence[Price], goal: Goal, currency: str) -> str:
    """The sentence to act on; the policies in the order they were run in."""
    defaults_only = all(one.runs == 1 and not one.given for one in prices)
    reached = sorted((one for one in prices if one.amount is not None), key=lambda one: _shown(one, currency)[0])
    real, dreams = [one for one in reached if one.to_be_had], [one for one in reached if not one.to_be_had]
    if not real:
        return _nobody(dreams, goal, currency, defaults_only=defaults_only)
    least = _shown(real[0], currency)[0]
    best = [one for one in real if _shown(one, currency)[0] == least]
    rest = "; ".join(f"{one.policy} {_told(one, currency)}" for one in real[len(best) :])
    among = " of what was run" if any(one.at_most for one in real) else ""  # at another setting it may be another one
    parts = [f"For {goal}, {_leaders(best, currency, among)}{f' ({rest})' if rest else ''}."]
    cheaper = [one for one in dreams if _shown(one, currency)[0] < least]
    if cheaper:
        parts.append(f"Only {_named(cheaper[:1], currency)} is cheaper, which knows the arrivals: nobody can have it.")
    never = [one.policy for one in prices if one.amount is None]
    if never:
        parts.append(_never(never, defaults_only=defaults_only))
    return " ".join(parts)


def _leaders(best: Sequence[Price], currency: str, among: str) -> str:
    amount = _told(dataclasses.replace(best[0], at_most=any(one.at_most for one in best)), currency)
    others = [one.policy for one in best[1:]]
    if not others:
        return f"{best[0].policy} is cheapest{among}: {amount}"
    listed = " and ".join(filter(None, (", ".join(others[:-1]), others[-1])))
    return f"{best[0].policy} is as cheap as {listed}: {amount}{' each' if len(others) > 1 else ''}"


def _never(names: Sequence[str], *, defaults_only: bool) -> str:
    if defaults_only:
        return f"Never there at the default setting, the only one that was run ({MORE} runs more): {', '.join(names)}."
    return f"Never there at the settings that were run: {', '.join(names)}."


def _nobody(dreams: Sequence[Price], goal: Goal, currency: str, *, defaults_only: bool) -> str:
    sweep = f", other settings ({MORE})" if defaults_only else ""
    text = f"No policy that was run gets {goal}: give it more replicas (--maximum){sweep} or a longer objective."
    if dreams:
        text += f" {_named(dreams[:1], currency)} does, which knows the arrivals: nobody can have it."
    return text


def _named(prices: Sequence[Price], currency: str) -> str:
    return ", ".join(f"{one.policy} ({_told(one, currency)})" for one in prices)


def _told(price: Price, currency: str) -> str:
    return f"{'at most ' if price.at_most else ''}{_shown(price, currency)[1]}"


def _shown(price: Price, currency: str) -> tuple[float, str]:
    """The amount as it is compared and as it is read."""
    amount = price.amount if price.amount is not None else float("inf")
    return round(amount, 2), money(amount, currency)
