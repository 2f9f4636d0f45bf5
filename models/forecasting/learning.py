"""Taking in what came: levels, scores, regressions, quantiles. The same code replays a history and follows a tick."""

import dataclasses

import numpy as np

from models.forecasting import conformal, correcting, levels, steady, windows
from models.forecasting.lanes import EXPERTS, LEVEL_INPUTS, NOISE_SPANS, PARTS, SOME, Halves, Ints, Lanes, Plan
from models.forecasting.season import Ring
from models.series import Floats

YOUNG = 64  # scores up to which everything is solved anew at each origin
REACH = 1.5  # largest jumps seen by which a band rises at most; after a first jump a learned one would by four
SHARPNESS = 32.0  # an expert with 2 % more loss gets half the weight: nearly a selection, without its jumps
# Origins before now over which a replay follows the adaptive correction. What a service still has of it from before has
# faded to .99^1440 = 5e-7 of what it was then, or less, and that was 18 widths of the band at the very most; of a young
# one above p90 250, of which 4e-10 are left.
SETTLING = 1440
TOGETHER = 256  # lanes whose scores are sorted at a time: 10 MB while it lasts, in the cache
LARGEST = 65504.0  # of a half-precision number: the root of four billion requests
UNIT = np.float32(16)  # of the scores that are kept: the largest is then the root of a trillion requests


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """What a lane sees at some times, one column a time.

    Attributes:
        level: root of the level, shape (lanes, n).
        inputs: inputs of the jump's regressions, shape (lanes, n, p).
        changes: two averages of recent changes, shape (lanes, n, 2).
        sizes: usual sizes of the jump, shape (lanes, n, widths).
    """

    level: Floats
    inputs: Floats
    changes: Floats
    sizes: Floats

    @classmethod
    def of(cls, here: Floats, recent: Floats, usual: Floats) -> "View":
        """View from levels (lanes, n, 6), root of the recent maximum (lanes, n) and usual jumps and sizes."""
        level = here[..., 0]
        above = np.stack([here[..., 1], here[..., 2], here[..., 3], recent], axis=2) - level[..., None]
        half = usual.shape[2] // 2
        inputs = np.concatenate([np.ones((*level.shape, 1)), np.nan_to_num(above), usual[..., :half]], axis=2)
        return cls(level, inputs, here[..., 4:6], usual[..., half:])

    def present(self, i: int) -> steady.Present:
        """What is seen at time number i, as the steady bound asks for it."""
        now, _, lately, most = (self.level[:, i] + self.inputs[:, i, k] for k in range(1, LEVEL_INPUTS))
        return steady.Present(now, lately, most)


def ring(lanes: Lanes, plan: Plan) -> Ring:
    """The remembered jumps, as the seasons read them."""
    return Ring(lanes.jumps, plan.spacing, plan.lag(lanes.steps), plan.settings.zone)


def margin(lanes: Lanes, plan: Plan) -> int:
    """Points before the first new one that `advance` has to see."""
    return int(lanes.steps.max(initial=1)) + plan.every + 1


def settling(lanes: Lanes, plan: Plan) -> int:
    """Origins before now over which a replay follows the adaptive correction, and both bounds as they are judged."""
    return max(SETTLING, plan.scores + int(plan.lag(lanes.steps).max(initial=1)) + 1)


