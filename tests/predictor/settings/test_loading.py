import os
from collections.abc import Callable
from pathlib import Path

import pytest

from models.capacity.sizes import Sizes
from models.policy.context import FloorSettings
from models.signals import Signal
from predictor import errors
from predictor.settings import convert, loading
from predictor.settings.root import PREFIX, Settings
from predictor.settings.sections import Level
from predictor.targets import Kind, Mode

ONE_TARGET = """
targets:
- namespace: llm
  name: chat
  capacity: {concurrency: 40}
"""


Loaded = Callable[..., Settings]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("FLOORCAST")]:
        monkeypatch.delenv(name)


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    def load(text: str = "", *flags: loading.Flag) -> Settings:
        path = tmp_path / "config.yaml"
        path.write_text(text)
        return loading.load(path, flags)

    return load


def test_an_empty_file_is_the_defaults(loaded: Loaded) -> None:
    assert loaded("") == Settings()
    assert loaded("# nothing\nloops:\ntargets:\nsource:\n  prometheus:\n") == Settings()


def test_shadow_is_the_default(loaded: Loaded) -> None:
    assert [target.mode for target in convert.targets(loaded(ONE_TARGET))] == [Mode.SHADOW]


def test_the_environment_outweighs_the_file_and_flags_outweigh_both(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "log: {level: error, format: console}\nloops: {fast: 5s, slow: 20s}"
    assert loaded(text).log.level is Level.ERROR
    monkeypatch.setenv(f"{PREFIX}LOG__LEVEL", "warning")
    monkeypatch.setenv(f"{PREFIX}LOOPS__FAST", "7s")
    assert loaded(text).log.level is Level.WARNING
    assert (loaded(text).loops.fast, loaded(text).loops.slow) == (7, 20)
    flagged = loaded(text, loading.Flag("--log-level", ("log", "level"), "debug"))
    assert (flagged.log.level, flagged.log.format) == (Level.DEBUG, "console")


def test_a_variable_reaches_a_key_named_by_a_word_of_the_language(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{PREFIX}DEFAULTS__QUANTILES__RAISE", "0.99")
    assert convert.targets(loaded(ONE_TARGET))[0].objectives.raise_quantile == 0.99


def test_targets_come_from_the_environment_as_json(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    target = '{"namespace": "llm", "name": "other", "capacity": {"concurrency": 8}}'
    monkeypatch.setenv(f"{PREFIX}TARGETS", f"[{target}]")
    assert [target.key for target in loaded(ONE_TARGET).targets] == ["llm/other"]


def test_variables_that_kubernetes_makes_for_a_service_called_floorcast_do_no_harm(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOORCAST_PORT", "tcp://10.0.0.1:8080")
    monkeypatch.setenv("FLOORCAST_SERVICE_HOST", "10.0.0.1")
    assert loaded("") == Settings()


def test_a_target_takes_the_defaults_key_by_key(loaded: Loaded) -> None:
    settings = loaded(
        """
        defaults:
          warm_up: 9m
          capacity: {concurrency: 24, throughput: 3}
          floor: {hold: 10m, step_up: 3}
        targets:
        - {namespace: llm, name: plain}
        - namespace: llm
          name: own
          kind: StatefulSet
          warm_up: 2m
          capacity: {concurrency: 8}
          floor: {step_up: null}
        - {namespace: llm, name: knee, capacity: {knee: 48, headroom: 0.2}, floor: null}
        """
    )
    plain, own, knee = convert.targets(settings)
    assert (plain.warm_up, plain.kind, own.warm_up, own.kind) == (540, Kind.DEPLOYMENT, 120, Kind.STATEFUL_SET)
    assert (plain.objectives.profile.concurrency, plain.objectives.profile.throughput) == (24, 3)
    assert (own.objectives.profile.concurrency, own.objectives.profile.throughput) == (8, 3)
    assert knee.objectives.profile.concurrency == pytest.approx(40)  # 48 / 1.2
    assert plain.objectives.floor == knee.objectives.floor == FloorSettings(hold=600, step_up=3)
    assert own.objectives.floor == FloorSettings(hold=600, step_up=None)


def test_load_tests_say_what_a_replica_carries_and_how_that_changes_with_sizes(loaded: Loaded) -> None:
    settings = loaded(
        """
        defaults: {capacity: {knee: 10, throughput: 9}}
        targets:
        - namespace: llm
          name: chat
          capacity:
            load_tests:
            - {prompt: 1800, output: 300, throughput: 1.4, concurrency: 48}
            - {prompt: 900, output: 300, throughput: 2.8, concurrency: 96}
            - {prompt: 1800, output: 150, throughput: 2.8, concurrency: 48}
        """
    )
    (chat,) = convert.targets(settings)
    given = chat.objectives.profile
    assert given.source == "load_test"
    assert (given.concurrency, given.throughput) == pytest.approx((48 / 1.2, 1.4 / 1.2))
    shorter = given.sized(Sizes(900, 150))
    assert (shorter.concurrency, shorter.throughput) == pytest.approx((96 / 1.2, 5.6 / 1.2))


@pytest.mark.parametrize(
    ("top", "own", "mode"),
    [
        ("shadow", "control", Mode.SHADOW),  # what the flag --mode shadow is for
        ("shadow", "null", Mode.SHADOW),
        ("control", "null", Mode.CONTROL),
        ("control", "shadow", Mode.SHADOW),
        ("control", "control", Mode.CONTROL),
    ],
)
def test_shadow_at_the_top_forbids_writing_whatever_a_target_says(
    loaded: Loaded, top: str, own: str, mode: Mode
) -> None:
    settings = loaded(f"mode: {top}\n{ONE_TARGET}  mode: {own}\n")
    assert convert.targets(settings)[0].mode is mode


def test_the_core_is_given_its_own_numbers(loaded: Loaded) -> None:
    settings = loaded("forecast: {zone: Europe/Berlin, score_window: 12h, seasons: [1d]}")
    forecast = convert.forecast(settings)
    assert str(forecast.zone) == "Europe/Berlin"
    assert forecast.score_window == 43200
    assert forecast.scores(60.0) == 360  # 12 h of origins every 2 min
    assert forecast.seasons == (86400,)


def test_an_event_begins_in_the_zone_of_the_forecast_unless_it_says_another(loaded: Loaded) -> None:
    settings = loaded(
        f"forecast: {{zone: Europe/Berlin}}\n{ONE_TARGET}  events:\n"
        "  - {name: launch, start: 2026-01-05T09:00, duration: 2h, every: 7d, ratio: 3}\n"
        "  - {name: batch, start: 2026-01-05T09:00Z, duration: 30m, value: 80, signal: in_flight}\n"
    )
    launch, batch = convert.targets(settings)[0].events
    assert (launch.name, launch.signals) == ("launch", (Signal.ARRIVALS, Signal.IN_FLIGHT))
    assert launch.event.start == 1767600000.0  # 8:00 UTC
    assert (launch.event.every, launch.event.ratio) == (604800.0, 3.0)
    assert batch.event.start == launch.event.start + 3600
    assert (batch.event.value, batch.signals) == (80.0, (Signal.IN_FLIGHT,))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("duration: 1h", "needs ratio or value"),
        ("duration: 1h, ratio: 2, value: 3", "needs ratio or value"),
        ("duration: 1h, value: 3", "no signal"),
        ("duration: 1h, value: 3, signal: waiting", "not forecast"),
        ("duration: 2h, ratio: 2, every: 1h", "less than duration"),
    ],
)
def test_an_event_that_says_too_little_is_refused(loaded: Loaded, wrong: str, says: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=says):
        loaded(f"{ONE_TARGET}  events: [{{name: launch, start: 2026-01-05T09:00, {wrong}}}]\n")


def test_settings_and_core_have_the_same_defaults(loaded: Loaded) -> None:
    target = convert.targets(loaded(ONE_TARGET))[0]
    assert target.objectives == type(target.objectives)(profile=target.objectives.profile)
    forecast = convert.forecast(Settings())
    assert forecast == type(forecast)(zone=forecast.zone)


def test_the_file_is_found_by_variable_then_by_its_usual_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.ConfigurationError, match="neither config/floorcast"):
        loading.find()
    (tmp_path / "config").mkdir()
    (tmp_path / "config/floorcast.yaml").touch()
    assert str(loading.find()) == "config/floorcast.yaml"
    monkeypatch.setenv(loading.PATH_VARIABLE, "other.yaml")
    assert str(loading.find()) == "other.yaml"


def test_the_quantile_may_come_from_money(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        """
        gpu_pools: {h100: 16}
        targets:
        - {namespace: llm, name: money, capacity: {knee: 48}, quantiles: {miss_cost: 66.5, idle_cost: 3.5}}
        - {namespace: llm, name: cheap, capacity: {knee: 48}, quantiles: {miss_cost: 4, idle_cost: 4}}
        - {namespace: llm, name: unknown, gpus: {budget: 8, pool: h100}}
        """
    )
    money, cheap, unknown = convert.targets(loading.load(path))
    assert (money.objectives.raise_quantile, money.objectives.lower_quantile) == (pytest.approx(0.95), 0.5)
    assert (cheap.objectives.raise_quantile, cheap.objectives.lower_quantile) == (0.5, 0.5)
    assert (unknown.objectives.profile.concurrency, unknown.objectives.profile.source) == (8, "default")
    assert (unknown.gpus.budget, unknown.gpus.pool, unknown.gpus.pooled) == (8, "h100", 16)
