import json
import re

from predictor.chart import dashboard
from predictor.telemetry import table

MADE = json.loads(dashboard.text())
METRICS = {metric.name: metric for metric in table.TABLE}


def expressions() -> list[str]:
    return [target["expr"] for panel in MADE["panels"] for target in panel["targets"]]


def test_every_metric_is_one_of_the_table_and_every_label_one_of_its_own() -> None:
    assert len(expressions()) > 20
    for expression in expressions():
        for name, matchers in re.findall(r"(floorcast_\w+)(?:\{([^}]*)\})?", expression):
            metric = METRICS[name.removesuffix("_bucket")]
            used = set(re.findall(r"(\w+)(?:=~|!=|=)", matchers))
            assert used <= set(metric.labels), expression


def test_legends_name_labels_that_the_series_have() -> None:
    for panel in MADE["panels"]:
        for target in panel["targets"]:
            known = {label for name in re.findall(r"floorcast_\w+", target["expr"]) for label in labels(name)}
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= {*known, "instance"}, target


def labels(name: str) -> tuple[str, ...]:
    return METRICS[name.removesuffix("_bucket")].labels


def test_what_an_operator_asks_first_is_there() -> None:
    shown = " ".join(expressions())
    for metric in (
        table.FORECAST_QUANTILE,
        table.FORECAST_ROOM,
        table.FLOOR_OBSERVED,
        table.REPLICAS,
        table.DECISIONS,
        table.FORECAST_COVERAGE,
        table.WARM_UP_PHASE,
        table.LEADER,
    ):
        assert metric.name in shown


def test_the_room_that_is_planned_for_is_a_dashed_line_over_the_forecast() -> None:
    panels = [one for one in MADE["panels"] if one["title"].endswith("forecast")]
    assert len(panels) == 2
    for panel in panels:
        (room,) = (one["refId"] for one in panel["targets"] if table.FORECAST_ROOM.name in one["expr"])
        (look,) = panel["fieldConfig"]["overrides"]
        assert look["matcher"] == {"id": "byFrameRefID", "options": room}
        assert look["properties"] == [{"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 6]}}]


def test_panels_lie_side_by_side_and_none_on_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in MADE["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= dashboard.WIDTH
        taken |= cells
    assert len({panel["id"] for panel in MADE["panels"]}) == len(MADE["panels"])
