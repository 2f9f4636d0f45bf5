"""The tables in docs/benchmarks.md, between two markers."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.forecast import judge
from benchmarks.forecast.judge import JUDGED, Figures
from benchmarks.forecast.speed import Timing

BEGIN = "<!-- forecast: begin (python -m benchmarks.forecast) -->"
END = "<!-- forecast: end -->"


def written(found: Sequence[Figures], timed: Sequence[Timing]) -> str:
    """All tables as Markdown."""
    parts = []
    if found:
        parts += ["### Forecast: averages", *_summaries(found), "### Forecast: each trace", *_traces(found)]
    if timed:
        parts += ["### Forecast: time and memory", *_speed(timed)]
    return "\n".join(parts)


def _summaries(found: Sequence[Figures]) -> Iterable[str]:
    yield ""
    yield "Coverage of p90, p95, p99: mean over traces, least trace."
    yield "Pinball loss over that of each baseline: geometric mean over traces, warm-ups and these quantiles."
    yield "Choices were made on the development traces; the held-out ones are every second file by name."
    yield ""
    parts = {
        "all": found,
        "development": [f for f in found if not f.held_out],
        "held out": [f for f in found if f.held_out],
    }
    known = {name: s for name, part in parts.items() if (s := judge.summary(part))}
    yield _row("", *known)
    yield _row("---", *("---" for _ in known))
    yield _row("traces", *(str(s.traces) for s in known.values()))
    yield _row("coverage", *(_list(s.coverage[q] for q in JUDGED) for s in known.values()))
    yield _row("least trace", *(_list(s.least[q] for q in JUDGED) for s in known.values()))
    yield _row("worst 3 h of p95, mean", *(f"{s.worst_block:.3f}" for s in known.values()))
    for name in sorted({name for s in known.values() for name in s.overall}):
        cells = (
            f"**{s.overall[name]:.3f}** ({_list(s.ratios[name][q] for q in JUDGED)})" if name in s.overall else ""
            for s in known.values()
        )
        yield _row(f"pinball / {name}", *cells)
    yield ""


def _traces(found: Sequence[Figures]) -> Iterable[str]:
    yield ""
    yield _row("trace", "", "warm-up", "scored", "coverage .90 .95 .99", "worst 3 h", "pinball / plain SES")
    yield _row(*["---"] * 7)
    for f in found:
        kind = "short" if not f.averaged else "held out" if f.held_out else "development"
        ratios = _list(f.ratios["plain_ses"][q] for q in JUDGED)
        covered = _list(f.coverage[q] for q in JUDGED)
        yield _row(f.trace, kind, f"{f.warm_up / 60:g} min", str(f.scored), covered, f"{f.worst_block:.2f}", ratios)
    yield ""


def _speed(timed: Sequence[Timing]) -> Iterable[str]:
    yield ""
    yield _row(
        "targets",
        "horizons",
        "tick, mean",
        "worst",
        "bare SES pass",
        "mean / bare",
        "worst / bare",
        "restart, a day",
        "memory",
    )
    yield _row(*["---"] * 9)
    for t in timed:
        yield _row(
            str(t.targets),
            str(t.horizons),
            f"{t.mean * 1e3:.1f} ms",
            f"{t.worst * 1e3:.1f} ms",
            f"{t.bare * 1e3:.1f} ms",
            f"{t.mean / t.bare:.1f}",
            f"{t.worst / t.bare:.1f}",
            f"{t.restart:.1f} s",
            f"{t.memory / 2**20:.0f} MB",
        )
    yield ""


def place(file: Path, text: str) -> None:
    """Put `text` between the markers of a file, which are added where they are missing."""
    old = file.read_text(encoding="utf-8") if file.exists() else "# Benchmarks\n"
    before, begin, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not begin:
        before = old.rstrip() + "\n\n"
    file.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after or chr(10)}", encoding="utf-8")


def _list(values: Iterable[float]) -> str:
    return " ".join(f"{v:.3f}" for v in values)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
