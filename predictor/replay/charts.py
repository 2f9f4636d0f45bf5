"""The report's figures. Times are not stored with every curve: a start and a distance are enough on a grid."""

import dataclasses
import json
from typing import Any

import numpy as np
import plotly.graph_objects as go

from models.series import Floats
from predictor.replay.backtest import Replayed
from predictor.replay.economics import Economics, Kind
from predictor.replay.scores import Scores
from predictor.replay.verdict import Verdict

BLUE, ORANGE, GREEN, GREY = "#3b82f6", "#f97316", "#10b981", "#8a8f98"
SHADES = ("rgba(59,130,246,0.16)", "rgba(59,130,246,0.22)", "rgba(59,130,246,0.30)")
OPENED = 2 * 86400 * 1000.0  # milliseconds
BAND = (0.5, 0.8, 0.95, 0.99)  # what is drawn; the table has the rest
NAMES = {
    Kind.REACTIVE: "autoscaler alone",
    Kind.MINIMUM: "fixed minimum",
    Kind.HEADROOM: "headroom",
    Kind.FLOOR: "floor",
}
UNITS = {"arrivals": "requests/s", "in_flight": "requests in flight"}


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """Regular times in milliseconds, as plotly takes them; every `thin` points are drawn as one.

    Attributes:
        x0: of the first point.
        dx: between two drawn points.
        thin: points drawn as one.
        end: of the last point.
        absolute: whether they are dates; if not, they count from the beginning.
    """

    x0: float
    dx: float
    thin: int
    end: float
    absolute: bool

    @property
    def layout(self) -> dict[str, Any]:
        """The last two days first, and a way to see more: a fortnight at once is a smear."""
        last = [max(self.x0, self.end - OPENED), self.end]
        ranges = [
            {"count": count, "step": step, "stepmode": "backward", "label": label}
            for count, step, label in ((6, "hour", "6 h"), (2, "day", "2 d"), (7, "day", "1 w"))
        ]
        selector = {"buttons": [*ranges, {"step": "all", "label": "all"}], "x": 1, "xanchor": "right", "y": 1.02}
        look = {"bgcolor": "rgba(128,128,128,0.12)", "activecolor": "rgba(59,130,246,0.45)"}
        dated = {} if self.absolute else {"tickformat": "%H:%M\nday %-j", "hoverformat": "day %-j %H:%M"}
        return {"type": "date", "range": last, "rangeselector": {**selector, **look}, **dated}

    def largest(self, values: Floats) -> Any:  # noqa: ANN401  (an array, for plotly)
        """The largest of each `thin` values, in 32 bits."""
        whole = -(-len(values) // self.thin) * self.thin
        padded = np.concatenate([values, np.full(whole - len(values), np.nan)])
        return np.fmax.reduce(padded.reshape(-1, self.thin), axis=1).astype(np.float32)

    def line(self, values: Floats, *, name: str, color: str, **more: object) -> go.Scatter:
        """A curve."""
        shape = {"color": color, "width": 1.4, **more.pop("line", {})}  # type: ignore[dict-item]
        return go.Scatter(x0=self.x0, dx=self.dx, y=self.largest(values), name=name, mode="lines", line=shape, **more)


def band(one: Replayed, *, thin: int, absolute: bool) -> str:
    """What was forecast against what came, and where scores begin."""
    times = one.times * 1000
    axis = Axis(times[0], one.every * one.series.step * 1000 * thin, thin, times[-1], absolute)
    figure = go.Figure()
    for i, q in enumerate(_drawn(one)):
        curve = one.bounds[:, one.probabilities.index(q)]
        fill = {"fill": "tonexty", "fillcolor": SHADES[min(i - 1, 2)]} if i else {}
        thick = {"line": {"width": 1.6 if q == thickest(one) else 0.8}} if i else {"line": {"width": 0.6}}
        figure.add_trace(axis.line(curve, name=f"p{q * 100:g}", color=BLUE, **fill, **thick))
    kept = one.kept[:, one.probabilities.index(thickest(one))]
    if not np.isnan(kept).all():
        name = f"room planned for instead of p{thickest(one) * 100:g}"
        figure.add_trace(axis.line(kept, name=name, color=GREEN, line={"dash": "dash", "width": 1.8}))
    figure.add_trace(axis.line(one.came, name="came", color=ORANGE))
    figure.add_trace(axis.line(one.level, name="level", color=GREY, visible="legendonly"))
    begins = one.times[min(one.scored_from, len(one.times) - 1)] * 1000
    figure.add_vline(x=begins, line={"dash": "dot", "color": GREY, "width": 1})
    seen = slice(one.scored_from, None)
    high = np.nanmax([np.nanmax(one.came, initial=0.0), *one.bounds[seen, -1], *kept[seen]])
    figure.update_yaxes(range=[0, 1.05 * float(high) or 1.0])  # the first forecasts, still cold, may reach far above
    figure.update_xaxes(axis.layout)
    return _json(figure, y=UNITS.get(str(one.key[1]), str(one.key[1])), time=True)


def _drawn(one: Replayed) -> list[float]:
    return [q for q in BAND if q in one.probabilities] or list(one.probabilities[-4:])


def thickest(one: Replayed) -> float:
    """The probability whose curve stands out in the band, and whose room is drawn beside it."""
    return _drawn(one)[-2:][0]


def by_hour(scores: Scores) -> str:
    """Coverage by hour of day at the probabilities that matter."""
    figure = go.Figure()
    one = scores.replayed
    for q, color in zip((0.9, 0.95, 0.99), (GREEN, BLUE, ORANGE), strict=True):
        if q in one.probabilities:
            values = scores.hours[:, one.probabilities.index(q)]
            figure.add_trace(
                go.Scatter(
                    x=list(range(24)), y=values, name=f"p{q * 100:g}", mode="lines+markers", line={"color": color}
                )
            )
            figure.add_hline(y=q, line={"dash": "dot", "color": color, "width": 1})
    figure.update_xaxes(dtick=3, title="hour of day")
    figure.update_yaxes(tickformat=".0%")
    return _json(figure, y="covered")


def loss_by_hour(scores: Scores) -> str:
    """Pinball loss by hour of day."""
    figure, one = go.Figure(), scores.replayed
    for q, color in zip((0.9, 0.95, 0.99), (GREEN, BLUE, ORANGE), strict=True):
        if q in one.probabilities:
            values = scores.hourly_pinball[:, one.probabilities.index(q)]
            figure.add_trace(go.Bar(x=list(range(24)), y=values, name=f"p{q * 100:g}", marker={"color": color}))
    figure.update_xaxes(dtick=3, title="hour of day")
    return _json(figure, y="pinball loss")


def trade(found: Economics) -> str:
    """Replica-hours against the load that found too few, for each way."""
    figure = go.Figure()
    colors = {Kind.FLOOR: BLUE, Kind.HEADROOM: GREEN, Kind.MINIMUM: GREY, Kind.REACTIVE: ORANGE}
    dearest = 1.6 * max(one.paid for one in found.of(Kind.FLOOR))
    for kind, color in colors.items():
        options = [one for one in found.of(kind) if one.paid <= dearest]
        figure.add_trace(
            go.Scatter(
                x=[one.paid for one in options],
                y=[1 - one.met for one in options],
                text=[_setting(one.kind, one.setting) for one in options],
                name=NAMES[kind],
                mode="lines+markers" if len(options) > 1 else "markers",
                marker={"color": color, "size": 9 if kind in (Kind.FLOOR, Kind.REACTIVE) else 6},
                line={"color": color, "width": 1.2},
                hovertemplate="%{text}<br>%{x:,.0f} replica-hours<br>%{y:.2%} of the load short<extra></extra>",
            )
        )
    figure.update_xaxes(title="replica-hours, warming included")
    figure.update_yaxes(tickformat=".1%", rangemode="tozero")
    return _json(figure, y="load that found too few replicas")


def replicas(found: Economics, verdict: Verdict, *, thin: int, absolute: bool) -> str:
    """What the load took, what was ready without a floor and with the one the verdict is about."""
    start, step = found.start * 1000, found.step * 1000
    axis = Axis(start, step * thin, thin, start + step * len(found.need), absolute)
    floors = [q for q in found.courses if q]
    chosen = verdict.floor.setting if verdict.floor else min(floors, key=lambda q: abs(q - 0.95))
    steps: dict[str, Any] = {"line": {"shape": "hv"}}
    figure = go.Figure()
    ready = found.courses[0.0].ready.astype(np.float64)
    figure.add_trace(axis.line(ready, name="ready, autoscaler alone", color=GREY, **steps))
    ready = found.courses[chosen].ready.astype(np.float64)
    figure.add_trace(axis.line(ready, name=f"ready, floor at p{chosen * 100:g}", color=BLUE, line={"shape": "hv"}))
    figure.add_trace(axis.line(np.ceil(found.need - 1e-9), name="needed", color=ORANGE, line={"shape": "hv"}))
    figure.update_xaxes(axis.layout)
    return _json(figure, y="replicas", time=True)


def _setting(kind: Kind, setting: float) -> str:
    match kind:
        case Kind.FLOOR:
            return f"floor at p{setting * 100:g}"
        case Kind.MINIMUM:
            return f"minimum of {setting:.0f}"
        case Kind.HEADROOM:
            return f"{setting:.0%} headroom"
        case Kind.REACTIVE:
            return "autoscaler alone"


def _json(figure: go.Figure, *, y: str, time: bool = False) -> str:
    """A figure without colours of paper and ink, which the page sets; "<" cannot end the script it stands in."""
    faint = "rgba(128,128,128,0.22)"
    figure.update_layout(
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 64, "r": 16, "t": 12, "b": 44},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        hovermode="x unified" if time else "closest",
        dragmode="zoom",
    )
    figure.update_xaxes(gridcolor=faint, zerolinecolor=faint, linecolor=faint)
    figure.update_yaxes(gridcolor=faint, zerolinecolor=faint, title=y)
    plain = json.loads(figure.to_json())
    plain["layout"].pop("template", None)
    return json.dumps(plain, separators=(",", ":")).replace("<", "\\u003c")
