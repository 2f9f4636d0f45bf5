"""The Grafana dashboard: what it shows, as data; every metric by its row of the table, so that none is misnamed."""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any

from predictor.telemetry import table
from predictor.telemetry.table import Metric

WIDTH = 24  # columns of Grafana's grid
SOURCE = {"type": "prometheus", "uid": "${source}"}
OF_TARGET = 'target=~"$target"'
WITHIN = (
    "and the band of the largest value; dashed, where there is any, the room that is planned for instead of the band."
)


@dataclasses.dataclass(frozen=True, slots=True)
class Curve:
    """One query and what its series are called; `step` draws it as steps, as counts of replicas are."""

    expression: str
    legend: str
    step: bool = False
    dashed: bool = False

    @property
    def looks(self) -> list[dict[str, Any]]:
        """What of it Grafana draws in another way than usual."""
        dashes = {"fill": "dash", "dash": [8, 6]}
        return [
            *([{"id": "custom.lineInterpolation", "value": "stepAfter"}] if self.step else []),
            *([{"id": "custom.lineStyle", "value": dashes}] if self.dashed else []),
        ]


@dataclasses.dataclass(frozen=True, slots=True)
class Panel:
    """A picture of some curves; sizes in Grafana's grid."""

    title: str
    text: str
    curves: tuple[Curve, ...]
    unit: str = "short"
    width: int = WIDTH // 2
    height: int = 8


def _of(metric: Metric, more: str = "", *, own: str = OF_TARGET) -> str:
    """A selector of the metric's series."""
    matchers = ",".join(one for one in (own if "target" in metric.labels else "", more) if one)
    return f"{metric.name}{{{matchers}}}" if matchers else metric.name


def _rate(metric: Metric, by: str, more: str = "") -> str:
    return f"sum by ({by}) (rate({_of(metric, more)}[$__rate_interval]))"


def _band(signal: str) -> tuple[Curve, ...]:
    quantiles, room = (
        _of(metric, f'signal="{signal}",horizon="raising"') for metric in (table.FORECAST_QUANTILE, table.FORECAST_ROOM)
    )
    return (
        Curve(_of(table.SIGNAL_VALUE, f'signal="{signal}"'), "{{target}} now"),
        Curve(_of(table.FORECAST_LEVEL, f'signal="{signal}"'), "{{target}} level"),
        Curve(quantiles, "{{target}} p{{quantile}} of the largest within a warm-up"),
        Curve(room, "{{target}} p{{quantile}} room kept all the time, planned for instead", dashed=True),
    )


