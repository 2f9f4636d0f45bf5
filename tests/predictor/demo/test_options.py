import pytest

from predictor.demo.options import DemoOptions, Output, Rival
from predictor.errors import ConfigurationError
from predictor.ports import Owner


def test_by_default_a_day_passes_in_ten_minutes_on_the_page() -> None:
    options = DemoOptions()
    assert options.speed == 144
    assert (options.output, options.owner, options.rival) == (Output.PAGE, Owner.HPA, Rival.QUEUE)


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("hours", 0.0),
        ("hours", float("nan")),
        ("hours", 200.0),
        ("minutes", -1.0),
        ("seed", -1),
        ("days", 9),
        ("port", 70000),
    ],
)
def test_nonsense_is_refused_with_flag_value_and_remedy(flag: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=f"--{flag} is .*: must be .*; ") as refused:
        DemoOptions(**{flag: value})
    assert refused.value.exit_code == 2


def test_every_problem_gets_a_line() -> None:
    with pytest.raises(ConfigurationError) as refused:
        DemoOptions(hours=0, minutes=0)
    assert len(refused.value.lines) == 2
