"""How good forecasts were: each is scored when its horizon has passed, in the service as in a back-test."""

import dataclasses
from collections.abc import Hashable, Mapping

import numpy as np

from models.forecasting.forecast import Forecast, Outlook
from models.series import Floats, Series

ROUNDED = 1 + 1e-9  # times a bound: what is squared back from a root may come out a little below what comes again


def coverage(came: Floats, bounds: Floats) -> Floats:
    """Share of values at or below each bound, shape (quantiles,); NaN where nothing is known.

    Args:
        came: largest value over each horizon, shape (n,), NaN where unknown (left out).
        bounds: forecast for it, shape (n, quantiles), NaN where there was none (left out).
    """
    known = ~np.isnan(came)[:, None] & ~np.isnan(bounds)
    covered = (came[:, None] <= bounds * ROUNDED) & known
    return np.asarray(_ratio(covered.sum(axis=0), known.sum(axis=0)))


def pinball(came: Floats, bounds: Floats, probabilities: tuple[float, ...]) -> Floats:
    """Mean pinball loss of each bound, shape (quantiles,), in the unit of the values. Arguments as in `coverage`.

    Source: Koenker and Bassett (1978). A value above the bound costs q for each unit, one below it 1 - q.
    """
    over = came[:, None] - bounds
    q = np.asarray(probabilities)
    loss = np.maximum(q * over, (q - 1) * over)
    known = ~np.isnan(loss)
    return np.asarray(_ratio(np.where(known, loss, 0.0).sum(axis=0), known.sum(axis=0)))


def worst_block(came: Floats, bound: Floats, size: int) -> float:
    """Least coverage of any `size` consecutive forecasts (blocks side by side); NaN when there is no whole block.

    Args:
        came: shape (n,), NaN where unknown: such forecasts are left out before blocks are cut.
        bound: of one quantile, shape (n,), likewise.
        size: forecasts in a block, at least one.
    """
    known = ~np.isnan(came) & ~np.isnan(bound)
    covered = came[known] <= bound[known] * ROUNDED
    blocks = len(covered) // size
    return float(covered[: blocks * size].reshape(blocks, size).mean(axis=1).min()) if blocks else float("nan")


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


@dataclasses.dataclass(frozen=True, slots=True)
class Scored:
    """What became of one forecast.

    Attributes:
        key: as given to the forecaster.
        forecast: what had been said.
        came: largest value over its horizon.
    """

    key: Hashable
    forecast: Forecast
    came: float

    @property
    def covered(self) -> Mapping[float, bool]:
        """Probability -> whether the value stayed at or below the bound."""
        return {q: self.came <= bound * ROUNDED for q, bound in self.forecast.quantiles.items()}

    @property
    def pinball(self) -> Mapping[float, float]:
        """Probability -> pinball loss in the unit of the signal."""
        return {
            q: max(q * (self.came - bound), (q - 1) * (self.came - bound))
            for q, bound in self.forecast.quantiles.items()
        }


class Scoring:
    """Keeps forecasts until their horizon has passed.

    Args:
        apart: seconds between two forecasts of the same key and horizon that are scored. Those closer together
            share most of their horizon: scoring them says nothing new and costs memory.
    """

    def __init__(self, *, apart: float = 120.0) -> None:
        self._apart = apart
        self._waiting: dict[tuple[Hashable, int], list[Forecast]] = {}

    def issue(self, outlooks: Mapping[Hashable, tuple[Outlook, ...]]) -> None:
        """Remember the forecasts among `outlooks`; a key that is missing is forgotten.

        So is what was issued later than now, by a clock that has been set back since: nothing more would be scored
        until it is that late again.
        """
        self._waiting = {place: kept for place, kept in self._waiting.items() if place[0] in outlooks}
        for key, each in outlooks.items():
            for place, outlook in enumerate(each):
                if isinstance(outlook, Forecast):
                    waiting = self._waiting.setdefault((key, place), [])
                    while waiting and waiting[-1].issued_at > outlook.issued_at:
                        waiting.pop()
                    if not waiting or outlook.issued_at >= waiting[-1].issued_at + self._apart - 1e-6:
                        waiting.append(outlook)

    def settle(self, histories: Mapping[Hashable, Series]) -> list[Scored]:
        """Score what can be scored by now and forget it.

        A forecast of whose horizon fewer than half of the points are known is forgotten without a score: what is
        not known is no hit.
        """
        scored = []
        for (key, _), waiting in self._waiting.items():
            history = histories.get(key)
            while history is not None and waiting and waiting[0].issued_at + waiting[0].horizon <= history.end + 1e-6:
                forecast = waiting.pop(0)
                came = largest_within(history, after=forecast.issued_at, horizon=forecast.horizon)
                if came is not None:
                    scored.append(Scored(key, forecast, came))
        return scored


def largest_within(history: Series, *, after: float, horizon: float) -> float | None:
    """Largest value over `horizon` seconds after a time; None where fewer than half of the points are known."""
    first = round((after - history.start) / history.step) + 1
    values = history.values[max(first, 0) : first + max(round(horizon / history.step), 1)]
    known = values[~np.isnan(values)]
    return float(known.max()) if first >= 0 and len(known) * 2 >= max(len(values), 1) and len(known) else None
