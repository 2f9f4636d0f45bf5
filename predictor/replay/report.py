"""The report: one HTML file that needs no network, and the forecasts as CSV."""

import dataclasses
import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd
from plotly.offline import get_plotlyjs

from predictor.replay import charts, rivals, verdict
from predictor.replay.backtest import Replayed
from predictor.replay.economics import Economics
from predictor.replay.recorded import Note
from predictor.replay.scores import Overall, Scores
from predictor.replay.verdict import Verdict
from predictor.settings import durations

POINTS = 60_000  # origins drawn in a report: some 2 MB beside the 5 MB of plotly
DRAWN = 12  # targets and warm-ups with figures; all are in the tables


@dataclasses.dataclass(frozen=True)
class Outcome:
    """All that a back-test found.

    Attributes:
        command: the command line that makes it again.
        made_at: Unix time, seconds.
        notes: what was missing in the data, and what was assumed.
        absolute: whether times are Unix times.
        zone: name of the time zone of the hours of day.
        scores: of each signal, target and warm-up.
        overall: over all of them.
        economics: of each target and warm-up that could be weighed.
        verdicts: of the same.
        objective: share of the load that should find enough replicas.
    """

    command: str
    made_at: float
    notes: tuple[Note, ...]
    absolute: bool
    zone: str
    scores: tuple[Scores, ...]
    overall: tuple[Overall, ...]
    economics: tuple[Economics, ...]
    verdicts: tuple[Verdict, ...]
    objective: float

    @property
    def headline(self) -> str:
        """The sentence to act on."""
        return verdict.headline(self.verdicts)


def write(outcome: Outcome, folder: Path) -> tuple[Path, Path]:
    """Writes report.html and backtest.csv; the folder is made."""
    folder.mkdir(parents=True, exist_ok=True)
    page, table = folder / "report.html", folder / "backtest.csv"
    page.write_text(html(outcome), encoding="utf-8")
    rows(outcome).to_csv(table, index=False, float_format="%.6g")
    return page, table


def rows(outcome: Outcome) -> pd.DataFrame:
    """One row a forecast; what is unknown is empty."""
    return pd.concat([_rows(one.replayed) for one in outcome.scores], ignore_index=True)


def _rows(one: Replayed) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "target": one.key[0],
            "signal": str(one.key[1]),
            "warm_up_s": one.warm_up,
            "horizon_s": one.horizons.raising,
            "issued_at": pd.to_datetime(one.times, unit="s", utc=True).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "quality": one.quality,
            "level": one.level,
            **{f"p{q * 100:g}": one.bounds[:, i] for i, q in enumerate(one.probabilities)},
            **{f"room_p{q * 100:g}": one.kept[:, i] for i, q in enumerate(one.probabilities)},
            "came": one.came,
        }
    )
    frame["scored"] = np.arange(len(frame)) >= one.scored_from
    return frame


def html(outcome: Outcome) -> str:
    """The page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("predictor.replay", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        duration=durations.written, share=_share, number=_number, quantile=lambda q: f"p{q * 100:g}", way=verdict.name
    )
    return environment.get_template("report.html.j2").render(
        outcome=outcome,
        made=_date(outcome.made_at),
        pieces=_pieces(outcome),
        left_out=max(len(outcome.scores) - DRAWN, 0),
        missing_rivals=rivals.missing(),
        rivals={one.name: one.text for one in rivals.ALL},
        plotly=get_plotlyjs(),
    )


@dataclasses.dataclass(frozen=True)
class Piece:
    """One target, signal and warm-up, with its figures as JSON.

    `kept` is how often room is planned for instead of the forecast at the probability `room_at`: a share.
    """

    scores: Scores
    span: str
    thin: int
    kept: float
    room_at: float
    band: str
    hours: str
    losses: str
    economics: Economics | None
    verdict: Verdict | None
    trade: str
    replicas: str


def _pieces(outcome: Outcome) -> list[Piece]:
    drawn = outcome.scores[:DRAWN]
    thin = max(-(-sum(len(one.replayed.origins) for one in drawn) // POINTS), 1)
    pieces, told = [], set()
    for scores in drawn:
        one = scores.replayed
        place = (one.key[0], one.warm_up)
        found = [pair for pair in _weighed(outcome) if (pair[0].target, pair[0].warm_up) == place and place not in told]
        told.add(place)
        economics, answer = found[0] if found else (None, None)
        pieces.append(
            Piece(
                scores=scores,
                span=_span(one, absolute=outcome.absolute),
                thin=thin,
                kept=float(np.mean(~np.isnan(one.kept[:, one.probabilities.index(charts.thickest(one))]))),
                room_at=charts.thickest(one),
                band=charts.band(one, thin=thin, absolute=outcome.absolute),
                hours=charts.by_hour(scores),
                losses=charts.loss_by_hour(scores),
                economics=economics,
                verdict=answer,
                trade=charts.trade(economics) if economics else "",
                replicas=_replicas(economics, answer, max(thin * one.every // 2, 1), absolute=outcome.absolute),
            )
        )
    return pieces


def _replicas(economics: Economics | None, answer: Verdict | None, thin: int, *, absolute: bool) -> str:
    if economics is None or answer is None:
        return ""
    return charts.replicas(economics, answer, thin=thin, absolute=absolute)


def _weighed(outcome: Outcome) -> Sequence[tuple[Economics, Verdict]]:
    return list(zip(outcome.economics, outcome.verdicts, strict=True))


def _span(one: Replayed, *, absolute: bool) -> str:
    length = (one.series.end - one.series.start) / 86400
    long = f"{length:.1f} days" if length >= 2 else f"{length * 24:.1f} hours"  # noqa: PLR2004  (days)
    return f"{_date(one.series.start)} to {_date(one.series.end)}, {long}" if absolute else long


def _date(time: float) -> str:
    return dt.datetime.fromtimestamp(time, tz=dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _share(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:,.3g}"
