"""The scoreboard as Markdown, between two markers of docs/benchmarks.md."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.scoreboard import contenders, mistaken, near, results, sources, traces
from benchmarks.scoreboard.contenders import OURS
from benchmarks.scoreboard.results import ATTAINMENTS, Board, Effort, Facts, Race
from models.race import frontier
from models.race.frontier import How

SCOREBOARD = ("<!-- scoreboard: begin (python -m benchmarks.scoreboard) -->", "<!-- scoreboard: end -->")
ABLATION = ("<!-- ablation: begin (python -m benchmarks.scoreboard --ablate) -->", "<!-- ablation: end -->")

HALVES = ("development", "held out")
ABLATED = """\
The same races with one rule of `models/policy/rules.py` left out at a time; `floorcast-reactive` is without the
forecast. Fewer traces reached is worse than a higher ratio."""

MISTAKEN = """\
The same at the default setting, where what Floorcast is told is wrong: each forecast half of what it was, none at all,
a load test that found twice what a replica sustains. Share of requests that missed the objective, mean over the
averaged traces; replica-hours over those with all the rules, geometric mean; replicas started, mean. A right forecast
and a right load test leave the rules that answer their errors nothing to do."""

INTRODUCTION = """\
Every policy over every trace on the simulated fleet, each swept over its aggressiveness; rivals are tuned on the very
trace and warm-up, Floorcast only moves along its one knob, with the same values on all of them. `hours / oracle`:
replica-hours, warming counted, over those of the clairvoyant at the same share of requests within the TTFT objective,
read off each policy's frontier between two runs, never beyond them; geometric mean over the traces on which the
policy gets there, with their number. A mean over fewer traces is a mean over easier ones: compare the numbers before
the ratios. `hours / Floorcast`: at 99 %, where both get there. `misses`: at the replica-hours Floorcast needs for 99
%, over Floorcast's, for policies that have runs as cheap; many cannot be as cheap at any setting, so `misses there`
says the same at the replica-hours the policy itself needs for 99 %. `starts`: replicas started at 99 %, mean. `best
of all, in hindsight`: where Floorcast gets there, the policy that did best on that very trace, whichever it was; no
choice among these that is made before the day gets below it. Traces shorter than twelve hours are listed, not
averaged. The clairvoyant covers each minute's arrivals, weighed by the sizes of the requests ([decision
8](decisions/0008-the-size-of-requests.md)); a ratio below 1 is possible, as a short queue within the objective lets a
fleet do with less. `oracle never`: not even the clairvoyant gets there with half as many replicas again as the peak's
arrivals need. `never`: of each sweep the default, both ends and what lies around the targets is run, and where that
reaches no target, on from the best run until both beside it are worse; none of these was good enough."""

TOKENS = f"""\
`tokens`: factor by which each request was made longer. A run has a budget of {traces.Limits().budget:,} requests, and
there are thousands of runs. With requests as they are, a replica that carries many short ones a second would leave two
choices: several times the budget, or a fleet so small that there is nothing to scale. So where a replica carries more
than {traces.CARRIES:g} requests a second, each request stands for several: fewer of them, about as many tokens. That
makes the load of a replica grainier, for every policy alike; what a replica sustains and the TTFT objective are
measured on the longer requests. With as few as {traces.LEAST} replicas at the peak the budget is passed."""


def written(board: Board, plots: Mapping[float, str]) -> str:
    """All tables; `plots` names the picture of each warm-up."""
    races, missing = board.races, board.missing
    parts = ["### Scoreboard", "", INTRODUCTION, "", _effort(board.effort), ""]
    if missing:
        parts += [f"**Not complete:** {len(missing)} races were not run: {'; '.join(missing[:12])}"
                  + (" and others." if len(missing) > 12 else "."), ""]  # fmt: skip  # noqa: PLR2004  (a list that long is read by nobody)
    for warm_up in sorted({race.warm_up for race in races}):
        mine = [race for race in races if race.warm_up == warm_up]
        parts += [f"#### Warm-up {warm_up / 60:g} min", "", *_summary(mine), ""]
        if warm_up in plots:
            parts += [f"![Frontiers at a warm-up of {warm_up / 60:g} min]({plots[warm_up]})", ""]
        parts += [f"Each trace, `hours / oracle` at {ATTAINMENTS[0]:.0%}:", "", *_each(mine), ""]
    parts += [f"#### Where a rival is within {near.NEAR:g} times Floorcast's hours, and why", "", *_near(races), ""]
    parts += ["#### What was run", "", *_traces(board.traces)]
    cited = sources.written(facts.name for facts in board.traces)
    return "\n".join([*parts, *(["", "#### Sources of the traces", "", *cited] if cited else [])])


def ablated(board: Board) -> str:
    """Floorcast, and Floorcast without each of its rules, by warm-up."""
    races, missing = board.races, board.missing
    warm_ups = sorted({race.warm_up for race in races})
    parts = ["### What each rule is good for", "", ABLATED, "", _effort(board.effort), ""]
    if missing:
        parts += [f"**Not complete:** not run: {'; '.join(missing)}.", ""]
    parts.append(_row("hours / oracle at 99 %", *(f"{w / 60:g} min, {half}" for w in warm_ups for half in HALVES)))
    parts.append(_row(*["---"] * (1 + len(warm_ups) * len(HALVES))))
    for policy in sorted({name for race in races for name in race.points if name.startswith(OURS)}):
        cells = []
        for warm_up in warm_ups:
            halves = results.halves([race for race in races if race.warm_up == warm_up])
            for half in HALVES:
                found = results.summary(policy, halves[half])
                cells.append(_ratio(found.ratios[ATTAINMENTS[0]], found.reached[ATTAINMENTS[0]], len(halves[half])))
        parts.append(_row(_name(policy), *cells))
    for warm_up in warm_ups:
        parts += _mistaken([race for race in races if race.warm_up == warm_up])
    return "\n".join(parts)


def _mistaken(races: Sequence[Race]) -> Iterable[str]:
    """What each rule does where something goes wrong, at one warm-up; nothing where that was not run."""
    among = results.halves(races)["all"]
    if not among or not all(
        mistaken.Mistaken(mistake).name in race.points for race in among for mistake in mistaken.MISTAKES
    ):
        return
    yield from ("", f"#### When something is wrong, warm-up {among[0].warm_up / 60:g} min", "", MISTAKEN, "")
    yield _row("missed, hours, starts", *mistaken.MISTAKES)
    yield _row(*["---"] * (1 + len(mistaken.MISTAKES)))
    for rule in (mistaken.ALL_RULES, *contenders.RULES):
        cells = (results.beside(among, mistaken.Mistaken(mistake, rule).name, mistaken.Mistaken(mistake).name)
                 for mistake in mistaken.MISTAKES)  # fmt: skip
        told = (f"{100 * each.missed:.2f} %, {each.hours:.2f}, {each.starts:.0f}" for each in cells)
        yield _row(f"without {rule}" if rule else "**all the rules**", *told)


def _effort(effort: Effort) -> str:
    made = effort.runs - effort.kept
    each = f" and took {effort.busy / made:.1f} s each" if made else ""
    told = (
        f"Made in {effort.seconds / 60:.1f} min on {effort.cores} cores, {effort.processes} processes side by side: "
        f"{effort.runs:,} runs, of which {effort.kept:,} were kept from earlier ones with the same code; "
        f"{made:,} were made anew{each}."
    )
    return textwrap.fill(told, 120)


def _near(races: Sequence[Race]) -> Iterable[str]:
    head, *rows = near.rows(races)
    if not rows:
        yield "Nowhere."
        return
    yield from (near.WHY, "", _row(*head), _row(*["---"] * len(head)))
    yield from (_row(*row) for row in rows)


def _summary(races: Sequence[Race]) -> Iterable[str]:
    halves = results.halves(races)
    columns = [f"{part}, {a:.3g}" for a in (99, 99.9) for part in halves]
    yield _row("hours / oracle", *(f"{column} %" for column in columns), "hours / Floorcast", "misses", "misses there",
               "starts")  # fmt: skip
    yield _row(*["---"] * (len(columns) + 5))
    for policy in results.policies(halves["all"]):
        found = {part: results.summary(policy, among) for part, among in halves.items()}
        cells = [_ratio(found[part].ratios[a], found[part].reached[a], len(halves[part]))
                 for a in ATTAINMENTS for part in halves]  # fmt: skip
        every = found["all"]
        ours = "" if every.over_ours is None else f"{every.over_ours:.2f}"
        misses, theirs = (
            "" if ratio is None else f"{ratio:.2g} ({number})"
            for ratio, number in ((every.misses, every.compared), (every.theirs, every.there))
        )
        starts = "" if every.starts is None else f"{every.starts:.0f}"
        yield _row(_name(policy), *cells, ours, misses, theirs, starts)
    best = [results.in_hindsight(halves[part], a) for a in ATTAINMENTS for part in halves]
    sizes = [len(halves[part]) for _ in ATTAINMENTS for part in halves]
    yield _row(
        "*best of all, in hindsight*",
        *(_ratio(frontier.geometric(each), len(each), of) for each, of in zip(best, sizes, strict=True)),
        *[""] * 4,
    )


def _ratio(ratio: float | None, reached: int, races: int) -> str:
    return f"never (0/{races})" if ratio is None else f"{ratio:.2f} ({reached}/{races})"


def _name(policy: str) -> str:
    return f"**{policy}**" if policy == OURS else policy


def _each(races: Sequence[Race]) -> Iterable[str]:
    names = results.policies(races)
    yield _row("trace", "", *map(_name, names))
    yield _row(*["---"] * (len(names) + 2))
    for race in sorted(races, key=lambda race: (not race.trace.averaged, race.trace.held_out, race.trace.name)):
        kind = "held out" if race.trace.held_out else "development"
        yield _row(race.trace.name, kind if race.trace.averaged else "short", *(_cell(race, name) for name in names))


def _cell(race: Race, policy: str) -> str:
    if policy not in race.points:
        return ""
    found, ratio = race.found(policy, ATTAINMENTS[0]), race.over_oracle(policy, ATTAINMENTS[0])
    if found.how is How.NEVER:
        return "never"
    if ratio is None:
        return "oracle never"
    return f"≤{ratio:.2f}" if found.how is How.CHEAPEST else f"{ratio:.2f}"


def _traces(facts: Sequence[Facts]) -> Iterable[str]:
    yield TOKENS
    yield ""
    yield "≤: the cheapest run of the sweep is that good already."
    yield ""
    yield _row(
        "trace", "", "hours run", "requests", "replica", "tokens", "requests/s a replica", "TTFT objective", "peak"
    )
    yield _row(*["---"] * 9)
    for f in sorted(facts, key=lambda f: f.name):
        kind = ("held out" if f.held_out else "development") if f.averaged else "short"
        yield _row(
            f.name, kind, f"{f.start / 3600:.1f} to {f.end / 3600:.1f}", f"{f.requests:,}", f.profile,
            f"{f.tokens:.2f}", f"{f.rate:.2f}", f"{f.objective:.1f} s", str(f.peak),
        )  # fmt: skip


def place(file: Path, text: str, section: tuple[str, str]) -> None:
    """Put `text` between two markers of a file, which are added where they are missing; the rest stays as it is."""
    first, last = section
    old = file.read_text(encoding="utf-8") if file.exists() else "# Benchmarks\n"
    before, begin, rest = old.partition(first)
    _, _, after = rest.partition(last)
    if not begin:
        before = old.rstrip() + "\n\n"
    file.write_text(f"{before}{first}\n\n{text}\n\n{last}{after or chr(10)}", encoding="utf-8")


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
