"""Forecasts of many series at once: level plus quantile of past scores, on the square-root scale."""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from models.forecasting import conformal, levels, priors, season, windows
from models.forecasting.forecast import Forecast, NotEnoughHistory, Outlook, Quality
from models.forecasting.settings import DAY, ForecastSettings
from models.series import Floats, Series

NEED = 2  # points: one says nothing about how much the next may differ
OWN = 30  # own scores from which on a forecast is no longer cold
ORIGINS_PER_SEASON = 30  # a season is followed in at least this many steps
GAPS = 0.1  # share of unknown points in the level window from which on a forecast is degraded
SHIFT = 3 / 8  # Anscombe (1948): sqrt(count + 3/8) has nearly the same variance at every count


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """Series that end at the same grid point, one row each.

    Attributes:
        end: grid index of the last column (Unix time over step).
        step: seconds between two columns.
        values: shape (rows, n); NaN where unknown, and before a series begins.
    """

    end: int
    step: float
    values: Floats

    @property
    def now(self) -> float:
        """Unix time of the last column."""
        return self.end * self.step


class Forecaster:
    """Quantiles of the largest value within a horizon, for many series at once.

    Pure: what it returns depends on the histories given, not on the clock and not on earlier calls.
    """

    def __init__(self, settings: ForecastSettings | None = None) -> None:
        self.settings = settings or ForecastSettings()

    def update(
        self,
        histories: Mapping[Hashable, Series],
        *,
        horizons: Mapping[Hashable, tuple[float, ...]],
    ) -> dict[Hashable, tuple[Outlook, ...]]:
        """Forecast every series over each of its horizons.

        Args:
            histories: the whole known history of each key, on a grid that is the same for all keys; may start and
                end at different times.
            horizons: for each key of `histories`, how far ahead, seconds. Less than a step counts as one step.

        Returns:
            for each key, one outlook for each of its horizons, in their order.
        """
        outlooks: dict[Hashable, tuple[Outlook, ...]] = {}
        blocks: dict[tuple[int, float], list[Hashable]] = defaultdict(list)
        for key, history in histories.items():
            if history.known < NEED:
                outlooks[key] = tuple(NotEnoughHistory(have=history.known, need=NEED) for _ in horizons[key])
            else:
                blocks[round(history.end / history.step), history.step].append(key)
        for (end, step), keys in blocks.items():
            block = Block(end, step, _stacked([histories[key].values for key in keys]))
            outlooks.update(zip(keys, self._forecast(block, [horizons[key] for key in keys]), strict=True))
        return {key: outlooks[key] for key in histories}

    def _forecast(self, block: Block, horizons: Sequence[tuple[float, ...]]) -> list[tuple[Outlook, ...]]:
        roots = np.sqrt(np.maximum(block.values, 0.0) + SHIFT)
        window = max(round(self.settings.level_window / block.step), 10)
        whole = windows.filled(np.maximum(block.values, 0.0))
        past = np.sqrt(levels.past_levels(whole, window / 3) + SHIFT)
        present = levels.present_levels([row[~np.isnan(row)] for row in whole[:, -window:]])
        spacing = self._spacing(block.step)
        first = (-(block.end - block.values.shape[1] + 1)) % spacing
        results: list[dict[float, Outlook]] = [{} for _ in horizons]
        for horizon in sorted({h for each in horizons for h in each}):
            rows = [i for i, each in enumerate(horizons) if horizon in each]
            steps = max(round(horizon / block.step), 1)
            scores = windows.largest_ahead(roots[rows], steps) - past[rows]
            scores = np.where(np.isnan(block.values[rows]), np.nan, scores)
            lane = Lane(block, self.settings, spacing, first, steps)
            for i, outlook in zip(
                rows, lane.outlooks(scores[:, first::spacing], present[rows], block.values[rows], horizon), strict=True
            ):
                results[i][horizon] = outlook
        return [tuple(result[h] for h in each) for result, each in zip(results, horizons, strict=True)]

    def _spacing(self, step: float) -> int:
        """Grid steps between two origins."""
        shortest = min((*self.settings.seasons, math.inf)) / ORIGINS_PER_SEASON
        return max(round(min(self.settings.spacing, shortest) / step), 1)


