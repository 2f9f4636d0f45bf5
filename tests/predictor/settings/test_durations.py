import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictor.settings import durations

DURATION = pydantic.TypeAdapter(durations.Duration)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30), ("5m", 300), ("1h", 3600), ("14d", 1_209_600), ("1w", 604_800), ("250ms", 0.25),
        ("1h30m", 5400), ("1.5h", 5400), (" 10s ", 10), ("30", 30), ("0", 0), (30, 30), (0.5, 0.5),
    ],
)  # fmt: skip
def test_durations_read_as_people_write_them(text: str | float, seconds: float) -> None:
    assert DURATION.validate_python(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["5 minutes", "s", "", "1x", "1h 30m", "--5s", True, None, [], float("nan"), 1e400])
def test_anything_else_is_refused_and_says_how_to_write_one(text: object) -> None:
    with pytest.raises(pydantic.ValidationError, match="30s, 5m, 1h30m, 14d"):
        DURATION.validate_python(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (30, "30s"), (90, "90s"), (120, "2m"), (691_200, "8d"), (604_800, "1w"), (0.1, "0.1s")],
)
def test_seconds_are_written_in_the_largest_unit_that_fits(seconds: float, text: str) -> None:
    assert durations.written(seconds) == text


@given(st.integers(0, 10**8))
def test_what_is_written_reads_back_as_the_same(seconds: int) -> None:
    assert durations.parse(durations.written(float(seconds))) == seconds