def advance(lanes: Lanes, plan: Plan, values: Floats, *, first: int, settle_from: int) -> None:
    """Take in new points of all lanes.

    Args:
        lanes: changed in place.
        plan: of their grid.
        values: shape (lanes, margin + n): the new points and `margin` earlier ones.
        first: grid index of the first new point.
        settle_from: origin number from which on quantiles are kept up to date. A replay needs them only at its end.
    """
    pad = margin(lanes, plan)
    window = plan.settings.window_steps(plan.step) / 3
    here = []
    for i in range(pad, values.shape[1]):
        lanes.levels.push(values[:, i], window=window)
        if (first + i - pad) % plan.every == 0:
            here.append(lanes.levels.now())
    if here:
        origin = -(-first // plan.every)
        _learn(lanes, plan, Chunk.of(lanes, plan, values, np.stack(here, axis=1), (origin, first - pad)), settle_from)


@dataclasses.dataclass(frozen=True, slots=True)
class Chunk:
    """New origins of all lanes: what is seen at them, and the scores that have become known by them.

    Attributes:
        origin: number of the first one.
        view: what is seen at each.
        jumps: score that became known at each, shape (lanes, n); NaN where unknown.
    """

    origin: int
    view: View
    jumps: Floats

    @classmethod
    def of(cls, lanes: Lanes, plan: Plan, values: Floats, here: Floats, at: tuple[int, int]) -> "Chunk":
        """Chunk from values, levels (lanes, n, 6), the first origin's number and the grid index of column 0."""
        origin, column = at
        count = here.shape[1]
        recent, coming = _maxima(lanes, plan, values, origin * plan.every - column + plan.every * np.arange(count))
        numbers = np.arange(origin - lanes.delay, origin + count)
        before = lanes.roots[:, numbers[: lanes.delay] % lanes.delay]
        known = np.concatenate([before, here[..., 0]], axis=1)
        lag = plan.lag(lanes.steps)[:, None]
        issued = lanes.delay + np.arange(count) - lag
        jumps = coming - np.take_along_axis(known, issued, axis=1)
        size = lanes.jumps.shape[1]
        lanes.jumps[:, numbers[lanes.delay :] % size] = np.nan
        places = (origin + np.arange(count) - lag) % size
        lanes.jumps[np.arange(len(jumps))[:, None], places] = np.clip(jumps, -LARGEST, LARGEST)
        times = plan.spacing * np.arange(origin, origin + count)
        usual = ring(lanes, plan).usual(times, plan.phases)
        return cls(origin, View.of(here, recent, usual), jumps)


def _maxima(lanes: Lanes, plan: Plan, values: Floats, at: Ints) -> tuple[Floats, Floats]:
    """Root of the maximum of the last horizon at columns `at`, and of the horizon that had become known by then."""
    recent, coming = np.full((2, len(values), len(at)), np.nan)
    for steps in np.unique(lanes.steps):
        rows = np.flatnonzero(lanes.steps == steps)
        lag = -(-int(steps) // plan.every) * plan.every
        ahead = windows.largest_ahead(values[rows], int(steps))
        recent[rows] = levels.root(_column(ahead, at - int(steps)))
        issued = _column(values[rows], at - lag)
        coming[rows] = np.where(np.isnan(issued), np.nan, levels.root(_column(ahead, at - lag)))
    return recent, coming


def _column(values: Floats, at: Ints) -> Floats:
    return np.where(at >= 0, values[:, np.maximum(at, 0)], np.nan)


def _learn(lanes: Lanes, plan: Plan, chunk: Chunk, settle_from: int) -> None:
    """Walk over the origins of a chunk: first what has become known, then what is forecast from it."""
    lag = plan.lag(lanes.steps)
    for i in range(chunk.jumps.shape[1]):
        origin = chunk.origin + i
        score(lanes, plan, origin, chunk.jumps[:, i], (origin - lag) % lanes.delay)
        young, everyone = np.flatnonzero(lanes.seen < YOUNG), np.arange(len(lanes.seen))
        for number, regression in enumerate((lanes.plain, lanes.weighted, lanes.spread)):
            regression.solve(everyone if plan.regression_due(number, origin) else young)
        if origin > settle_from - 2 * plan.refresh:  # twice round: the last part needs the one before it
            for part in range(PARTS):
                measure(lanes, plan, part, everyone if plan.part_due(part, origin) else young, origin=origin)
        view = chunk.view
        guess = guesses(lanes, view.inputs[:, i], view.changes[:, i], view.sizes[:, i])
        slot = origin % lanes.delay
        lanes.roots[:, slot] = view.level[:, i]
        lanes.inputs[:, slot] = view.inputs[:, i]
        lanes.noise_inputs[:, slot] = guess.noise_inputs
        lanes.guesses[:, slot] = guess.values
        if origin >= settle_from:
            lanes.bounds[:, slot] = combined(lanes, view.level[:, i], guess.values)
            stays = plan.stays(lanes.steps, delay=lanes.delay)
            lanes.steady.issue(lanes.bounds, view.present(i), plan.settings.quantiles, slot=slot, stays=stays)


def score(lanes: Lanes, plan: Plan, origin: int, jump: Floats, slots: Ints) -> None:
    """Take in the jump that became known at `origin`; what had been forecast for it lies in `slots`."""
    rows = np.arange(len(slots))
    plain, weighted, spread, weight = lanes.guesses[rows, slots].T
    ok = ~np.isnan(jump) & ~np.isnan(weighted)
    target = np.where(ok, jump, 0.0)
    inputs, keep = lanes.inputs[rows, slots], 0.5 ** (1 / plan.settings.half_life)
    lanes.plain.observe(inputs, target, ok * 1.0, keep=keep)
    lanes.weighted.observe(inputs, target, np.where(ok, weight, 0.0), keep=keep)
    miss = np.abs(target - np.where(ok, weighted, 0.0))
    lanes.spread.observe(lanes.noise_inputs[rows, slots], miss, np.where(ok, weight, 0.0), keep=keep)
    size = np.abs(target)
    seen = np.column_stack([size, size, miss, miss, miss])
    moved = np.where(np.isnan(lanes.noise), seen, lanes.noise + (1 - np.exp(-1 / NOISE_SPANS)) * (seen - lanes.noise))
    lanes.noise = np.where(ok[:, None], moved, lanes.noise)
    lanes.largest = np.maximum(lanes.largest * keep, size)
    lanes.seen += ok
    column = origin % plan.scores
    scores = np.column_stack([jump, jump - plain, (jump - weighted) / spread])
    lanes.scores[:, :, column] = rounded_up(np.where(ok[:, None], scores / UNIT, np.nan))
    lanes.spreads[:, column] = np.where(ok, np.clip(spread, 0.0, LARGEST), 1.0)
    level, band = lanes.roots[rows, slots], lanes.bounds[rows, slots]
    came = np.where(ok, level + jump, np.nan)
    lanes.steady.maxima[:, column] = rounded_up(came / UNIT)
    lanes.steady.score(came, plan.settings.quantiles, slots=slots, column=column)
    correcting.correct(lanes, plan, correcting.Outcome(band, present=level + inputs[:, 1], came=came))


def rounded_up(scores: Floats) -> Halves:
    """In half precision, never less than they are: what comes again exactly must lie within its own quantile."""
    halves = np.clip(scores, -LARGEST, LARGEST).astype(np.float16)
    less = halves < np.minimum(scores, LARGEST)
    halves[less] = np.nextafter(halves[less], np.float16(np.inf))
    return halves


@dataclasses.dataclass(frozen=True, slots=True)
class Guesses:
    """Plain jump, weighted jump, spread and weight (lanes, 4), and what the spread was guessed from (lanes, z)."""

    values: Floats
    noise_inputs: Floats


def guesses(lanes: Lanes, inputs: Floats, changes: Floats, sizes: Floats) -> Guesses:
    """What the regressions say at one time, inputs of shape (lanes, p), (lanes, 2) and (lanes, widths)."""
    noise = np.nan_to_num(lanes.noise)
    ones = np.ones((len(noise), 1))
    noise_inputs = np.concatenate([ones, noise[:, 2:4], np.nan_to_num(changes), sizes], axis=1)
    # A jump larger than any seen is an extrapolation, not a forecast.
    limit = lanes.largest
    plain = np.clip(lanes.plain.predict(inputs), -limit, limit)
    weighted = np.clip(lanes.weighted.predict(inputs), -limit, limit)
    usual = noise[:, 4] + SOME / 3
    spread = np.clip(lanes.spread.predict(noise_inputs), 0.35 * usual, 4 * usual)
    weight = 1 / (SOME + noise[:, :2].max(axis=1)) ** 2
    return Guesses(np.column_stack([plain, weighted, spread, weight]), noise_inputs)


def measure(lanes: Lanes, plan: Plan, part: int, rows: Ints, *, origin: int) -> None:
    """Take anew a part of what is known of the scores of lanes `rows`, and the share of each expert.

    Parts 0 to 2 are the quantiles of each expert and what they would have cost on the same scores, part 3 is that
    cost for the scaled one, which takes as long as all the rest of it: there a score weighs as much as it was divided
    by. Part 4 is what there should be room for where all of them tell nothing. The newest score is that of `origin`.
    """
    for first in range(0, len(rows), TOGETHER):
        _measure(lanes, plan, part, rows[first : first + TOGETHER], newest=origin % plan.scores)


def _measure(lanes: Lanes, plan: Plan, part: int, rows: Ints, *, newest: int) -> None:
    if part > len(EXPERTS):
        if plan.scores * plan.spacing < steady.WHOLE * steady.SPAN:
            return  # a part of a day would take the afternoon for all there is
        maxima = lanes.steady.maxima[rows].astype(np.float32) * UNIT
        lanes.steady.measure(rows, maxima, plan.settings.quantiles, newest=newest)
        return
    expert = min(part, len(EXPERTS) - 1)
    scores = lanes.scores[rows, expert].astype(np.float32) * UNIT  # sorting halves takes six times as long
    if part < len(EXPERTS):
        found = conformal.measured(scores, plan.settings.quantiles, overlap=plan.lag(lanes.steps[rows]) * 1.0)
        lanes.quantiles[rows, expert] = found.values
        if EXPERTS[expert] == "scaled":
            return
        lanes.losses[rows, expert] = found.losses
    else:
        weights = lanes.spreads[rows].astype(np.float32)
        lanes.losses[rows, expert] = conformal.mean_pinball(
            scores, lanes.quantiles[rows, expert], plan.settings.quantiles, weights=weights
        )
    loss = lanes.losses[rows]
    least = np.maximum(loss.min(axis=1, keepdims=True), 1e-9)
    shares = np.maximum(loss / least, 1.0) ** -SHARPNESS
    lanes.shares[rows] = shares / shares.sum(axis=1, keepdims=True)


def combined(lanes: Lanes, level: Floats, guess: Floats) -> Floats:
    """Quantiles as roots, shape (lanes, quantiles): shares of the experts, corrected by what came lately.

    What was learned in calm is multiplied by a spread that a first jump has made large: beyond `REACH` jumps, or the
    quantile of the jumps themselves, that is an extrapolation. The correction, whose unit is the width that such a
    jump gave the band, lifts no further either.

    Args:
        lanes: whose quantiles, shares and correction are used.
        level: root of the level, shape (lanes,).
        guess: as in `Guesses.values`.
    """
    plain, weighted, spread, _ = (column[:, None] for column in guess.T)
    jumps = np.stack(
        [lanes.quantiles[:, 0], plain + lanes.quantiles[:, 1], weighted + spread * lanes.quantiles[:, 2]], axis=1
    )
    limit = np.maximum(REACH * lanes.largest[:, None], jumps[:, 0])
    own = (lanes.shares * np.minimum(jumps, limit[:, None])).sum(axis=1)
    corrected = np.minimum(own + lanes.shift * correcting.width(own), limit)
    return np.maximum.accumulate(level[:, None] + corrected, axis=1)
