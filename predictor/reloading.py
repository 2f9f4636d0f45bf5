"""A changed configuration taken up by the running service: what is kept of the one before, and what begins anew."""

import dataclasses
from collections.abc import Sequence

from predictor import learning, outlooks, wiring
from predictor.board import Board, Entry
from predictor.history import History
from predictor.outlooks import Outlooks
from predictor.settings import convert
from predictor.settings.root import Settings
from predictor.targets import Mode, Target

# Sections that only a new process takes up.
AT_START = ("server", "kubernetes", "leader_election", "external_scaler", "journal")


@dataclasses.dataclass(frozen=True, slots=True)
class Learned:
    """What the loops have learned of their targets.

    Attributes:
        board: a row for each target.
        history: the past of each.
        outlooks: what makes forecasts of it.
        loaded: nothing of the past is still to be asked for.
    """

    board: Board
    history: History
    outlooks: Outlooks
    loaded: bool


def fresh(settings: Settings) -> Learned:
    """Nothing yet."""
    past = wiring.history(settings)
    return Learned(Board(convert.targets(settings)), past, wiring.outlooks(settings, past), loaded=False)


def taken_over(before: Learned, old: Settings, new: Settings) -> Learned:
    """What of `before` still holds under the new settings. The loops that it belonged to must have ended."""
    targets = convert.targets(new)
    kept = {target.key for target in targets if _is_same_load(before.board, target)}
    same_past = old.history == new.history
    if same_past:
        before.history.keep_only(kept)
    past = before.history if same_past else wiring.history(new)
    same_forecasts = same_past and kept >= {target.key for target in before.board.targets} & {t.key for t in targets}
    same_forecasts = same_forecasts and old.forecast == new.forecast and wiring.pace(old) == wiring.pace(new)
    return Learned(
        board=_board(before.board, targets, kept),
        history=past,
        outlooks=before.outlooks if same_forecasts else wiring.outlooks(new, past),
        loaded=before.loaded
        and same_past
        and len(kept) == len(targets)
        and not _more_to_remember(before.board, targets),
    )


def left(before: Sequence[Target], after: Sequence[Target]) -> list[Target]:
    """Targets that were controlled and are named no more: their floors are given back, or they would stand for ever."""
    named = {target.key for target in after}
    return [target for target in before if target.mode is Mode.CONTROL and target.key not in named]


def needs_restart(old: Settings, new: Settings) -> list[str]:
    """Changed sections that this process cannot take up."""
    return [name for name in AT_START if getattr(old, name, None) != getattr(new, name, None)]


def without_them(old: Settings, new: Settings) -> Settings:
    """The new settings with those sections as they were."""
    return new.model_copy(update={name: getattr(old, name) for name in needs_restart(old, new)})


def _is_same_load(board: Board, target: Target) -> bool:
    entry = board.entries.get(target.key)
    if entry is None:
        return False
    before = entry.target
    return (before.kind, before.engine, before.model) == (target.kind, target.engine, target.model)


def _more_to_remember(board: Board, targets: Sequence[Target]) -> bool:
    """Whether a signal is planned for that was not before: its past has not been asked for."""
    before = {key: set(outlooks.signals(entry.target)) for key, entry in board.entries.items()}
    return any(not before.get(target.key, set()).issuperset(outlooks.signals(target)) for target in targets)


def _board(before: Board, targets: Sequence[Target], kept: set[str]) -> Board:
    board = Board(targets)
    for key in kept:
        board.entries[key] = _entry(before.entries[key], board.entries[key].target)
    return board


def _entry(before: Entry, target: Target) -> Entry:
    """The row under new settings.

    What would have stood in shadow says nothing once the mode is another, nor what was seen of other replicas.
    """
    floor = before.shadow_floor if before.target.mode is target.mode else None
    same = learning.terms(before.target) == learning.terms(target)
    observers = before.observers if same else {}
    return dataclasses.replace(before, target=target, shadow_floor=floor, observers=observers)