@dataclasses.dataclass(frozen=True, slots=True)
class Lane:
    """One horizon of some rows of a block."""

    block: Block
    settings: ForecastSettings
    spacing: int
    first: int
    steps: int

    def outlooks(self, scores: Floats, level: Floats, values: Floats, horizon: float) -> list[Outlook]:
        """Forecast each row from its scores at all origins."""
        probabilities = self.settings.quantiles
        recent = scores[:, -self.settings.scores - self.steps // self.spacing - 1 :]
        shift, jump, names = self._choose(scores, recent)
        own = shift + jump
        count = np.count_nonzero(~np.isnan(recent), axis=1)
        prior = priors.prior_scores(self.steps, probabilities)[None, :] * self._sigma(values)[:, None]
        weight = count / (count + self.settings.cold_scores)
        blend = np.where(np.isnan(own), prior, weight[:, None] * own + (1 - weight[:, None]) * prior)
        present = _last(values)
        root = np.sqrt(level + SHIFT)
        raw = np.maximum(root[:, None] + blend, 0.0) ** 2 - SHIFT
        bound = np.maximum.accumulate(np.maximum(raw, np.maximum(present, 0.0)[:, None]), axis=1)
        return [
            Forecast(
                issued_at=self.block.now,
                horizon=horizon,
                level=float(level[i]),
                quantiles=dict(zip(probabilities, map(float, bound[i]), strict=True)),
                quality=self._quality(values[i], int(count[i])),
                experts=dict(zip(probabilities, names[i], strict=True)),
            )
            for i in range(len(values))
        ]

    def _choose(self, scores: Floats, recent: Floats) -> tuple[Floats, Floats, list[list[str]]]:
        """For each quantile the quantile of scores, the usual jump, and the expert with the least loss."""
        probabilities = self.settings.quantiles
        best = conformal.quantiles(recent, probabilities)
        jump = np.zeros_like(best)
        ratio = np.ones_like(best)
        names = [["level"] * len(probabilities) for _ in scores]
        width = recent.shape[1]
        start = self.block.now - (self.block.values.shape[1] - 1 - self.first) * self.block.step
        gap = self.spacing * self.block.step
        times = start + gap * np.arange(scores.shape[1])
        origins = season.Origins(start, gap, self.steps * self.block.step, self.settings.zone)
        for period in self.settings.seasons:
            for spread in (1,) if period < DAY else (1, 5):
                phase = season.Phase(period, spread, self.settings.previous)
                at = np.append(times[-width:], self.block.now) if width else np.array([self.block.now])
                usual = season.centres(scores, origins, phase, at=at)
                centred = recent - usual[:, :-1]
                support = np.count_nonzero(~np.isnan(centred), axis=1)
                least = max(OWN, min(period / gap, self.settings.scores) / 4)
                value = conformal.quantiles(centred, probabilities)
                base = np.where(np.isnan(centred), np.nan, recent)
                loss = conformal.mean_pinball(centred, value, probabilities)
                plain = conformal.mean_pinball(base, conformal.quantiles(base, probabilities), probabilities)
                gain = np.where(plain > 0, loss / np.maximum(plain, 1e-300), 1.0)
                better = (gain < ratio) & (support >= least)[:, None] & ~np.isnan(usual[:, -1:])
                best, ratio = np.where(better, value, best), np.where(better, gain, ratio)
                jump = np.where(better, usual[:, -1:], jump)
                for i, j in zip(*np.nonzero(better), strict=True):
                    names[i][j] = f"season_{period:g}s_{spread}"
        return best, jump, names

    def _sigma(self, values: Floats) -> Floats:
        change = np.diff(np.sqrt(np.maximum(values, 0.0) + SHIFT), axis=1)[:, -self.settings.scores :]
        return priors.shrunk_sigma(np.nansum(change**2, axis=1) / 2, np.count_nonzero(~np.isnan(change), axis=1) * 1.0)

    def _quality(self, values: Floats, count: int) -> Quality:
        known = ~np.isnan(values)
        begun = values[int(np.argmax(known)) :]
        tail = begun[-max(round(self.settings.level_window / self.block.step), 10) :]
        if np.isnan(tail[-1]) or np.mean(np.isnan(tail)) > GAPS:
            return Quality.DEGRADED
        if count < OWN:
            return Quality.COLD
        day = min(DAY / (self.spacing * self.block.step), self.settings.scores)
        return Quality.SEASONED if count >= day * (1 - GAPS) else Quality.YOUNG


def _stacked(rows: Sequence[Floats]) -> Floats:
    """Rows aligned at their ends, NaN before the shorter ones begin."""
    out = np.full((len(rows), max(map(len, rows))), np.nan)
    for i, row in enumerate(rows):
        out[i, len(out[i]) - len(row) :] = row
    return out


def _last(values: Floats) -> Floats:
    return np.asarray(windows.filled(values)[:, -1])
