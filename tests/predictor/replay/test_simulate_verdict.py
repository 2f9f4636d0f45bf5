"""The sentence a simulation ends with: who is cheapest, ties, what nobody can have, and what was not run."""

import pytest

from predictor.replay import simulateverdict
from predictor.replay.simulateverdict import Goal, Price

GOAL = Goal(0.99, 0.5)


def sentence(*prices: Price) -> str:
    return simulateverdict.sentence(prices, GOAL, "$")


def swept(policy: str, amount: float | None) -> Price:
    return Price(policy, amount, runs=3)


def test_the_cheapest_is_named_with_amounts_as_in_the_table() -> None:
    told = sentence(swept("keda-load", 1234.5), swept("floorcast", 10.5), swept("static", 40.0))
    assert told == (
        "For 99 % of the requests within 0.5 s, floorcast is cheapest: $10.50 (static $40.00; keda-load $1,234.50)."
    )


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ((10.504,), "floorcast is as cheap as a: $10.50 (far $20.00)."),
        ((10.496, 10.5), "floorcast is as cheap as a and b: $10.50 each (far $20.00)."),
        ((10.5, 10.5, 10.5), "floorcast is as cheap as a, b and c: $10.50 each (far $20.00)."),
    ],
)
def test_who_reads_alike_is_as_cheap(others: tuple[float, ...], told: str) -> None:
    alike = [swept(name, amount) for name, amount in zip("abc", others, strict=False)]
    found = sentence(swept("floorcast", 10.5), *alike, swept("far", 20.0))
    assert told in found
    assert "cheapest" not in found


def test_a_cent_is_a_difference() -> None:
    assert "a is cheapest: $10.49 (floorcast $10.50)" in sentence(swept("floorcast", 10.5), swept("a", 10.49))


def test_an_oracle_is_never_the_cheapest_and_said_to_be_one_where_it_is_cheaper() -> None:
    told = sentence(swept("floorcast", 10.0), swept("oracle", 8.0), swept("oracle-99", 7.5))
    assert "floorcast is cheapest: $10.00." in told
    assert "Only oracle-99 ($7.50) is cheaper, which knows the arrivals: nobody can have it." in told
    assert "oracle" not in sentence(swept("floorcast", 10.0), swept("oracle", 10.001))


def test_what_only_an_oracle_reaches_nobody_reaches() -> None:
    told = sentence(swept("floorcast", None), swept("oracle", 8.0))
    assert told.startswith("No policy that was run gets 99 %")
    assert "oracle ($8.00) does, which knows the arrivals: nobody can have it" in told
    assert "--sweep" not in told


def test_never_holds_for_the_settings_that_were_run() -> None:
    told = sentence(swept("floorcast", 10.0), swept("keda-load", None))
    assert told.endswith("Never there at the settings that were run: keda-load.")


def test_with_the_defaults_alone_a_sweep_is_proposed() -> None:
    told = sentence(Price("floorcast", 10.0, at_most=True), Price("static", 12.0, at_most=True), Price("keda", None))
    assert "floorcast is cheapest of what was run: at most $10.00 (static at most $12.00)." in told
    assert told.endswith("at the default setting, the only one that was run (--sweep 2 runs more): keda.")
    assert "other settings (--sweep 2)" in sentence(Price("keda", None))


def test_a_tie_of_which_one_may_be_cheaper_is_at_most_so_much() -> None:
    told = sentence(swept("floorcast", 10.0), Price("a", 10.0, at_most=True, runs=3))
    assert "floorcast is as cheap as a: at most $10.00." in told


def test_a_sweep_is_not_offered_to_who_gave_the_settings() -> None:
    told = sentence(Price("hpa-queue=5", 10.0, given=True), Price("static=3", None, given=True))
    assert told.endswith("Never there at the settings that were run: static=3.")
    assert "--sweep" not in sentence(Price("static=3", None, given=True))
