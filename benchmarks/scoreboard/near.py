"""Where a rival needs hardly more replica-hours than Floorcast, or fewer, and what kind of load that is."""

from collections.abc import Iterable, Sequence

from benchmarks.scoreboard.contenders import ORACLE, OURS, STATIC
from benchmarks.scoreboard.results import ATTAINMENTS, Race
from models.race.frontier import How

NEAR = 1.3  # times Floorcast's hours: what a rival is meant to need
LEVEL = 1.1  # a fleet of one size within this of the clairvoyant: the load hardly moves
FAR = 1.5  # Floorcast this far from the clairvoyant: its forecast says nothing of the surges

HARDLY_MOVES = "the load hardly moves: one size is nearly the clairvoyant's"
UNANNOUNCED = "surges, of arrivals or of sizes, that nothing announces"
UNTOLD = "arrivals and sizes do not tell the need: not even their clairvoyant gets there"
IN_TIME = "smooth or daily: there is little to save, and a reaction comes nearly in time"
WHY = f"""\
At {100 * ATTAINMENTS[0]:g} %, in times Floorcast's replica-hours, cheapest first; `alone`: the rival gets there,
Floorcast does not. Averaged traces only; not the clairvoyant, not Floorcast's own reaction. The kind of load is read
off the runs: it *hardly moves* where a fleet of one size is within {LEVEL:g} times the clairvoyant; its surges are
*unannounced* where Floorcast needs {FAR:g} times the clairvoyant's hours or never gets there: a band that follows the
level says nothing of them ([decision 7](decisions/0007-surges-that-nothing-announces.md)). Where a fixed fleet would
have served better over the last day, Floorcast keeps room for what came in it
([decision 9](decisions/0009-room-for-what-nothing-announces.md)); `static` is the best fixed size of the very day that
is run, which may be a calmer one. Everything else is smooth or daily. Where not even the clairvoyant gets there, the
need does not follow from the arrivals and their sizes, which are what it and Floorcast go by. The longer the warm-up,
the fewer of the others get there at all."""


def rivals(race: Race) -> list[tuple[str, float | None]]:
    """Names and times Floorcast's hours, cheapest first; None for one that gets there where Floorcast never does."""
    others = [name for name in race.points if name != ORACLE and not name.startswith(OURS)]
    if race.found(OURS, ATTAINMENTS[0]).how is How.NEVER:
        return [(name, None) for name in sorted(others) if race.found(name, ATTAINMENTS[0]).how is not How.NEVER]
    known = [(name, ratio) for name in others if (ratio := race.over_ours(name, ATTAINMENTS[0])) is not None]
    return sorted(((name, ratio) for name, ratio in known if ratio < NEAR), key=lambda one: one[1])


def kind(races: Sequence[Race]) -> str:
    """What kind of load one trace is, from its races at all warm-ups."""
    if all(race.found(ORACLE, ATTAINMENTS[0]).how is How.NEVER for race in races):
        return UNTOLD
    level = [ratio for race in races if (ratio := race.over_oracle(STATIC, ATTAINMENTS[0])) is not None]
    if level and max(level) <= LEVEL:
        return HARDLY_MOVES
    mine = [race.over_oracle(OURS, ATTAINMENTS[0]) for race in races]
    return UNANNOUNCED if any(ratio is None or ratio >= FAR for ratio in mine) else IN_TIME


def rows(races: Sequence[Race]) -> Iterable[tuple[str, ...]]:
    """A head, then a row for each averaged trace on which anybody is near: name, kind, and who at each warm-up."""
    warm_ups = sorted({race.warm_up for race in races})
    yield ("trace", "kind of load", *(f"{warm_up / 60:g} min" for warm_up in warm_ups))
    for name in sorted({race.trace.name for race in races if race.trace.averaged}):
        mine = {race.warm_up: race for race in races if race.trace.name == name}
        cells = [_cell(mine[warm_up]) if warm_up in mine else "" for warm_up in warm_ups]
        if any(cells):
            yield (name, kind(list(mine.values())), *cells)


def _cell(race: Race) -> str:
    return ", ".join(f"{name} {'alone' if ratio is None else f'{ratio:.2f}'}" for name, ratio in rivals(race))