PANELS = (
    Panel(
        "Floor and replicas",
        "What stands, what Floorcast decided, the user's own minimum, the maximum, and what is ready.",
        (
            Curve(_of(table.FLOOR_OBSERVED), "{{target}} floor", step=True),
            Curve(_of(table.FLOOR_DECIDED), "{{target}} decided", step=True),
            Curve(_of(table.FLOOR_BASE), "{{target}} own minimum", step=True),
            Curve(_of(table.FLOOR_MAXIMUM), "{{target}} maximum", step=True),
            Curve(_of(table.REPLICAS_ASKED), "{{target}} asked for", step=True),
            Curve(_of(table.REPLICAS), "{{target}} {{state}}", step=True),
        ),
        width=WIDTH,
        height=10,
    ),
    Panel("Arrivals and their forecast", f"Requests a second, {WITHIN}", _band("arrivals")),
    Panel("In flight and its forecast", f"Requests in flight, {WITHIN}", _band("in_flight")),
    Panel(
        "Reasons",
        "Decisions by the one reason each carries.",
        (Curve(_rate(table.DECISIONS, "target, reason"), "{{target}} {{reason}}"),),
        unit="ops",
    ),
    Panel(
        "What each need asks for",
        "Replicas by kind of need, before any rule or limit.",
        (Curve(_of(table.PLAN_REPLICAS, 'horizon="raising"'), "{{target}} {{need}}", step=True),),
    ),
    Panel(
        "Coverage",
        "Share of the last day's forecasts that held: each curve should lie near its quantile.",
        (Curve(_of(table.FORECAST_COVERAGE), "{{target}} {{signal}} p{{quantile}}"),),
        unit="percentunit",
    ),
    Panel(
        "Warm-up by phase",
        "p90 of each phase of the starts seen, what is planned with, and how far ahead is looked.",
        (
            Curve(_of(table.WARM_UP_PHASE, 'quantile="0.9"'), "{{target}} {{gpu}} {{phase}}"),
            Curve(_of(table.WARM_UP), "{{target}} planned with, {{source}}"),
            Curve(_of(table.HORIZON), "{{target}} horizon for {{horizon}}"),
        ),
        unit="s",
    ),
    Panel(
        "Limits",
        "Replicas wanted beyond what is allowed, and what allows no more: the smallest limit binds.",
        (
            Curve(_of(table.FLOOR_MISSING), "{{target}} missing", step=True),
            Curve(_of(table.LIMIT), "{{target}} {{limit}}", step=True),
            Curve(_of(table.REPLICAS_STUCK), "{{target}} stuck: {{reason}}", step=True),
        ),
    ),
    Panel(
        "Leader",
        "The replica of Floorcast that may write; one line at 1, the others at 0.",
        (Curve(_of(table.LEADER), "{{instance}}", step=True),),
    ),
    Panel(
        "Not known",
        "Signals that are unknown, by cause; nothing is lowered for what is not known.",
        (Curve(_of(table.SIGNAL_UNKNOWN, 'cause!="not_asked"'), "{{target}} {{signal}} {{cause}}", step=True),),
    ),
    Panel(
        "Refused",
        "Writes that were refused, targets that are left alone, by reason, and who keeps changing a floor back.",
        (
            Curve(_of(table.FLOOR_CONTESTED), "{{target}} contested by {{manager}}", step=True),
            Curve(_rate(table.WRITES_REFUSED, "target, reason"), "{{target}} write: {{reason}}"),
            Curve(_of(table.WORKLOAD_REFUSED), "{{target}} left alone: {{reason}}", step=True),
        ),
    ),
    Panel(
        "Loops",
        "Time a tick takes, 95th percentile, and ticks left out.",
        (
            Curve(
                f"histogram_quantile(0.95, sum by (le, loop) (rate({table.TICK_DURATION.name}_bucket"
                "[$__rate_interval])))",
                "{{loop}} p95",
            ),
            Curve(_rate(table.LATE_TICKS, "loop"), "{{loop}} left out a second"),
        ),
        unit="s",
    ),
)


def text() -> str:
    """The dashboard as Grafana imports it."""
    dashboard = {
        "uid": "floorcast",
        "title": "Floorcast",
        "tags": ["floorcast"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_source(), _targets()]},
        "panels": list(_laid_out(PANELS)),
    }
    return json.dumps(dashboard, indent=2) + "\n"


def _source() -> dict[str, Any]:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _targets() -> dict[str, Any]:
    query = f"label_values({table.MODE.name}, target)"
    return {
        "name": "target",
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": "targets"},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }


def _laid_out(panels: Iterable[Panel]) -> Iterator[dict[str, Any]]:
    """The panels in rows, from left to right."""
    x, y, tallest = 0, 0, 0
    for number, panel in enumerate(panels, start=1):
        if x + panel.width > WIDTH:
            x, y, tallest = 0, y + tallest, 0
        place = {"x": x, "y": y, "w": panel.width, "h": panel.height}
        x, tallest = x + panel.width, max(tallest, panel.height)
        yield {"id": number, "gridPos": place, **_panel(panel)}


def _panel(panel: Panel) -> dict[str, Any]:
    overrides = [
        {"matcher": {"id": "byFrameRefID", "options": chr(ord("A") + number)}, "properties": curve.looks}
        for number, curve in enumerate(panel.curves)
        if curve.looks
    ]
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": overrides},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": SOURCE,
                "expr": curve.expression,
                "legendFormat": curve.legend,
            }
            for number, curve in enumerate(panel.curves)
        ],
    }
