"""A recorded history, and what had to be done to it."""

import dataclasses
from collections.abc import Mapping
from typing import TypeAlias

from models.series import Series
from models.signals import Signal

Key: TypeAlias = tuple[str, Signal]  # target and signal


@dataclasses.dataclass(frozen=True, slots=True)
class Note:
    """Something that is missing in a history or was repaired in it.

    Attributes:
        where: file or target, and column or signal.
        what: a sentence for a person.
        doubtful: whether it may well have been read wrongly: said on the terminal too, where nobody opens the report.
    """

    where: str
    what: str
    doubtful: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Recorded:
    """What a source gave.

    Attributes:
        series: values by target and signal, in the signals' own units, each on its own grid.
        notes: what was missing or repaired; nothing is dropped without one.
        absolute: whether times are Unix times; if not, they count from the beginning of the recording.
    """

    series: Mapping[Key, Series]
    notes: tuple[Note, ...] = ()
    absolute: bool = True
