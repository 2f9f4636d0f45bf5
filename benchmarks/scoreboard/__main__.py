"""Every policy over every trace: sweeps, tables and pictures.

What was run before with the same code, trace and knob is not run again; stop it whenever you like.
"""

import argparse
import concurrent.futures
import dataclasses
import gzip
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import rich.console
import rich.progress

from benchmarks.scoreboard import contenders, mistaken, plots, results, store, tables, traces, work
from benchmarks.scoreboard.results import Board, Effort, Facts, Race
from benchmarks.scoreboard.traces import Limits, Prepared
from benchmarks.scoreboard.work import Job, Trace

ROOT = Path(__file__).parents[2]
SMOKE_POLICIES = ("static", "hpa-in-flight", "keda-load")
Swept = tuple[str, float, str, Sequence[dict[str, Any]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for. Exit code 2 where there are no traces, or none has requests in its hours."""
    asked = _parser().parse_args(arguments)
    folder = smoke_traces(asked.cache / "smoke") if asked.smoke else asked.traces
    limits = Limits(hours=3.0, budget=30_000) if asked.smoke else Limits()
    every = [work.trace_of(path, limits, held_out=held_out) for path, held_out in traces.files(folder)]
    if not every:
        print(f"{folder}: no traces (*.csv or *.csv.gz)", file=sys.stderr)
        return 2
    warm_ups = tuple(float(minutes) * 60 for minutes in asked.warm_ups.split(","))
    policies = tuple(filter(None, asked.policies.split(","))) or (SMOKE_POLICIES if asked.smoke else ())
    if asked.ablate:
        policies = (contenders.REACTIVE_ONLY, *contenders.ablated(), *mistaken.names(contenders.RULES))
    board = race(every, warm_ups[: 1 if asked.smoke else None], policies, asked)
    if not board.traces:
        print(f"{folder}: nothing to run; {'; '.join(board.missing)}", file=sys.stderr)
        return 2
    if asked.json:
        asked.json.write_text(json.dumps(_figures(board.races), indent=1) + "\n", encoding="utf-8")
    kept = not (asked.smoke or asked.no_docs)
    if asked.ablate:
        section, text = tables.ABLATION, tables.ablated(board)
    else:
        pictures = _drawn(board.races, asked.docs) if kept else {}
        section, text = tables.SCOREBOARD, tables.written(board, pictures)
    print(text)
    if kept and board.races:
        tables.place(asked.docs, text, section)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scoreboard", description=__doc__)
    parser.add_argument("--traces", type=Path, default=ROOT.parent / "shared" / "traces", help="folder of traces")
    parser.add_argument("--smoke", action="store_true", help="two small generated traces, few policies")
    parser.add_argument("--json", type=Path, help="file for every point of every frontier")
    parser.add_argument("--warm-ups", default="5,2,10", help="minutes, in the order in which they are run")
    parser.add_argument("--policies", default="", help="names, separated by commas; or all")
    parser.add_argument("--ablate", action="store_true", help="Floorcast with each of its rules left out in turn")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop then, and say what was not run")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--cache", type=Path, default=store.default_folder(), help="folder of what was run before")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "benchmarks.md", help="file with the markers")
    parser.add_argument("--no-docs", action="store_true", help="leave the documentation as it is")
    return parser


def race(
    every: Sequence[Trace], warm_ups: tuple[float, ...], policies: tuple[str, ...], asked: argparse.Namespace
) -> Board:
    """Prepares the traces, forecasts them, and runs every policy, as far as the time allows."""
    began = time.monotonic()
    until = began + asked.minutes * 60
    context = multiprocessing.get_context("spawn")  # a fork would copy the progress bar's thread half-way
    with ProcessPoolExecutor(asked.processes, mp_context=context) as pool, _bar() as bar:
        tried = _all(pool, [(work.ready, (trace, asked.cache)) for trace in every], bar, "preparing")
        idle = [why for why in tried if isinstance(why, str)]
        every = [trace for trace, found in zip(every, tried, strict=True) if isinstance(found, Prepared)]
        ready = [found for found in tried if isinstance(found, Prepared)]
        facts = {trace.key: _facts(found, trace) for trace, found in zip(every, ready, strict=True)}
        dealt = work.groups(sorted(every, key=lambda trace: facts[trace.key].start), asked.processes)
        _all(pool, [(work.foresee, (group, warm_ups, asked.cache)) for group in dealt], bar, "forecasting")
        jobs = _jobs(dict(zip([trace.key for trace in every], ready, strict=True)), every, warm_ups, policies)
        swept, missing = _swept(pool, jobs, bar, (asked.cache, until))
    partly = {(traces.name_of(job.trace.path), job.warm_up) for job in missing}
    # A policy that was not run must not look like one that never gets there.
    whole = sorted((one for one in swept if one[:2] not in partly), key=lambda one: (one[1], one[0], one[2]))
    told = [*idle, *(f"{name} at {warm_up / 60:g} min" for name, warm_up in sorted(partly))]
    raced = results.races({each.name: each for each in facts.values()}, whole)
    return Board(raced, list(facts.values()), told, _effort(swept, time.monotonic() - began, asked.processes))


def _effort(swept: Sequence[Swept], seconds: float, processes: int) -> Effort:
    took = [point["took"] for _, _, _, points in swept for point in points]
    made = [each for each in took if each is not None]
    return Effort(seconds, os.cpu_count() or 1, processes, len(took), len(took) - len(made), sum(made))


def _jobs(
    ready: dict[str, Prepared], every: Sequence[Trace], warm_ups: tuple[float, ...], policies: tuple[str, ...]
) -> list[Job]:
    """Warm-ups in their order; in each LLM traces first; in each the oracle and Floorcast first."""
    wanted = contenders.names(policies)
    ordered = sorted(every, key=lambda trace: (trace.path.name.startswith("nab_"), trace.path.name))
    jobs = []
    for warm_up in warm_ups:
        for trace in ordered:
            names = {*contenders.contenders(ready[trace.key], warm_up, None), *contenders.foreseeing()}
            first = (*contenders.CLAIRVOYANT, contenders.OURS)
            chosen = sorted(filter(wanted, names), key=lambda name: (name not in first, name))
            jobs += [Job(trace, warm_up, name, close=True) for name in chosen]
    return jobs


def _swept(
    pool: ProcessPoolExecutor, jobs: Sequence[Job], bar: rich.progress.Progress, how: tuple[Path, float]
) -> tuple[list[Swept], list[Job]]:
    cache, until = how
    step, swept = bar.add_task("racing", total=len(jobs)), []
    futures: dict[Future[list[dict[str, Any]]], Job] = {pool.submit(work.sweep, job, cache): job for job in jobs}
    try:
        for future in concurrent.futures.as_completed(futures, timeout=max(until - time.monotonic(), 0.0)
                                                      if until < float("inf") else None):  # fmt: skip
            job = futures.pop(future)
            swept.append((traces.name_of(job.trace.path), job.warm_up, job.policy, future.result()))
            bar.update(step, advance=1, description=f"{traces.name_of(job.trace.path)[:24]}: {job.policy}")
    except TimeoutError:
        pool.shutdown(wait=False, cancel_futures=True)
    return swept, list(futures.values())


def _all(
    pool: ProcessPoolExecutor,
    calls: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]],
    bar: rich.progress.Progress,
    what: str,
) -> list[Any]:
    step = bar.add_task(what, total=len(calls))
    futures = [pool.submit(function, *arguments) for function, arguments in calls]
    for future in concurrent.futures.as_completed(futures):
        future.result()
        bar.advance(step)
    return [future.result() for future in futures]


def _bar() -> rich.progress.Progress:
    columns = (
        rich.progress.TextColumn("{task.description}"), rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(), rich.progress.TimeElapsedColumn(), rich.progress.TimeRemainingColumn(),
    )  # fmt: skip
    return rich.progress.Progress(*columns, console=rich.console.Console(stderr=True))


def _facts(trace: Prepared, of: Trace) -> Facts:
    return Facts(
        name=trace.name,
        held_out=of.held_out,
        lasts=trace.lasts,
        start=trace.start,
        end=trace.end,
        requests=len(trace.requests),
        profile=trace.profile,
        tokens=trace.tokens,
        rate=trace.knee.rate,
        objective=trace.knee.objective,
        peak=trace.peak,
    )


def _drawn(raced: Sequence[Race], docs: Path) -> dict[float, str]:
    """One picture a warm-up, beside the documentation."""
    folder = docs.parent / "scoreboard"
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for warm_up in sorted({race.warm_up for race in raced}):
        name = f"frontiers-{warm_up / 60:g}min.svg"
        (folder / name).write_text(plots.picture([race for race in raced if race.warm_up == warm_up]), encoding="utf-8")
        found[warm_up] = f"scoreboard/{name}"
    return found


def _figures(raced: Sequence[Race]) -> list[dict[str, Any]]:
    return [
        {
            "trace": dataclasses.asdict(race.trace),
            "warm_up_s": race.warm_up,
            "points": {name: [dataclasses.asdict(point) for point in points] for name, points in race.points.items()},
            "hours_over_oracle": {
                name: {f"{a:g}": race.over_oracle(name, a) for a in results.ATTAINMENTS} for name in race.points
            },
        }
        for race in raced
    ]


def smoke_traces(folder: Path) -> Path:
    """Two generated traces of 13 hours: a wave, and a wave with surges."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in _generated():
        content = gzip.compress("\n".join(lines).encode(), mtime=0)
        path = folder / f"{name}.csv.gz"
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
    return folder


def _generated() -> Iterator[tuple[str, list[str]]]:
    minutes = np.arange(13 * 60)
    wave = 600 * (1.2 + np.sin(2 * np.pi * minutes / 240))
    surges = wave * np.where(minutes % 180 > 160, 2.0, 1.0)  # noqa: PLR2004  (twenty minutes of every three hours)
    for name, rate in (("generated_surges", surges), ("generated_wave", wave)):
        drawn = np.random.default_rng(5).poisson(rate)
        rows = [f"{m},{n},{n * 1000},{n * 150}" for m, n in zip(minutes, drawn, strict=True)]
        yield name, ["minute,requests,prompt_tokens,output_tokens", *rows]


if __name__ == "__main__":
    sys.exit(main())
