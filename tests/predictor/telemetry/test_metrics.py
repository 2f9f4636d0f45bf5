import dataclasses
import re

import numpy as np
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from models.capacity.sizing import NoPlan
from models.forecasting.forecast import NotEnoughHistory
from models.policy.decision import Reason
from models.series import Series
from models.signals import Cause, Known, Signal, Unknown
from predictor.cluster import watching
from predictor.cluster.resources import PODS
from predictor.ports import Refused, Written
from predictor.telemetry import table
from predictor.telemetry.metrics import Metrics
from tests.predictor.telemetry import examples

TARGET = examples.target()
KEY = TARGET.key
STEADY = dataclasses.replace(examples.forecast(345.0), steady={0.5: 120.0, 0.95: 300.0})
ROOMY = dataclasses.replace(examples.PLANS, outlooks={Signal.IN_FLIGHT: (STEADY, examples.forecast(645.0))})


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"floorcast_{name}", labels)


def everything() -> Metrics:
    """Metrics that have been told one of everything."""
    metrics = Metrics()
    metrics.targets([TARGET])
    metrics.tick("slow", seconds=0.1, outcome="finished", at=1000.0)
    metrics.late("slow")
    metrics.readings(TARGET, {Signal.ARRIVALS: Known(8, 990), Signal.WAITING: Unknown(Cause.STALE)}, now=1000.0)
    metrics.workload(TARGET, dataclasses.replace(examples.STUCK, rival="argocd-controller"))
    metrics.warm_up(TARGET, 80.0, measured=True)
    metrics.plans(TARGET, ROOMY)
    metrics.decision(TARGET, examples.decision())
    metrics.row(examples.entry())
    metrics.journal(lost=0)
    figures = {"missed": {"mean": -40.0, "error": 6.0}, "cost": {"mean": 9.0, "error": 1.0}}
    metrics.counterfactual(KEY, {"ran": figures, "difference": figures})
    metrics.write(TARGET, Written(4))
    metrics.write(TARGET, Refused("Conflict", "changed"))
    metrics.discovered(1, refused=["llm/broken"])
    metrics.history_loaded(complete=True)
    metrics.configuration(at=900.0)
    metrics.configuration_changed(refused=False, at=1000.0)
    metrics.history(TARGET, Signal.ARRIVALS, Series(0, 30, np.array([np.nan, 1, 2, np.nan, 3])))
    metrics.source_call("read", seconds=0.2, unknown=[(Signal.WAITING, Cause.STALE)])
    metrics.leader(leads=True)
    metrics.recommended(KEY, 4)
    metrics.watches([watching.Report(watching.What(PODS, "llm"), objects=3, age=1.5, lists=1, watches=4)])
    metrics.cluster_call("observe", seconds=0.2, refused=[Refused("Forbidden", "")])
    return metrics


def test_names_follow_the_conventions() -> None:
    assert len({metric.name for metric in table.TABLE}) == len(table.TABLE)
    for metric in table.TABLE:
        assert re.fullmatch(r"floorcast_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind is table.Kind.COUNTER)
        assert ("seconds" in metric.unit) == ("_seconds" in metric.name), metric.name
        assert metric.text.endswith("."), metric.name
        assert "target" not in metric.labels[1:], metric.name


def test_every_metric_of_the_table_is_exposed_once_it_was_told_and_no_other() -> None:
    metrics = everything()
    metrics.workload(examples.target("gone"), Refused("NotFound", ""))
    text = generate_latest(metrics.registry).decode()
    told = {family.name: family for family in text_string_to_metric_families(text) if family.samples}
    ours = {name for name in told if name.startswith("floorcast_")}
    assert ours == {metric.name.removesuffix("_total") for metric in table.TABLE}
    for metric in table.TABLE:
        family = told[metric.name.removesuffix("_total")]
        assert family.type == metric.kind
        labels = set(family.samples[0].labels) - {"le"}
        assert labels == set(metric.labels)


def test_an_unknown_signal_is_named_with_its_cause_and_has_no_value() -> None:
    metrics = Metrics()
    metrics.readings(TARGET, {Signal.WAITING: Known(3.0, 990.0)}, now=1000.0)
    assert value(metrics, "signal_value", target=KEY, signal="waiting") == 3
    assert value(metrics, "signal_age_seconds", target=KEY, signal="waiting") == 10
    for cause in (Cause.STALE, Cause.SOURCE_DOWN):
        metrics.readings(TARGET, {Signal.WAITING: Unknown(cause)}, now=1010.0)
        assert value(metrics, "signal_value", target=KEY, signal="waiting") is None
        assert value(metrics, "signal_unknown", target=KEY, signal="waiting", cause=cause) == 1
    assert value(metrics, "signal_unknown", target=KEY, signal="waiting", cause="stale") is None
    metrics.readings(TARGET, {Signal.WAITING: Known(0.0, 1020.0)}, now=1020.0)
    assert value(metrics, "signal_value", target=KEY, signal="waiting") == 0
    assert value(metrics, "signal_unknown", target=KEY, signal="waiting", cause="source_down") is None


def test_forecast_and_plan_are_shown_by_horizon() -> None:
    metrics = everything()
    about = {"target": KEY, "signal": "in_flight"}
    assert value(metrics, "forecast_level", **about) == 100
    assert value(metrics, "forecast_quantile", **about, horizon="raising", quantile="0.95") == 150
    assert value(metrics, "forecast_quality", **about, quality="young") == 1
    assert value(metrics, "forecast_quality", **about, quality="seasoned") == 0
    assert value(metrics, "horizon_seconds", target=KEY, horizon="lowering") == 645
    assert value(metrics, "plan_replicas", target=KEY, horizon="raising", need="in_flight") == 4  # 150 / 40
    assert value(metrics, "plan_replicas", target=KEY, horizon="raising", need="arrivals") == 3  # 100 / 40


def test_room_is_shown_beside_the_forecast_while_it_is_planned_for_and_goes_when_the_forecast_is_followed() -> None:
    metrics = Metrics()
    metrics.targets([TARGET])
    metrics.plans(TARGET, ROOMY)
    about = {"target": KEY, "signal": "in_flight", "quantile": "0.95"}
    assert value(metrics, "forecast_quantile", **about, horizon="raising") == 150
    assert value(metrics, "forecast_room", **about, horizon="raising") == 300
    assert value(metrics, "forecast_room", **about, horizon="lowering") is None
    metrics.plans(TARGET, examples.PLANS)
    assert value(metrics, "forecast_room", **about, horizon="raising") is None
    assert value(metrics, "forecast_quantile", **about, horizon="raising") == 150
    metrics.plans(TARGET, ROOMY)
    metrics.targets([])
    assert value(metrics, "forecast_room", **about, horizon="raising") is None


def test_what_became_of_the_forecasts_is_shown_by_quantile_and_counted() -> None:
    metrics = everything()
    about = {"target": KEY, "signal": "in_flight"}
    before = value(metrics, "forecast_scored_total", **about)
    metrics.plans(TARGET, examples.PLANS)
    assert value(metrics, "forecast_scored_total", **about) == before + 3
    assert value(metrics, "forecast_coverage_ratio", **about, quantile="0.95") == 0.925
    assert value(metrics, "forecast_pinball", **about, quantile="0.95") == 1.5
    metrics.plans(TARGET, dataclasses.replace(examples.PLANS, grades={}))
    assert value(metrics, "forecast_coverage_ratio", **about, quantile="0.95") is None


def test_without_a_forecast_or_a_plan_the_old_figures_go() -> None:
    metrics = everything()
    none = NotEnoughHistory(1, 2)
    metrics.plans(
        TARGET,
        dataclasses.replace(examples.PLANS, outlooks={Signal.IN_FLIGHT: (none, none)}, raising=NoPlan("no history")),
    )
    about = {"target": KEY, "signal": "in_flight"}
    assert value(metrics, "forecast_available", **about, horizon="raising") == 0
    assert value(metrics, "forecast_level", **about) is None
    assert value(metrics, "forecast_quality", **about, quality="young") is None
    assert value(metrics, "forecast_quantile", **about, horizon="raising", quantile="0.95") is None
    assert value(metrics, "forecast_room", **about, horizon="raising", quantile="0.95") is None
    assert value(metrics, "plan_replicas", target=KEY, horizon="raising", need="in_flight") is None
    assert value(metrics, "plan_replicas", target=KEY, horizon="lowering", need="in_flight") == 4


def test_a_workload_that_cannot_be_had_keeps_no_figures() -> None:
    metrics = everything()
    assert value(metrics, "replicas", target=KEY, state="warming") == 1
    assert value(metrics, "floor_observed_replicas", target=KEY) == 3
    metrics.workload(TARGET, Refused("Forbidden", "get hpa"))
    assert value(metrics, "workload_refused", target=KEY, reason="Forbidden") == 1
    for gone in ("floor_observed_replicas", "floor_base_replicas", "floor_decided_replicas", "replicas_asked"):
        assert value(metrics, gone, target=KEY) is None
    metrics.workload(TARGET, examples.WORKLOAD)
    assert value(metrics, "workload_refused", target=KEY, reason="Forbidden") is None


def test_what_is_wanted_beyond_the_maximum_is_shown() -> None:
    metrics = Metrics()
    metrics.decision(TARGET, examples.decision(Reason.CAPPED_AT_MAXIMUM, replicas=10, wanted=14))
    assert value(metrics, "floor_missing_replicas", target=KEY) == 4
    metrics.decision(TARGET, examples.decision(Reason.HELD_RECENT_NEED, replicas=5, wanted=6))
    assert value(metrics, "floor_missing_replicas", target=KEY) == 0
    metrics.decision(TARGET, examples.decision(Reason.HELD_NO_FORECAST, wanted=None))
    assert value(metrics, "floor_wanted_replicas", target=KEY) is None
    assert value(metrics, "decisions_total", target=KEY, reason="CappedAtMaximum") == 1


def test_the_last_tick_is_the_last_one_that_finished() -> None:
    metrics = Metrics()
    metrics.tick("fast", seconds=0.1, outcome="finished", at=1000.0)
    metrics.tick("fast", seconds=0.1, outcome="failed", at=1010.0)
    assert value(metrics, "last_tick_timestamp_seconds", loop="fast") == 1000
    assert value(metrics, "ticks_total", loop="fast", outcome="failed") == 1
    assert value(metrics, "tick_duration_seconds_count", loop="fast") == 2


def test_how_much_history_was_loaded() -> None:
    metrics = everything()
    assert value(metrics, "history_known_ratio", target=KEY, signal="arrivals") == pytest.approx(3 / 5)
    assert value(metrics, "history_span_seconds", target=KEY, signal="arrivals") == 90  # points 1 to 4, 30 s apart
    metrics.history(TARGET, Signal.ARRIVALS, Series(0, 30, np.array([])))
    assert value(metrics, "history_known_ratio", target=KEY, signal="arrivals") == 0


def test_series_of_a_target_that_is_gone_are_removed_and_others_stay() -> None:
    metrics = everything()
    other = examples.target("other")
    metrics.targets([TARGET, other])
    metrics.decision(other, examples.decision())
    metrics.targets([other])
    text = generate_latest(metrics.registry).decode()
    assert KEY not in text
    assert value(metrics, "decisions_total", target=other.key, reason="RaisedForForecast") == 1
    assert value(metrics, "mode_info", target=other.key, mode="shadow") == 1
    assert value(metrics, "ticks_total", loop="slow", outcome="finished") == 1


def test_labels_that_do_not_fit_the_table_are_an_error() -> None:
    metrics = Metrics()
    with pytest.raises(ValueError, match="has labels"):
        metrics._slate.put(table.REPLICAS, "llm/chat", value=1.0)


def test_two_sets_of_metrics_do_not_share_anything() -> None:
    everything()
    assert value(Metrics(), "ticks_total", loop="slow", outcome="finished") is None


def test_phases_of_a_warm_up_and_stuck_pods_are_told_and_go_with_what_they_told_of() -> None:
    metrics = Metrics()
    metrics.workload(TARGET, dataclasses.replace(examples.STUCK, rival="argocd-controller"))
    start = {"target": KEY, "gpu": "", "phase": "start", "quantile": "0.9"}
    assert value(metrics, "warm_up_phase_seconds", **start) == 15
    assert value(metrics, "warm_up_phase_seconds", **{**start, "gpu": "H100", "phase": "schedule"}) == 10
    assert value(metrics, "replicas_stuck", target=KEY, reason="Unschedulable") == 1
    metrics.workload(TARGET, dataclasses.replace(examples.WORKLOAD, warm_up=None))
    assert value(metrics, "warm_up_phase_seconds", **start) is None
    assert value(metrics, "replicas_stuck", target=KEY, reason="Unschedulable") is None


def test_a_refused_configuration_shows_until_another_one_is_taken_up() -> None:
    metrics = Metrics()
    metrics.configuration(at=900.0)
    metrics.configuration_changed(refused=True, at=1000.0)
    assert value(metrics, "config_reload_successful") == 0
    assert value(metrics, "config_reload_success_timestamp_seconds") == 900
    metrics.configuration_changed(refused=False, at=1100.0)
    assert value(metrics, "config_reload_successful") == 1
    assert value(metrics, "config_reload_success_timestamp_seconds") == 1100
    assert value(metrics, "config_reloads_total", outcome="refused") == 1
    assert value(metrics, "config_reloads_total", outcome="taken_up") == 1
