"""`floorcast explain`: finds an explained decision, in the running service or in the journal, and shows it."""

import dataclasses
import datetime as dt
import json
import sys
import zoneinfo
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import requests
import rich.console
import rich.table

from predictor import asked_for, journal
from predictor.diary import DECISION
from predictor.errors import ConfigurationError, FloorcastError
from predictor.settings import durations
from predictor.settings.root import Settings

TIMEOUT = 3.0  # seconds the service has to answer
NOT_FOUND = 404

Record = Mapping[str, Any]


class UnexplainedError(FloorcastError):
    """There is no decision to explain, and what to do about it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """What is to be explained.

    Attributes:
        target: as namespace/name.
        at: a time, for the decision that held then; empty for now.
        since: a span before now, for all changes in it; empty for one decision.
        url: of the running service; empty for the configured port of this machine.
        as_json: for machines.
    """

    target: str
    at: str = ""
    since: str = ""
    url: str = ""
    as_json: bool = False


def run(asked: Asked, settings: Settings, *, now: float, console: rich.console.Console | None = None) -> int:
    """Shows it on standard output; 0.

    Raises:
        ConfigurationError: the question cannot be understood.
        UnexplainedError: there is nothing to answer with.
    """
    console = console or rich.console.Console()
    found = _found(asked, settings, now=now)
    if asked.as_json:
        console.file.write(json.dumps(found if asked.since else found[0], indent=2) + "\n")
    elif asked.since:
        console.print(_changes(found, settings))
    else:
        show(found[0], console, zone=zoneinfo.ZoneInfo(settings.forecast.zone))
    return 0


@dataclasses.dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why a service did not explain; `url` is where it was asked."""

    url: str
    why: str

    def __str__(self) -> str:
        return f"the service at {self.url}: {self.why}"


def _found(asked: Asked, settings: Settings, *, now: float) -> list[Record]:
    if not asked.url:  # a service elsewhere may have other targets than this file
        asked_for.check(asked.target, settings, kept=lambda: _kept(asked.target, settings))
    if asked.since:
        return _span(asked, settings, since=now - _seconds(asked.since, "--since"), until=now)
    if asked.at:
        return _span(asked, settings, since=0.0, until=_time(asked.at, settings))[-1:]
    url = asked.url or f"http://127.0.0.1:{settings.server.port}"
    live = _live(url, asked.target, insist=bool(asked.url))
    if not isinstance(live, NoAnswer):
        return [live]
    found = _span(asked, settings, since=0.0, until=now, silent=live)[-1:]
    sys.stderr.write(f"from the journal at {settings.journal.path}; {live}\n")
    return found


def _live(url: str, target: str, *, insist: bool) -> Record | NoAnswer:
    """The service's own answer, or why there is none: nobody runs there, or it has made no decision yet."""
    address = f"{url}/api/explain/{target}"
    try:
        answer = requests.get(address, timeout=TIMEOUT)
        if answer.status_code == NOT_FOUND:
            return NoAnswer(url, f"has made no decision for {target}")
        answer.raise_for_status()
        found = answer.json()
    except (requests.RequestException, ValueError) as error:
        if insist:
            raise UnexplainedError(f"--url: {address} does not answer: {_reason(error)}") from error
        reached = not isinstance(error, requests.ConnectionError)
        return NoAnswer(url, _reason(error) + ("" if reached else "; start it, or name it with --url"))
    if isinstance(found, dict) and "decision" in found:
        return found
    return NoAnswer(url, "answers with no explanation; is it Floorcast? name it with --url")


def _reason(error: Exception) -> str:
    """The end of a long story: requests puts what happened last, behind addresses and objects."""
    match error:
        case requests.Timeout():
            return f"no answer within {TIMEOUT:g} s"
        case requests.JSONDecodeError():
            return "answers with something that is no JSON"
        case requests.HTTPError():
            return f"answers {error.response.status_code}"
        case requests.ConnectionError():
            return str(error).rsplit(": ", 1)[-1].rstrip("\"')")
        case _:
            return str(error)


def _span(
    asked: Asked, settings: Settings, *, since: float, until: float, silent: NoAnswer | None = None
) -> list[Record]:
    """What the journal has; `silent` is why it is the journal that is asked."""
    folder = settings.journal.path
    found = list(_decisions(folder, asked.target, since=since, until=until)) if folder else []
    if found:
        return found
    hint = asked_for.known(settings) if settings.discovery.enabled else ""
    lines = [f"no decision of {asked.target} is known{hint}", *([f"  {silent}"] if silent else [])]
    raise UnexplainedError([*lines, f"  {_lacking(asked.target, settings)}"])


def _lacking(target: str, settings: Settings) -> str:
    """Why the journal does not answer."""
    folder = settings.journal.path
    if folder is None:
        return "no journal is kept: set journal.path"
    if not folder.is_dir():
        return f"the journal at {folder}: is not there"
    kept = [(str(one.get("target")), float(one["at"])) for one in _decisions(folder, "", since=0.0)]
    times = [at for name, at in kept if name == target]
    if times:
        zone = zoneinfo.ZoneInfo(settings.forecast.zone)
        first, last = (f"{dt.datetime.fromtimestamp(at, tz=zone):%Y-%m-%d %H:%M}" for at in (times[0], times[-1]))
        return f"the journal at {folder}: has none at that time, but from {first} to {last}"
    told = f"knows {', '.join(sorted({name for name, _ in kept}))} only" if kept else "is empty"
    return f"the journal at {folder}: {told}"


def _kept(target: str, settings: Settings) -> bool:
    folder = settings.journal.path
    return folder is not None and any(True for _ in _decisions(folder, target, since=0.0))


def _decisions(folder: Path, target: str, *, since: float, until: float = float("inf")) -> Iterator[Record]:
    try:
        yield from (
            one for one in journal.read(folder, since=since, until=until, target=target) if one.get("kind") == DECISION
        )
    except OSError as error:
        raise UnexplainedError(f"journal.path: {folder}: {error.strerror or error}") from error


def _seconds(text: str, flag: str) -> float:
    try:
        return durations.parse(text)
    except ValueError:
        raise ConfigurationError([f"{flag}: {text!r} is no duration; write 30m, 2h, 7d"]) from None


def _time(text: str, settings: Settings) -> float:
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError([f"--at: {text!r} is no time; write 2026-03-01T14:30 or with a zone"]) from None
    return (time if time.tzinfo else time.replace(tzinfo=zoneinfo.ZoneInfo(settings.forecast.zone))).timestamp()


def _changes(found: list[Record], settings: Settings) -> rich.table.Table:
    """One line for each decision that says something else than the one before."""
    zone = zoneinfo.ZoneInfo(settings.forecast.zone)
    table = rich.table.Table("time", "stood", "decided", "wanted", "reason", "why", box=None, pad_edge=False)
    before: object = None
    for one in found:
        made = one["decision"]
        if (made["replicas"], made["reason"]) != before:
            table.add_row(
                f"{dt.datetime.fromtimestamp(one['at'], tz=zone):%Y-%m-%d %H:%M:%S}",
                str(made["before"]),
                str(made["replicas"]),
                str(made["wanted"]),
                made["reason"],
                made["note"],
            )
        before = (made["replicas"], made["reason"])
    return table


def show(record: Record, console: rich.console.Console, *, zone: dt.tzinfo) -> None:
    """One decision for a person: the outcome first, then what it was made from, then what would have changed it."""
    made = record["decision"]
    at = dt.datetime.fromtimestamp(record["at"], tz=zone)
    change = f"{made['before']} -> {made['replicas']}" if made["before"] != made["replicas"] else f"{made['before']}"
    console.print(
        f"[bold]{record['target']}[/]  {change}  [bold]{made['reason']}[/]  ({record['mode']})", highlight=False
    )
    console.print(f"{at:%Y-%m-%d %H:%M:%S %Z}: {made['note'] or 'nothing is to be changed'}", highlight=False)
    if record.get("refused"):
        console.print(f"[red]refused: {record['refused']['reason']}: {record['refused']['detail']}[/]", highlight=False)
    for title, rows in (
        ("inputs", _inputs(record)),
        ("forecast", _forecasts(record)),
        ("needs", _needs(record)),
        ("cluster", _cluster(record)),
        ("rules that spoke", _rules(record)),
        ("what would have changed it", _what_if(record)),
    ):
        table = rich.table.Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row("", *row)
        if table.row_count:
            console.print(f"\n[bold]{title}[/]")
            console.print(table, highlight=False)


def _inputs(record: Record) -> Iterator[tuple[str, ...]]:
    for signal, one in record["inputs"].items():
        if "value" in one:
            yield signal, f"{one['value']:.4g}", f"{one['age']:.0f} s old"
        elif one["unknown"] != "not_asked":
            yield signal, f"[red]unknown: {one['unknown']}[/]", one["detail"]
    if record.get("stalled"):
        yield "engines", f"[red]stalled for {record['stalled']:.0f} s[/]", "requests run and none ends"


def _forecasts(record: Record) -> Iterator[tuple[str, ...]]:
    plans = record.get("plans") or {}
    for signal, pair in plans.get("forecasts", {}).items():
        for horizon, one in pair.items():
            if "none" in one:
                yield signal, horizon, one["none"]
            else:
                quantiles = _quantiles(one["quantiles"])
                told = f"{one['quality']}, level {one['level']:.4g}, within {one['horizon']:.0f} s: {quantiles}"
                yield signal, horizon, told
                if one.get("steady"):
                    yield signal, "", f"planned for instead, room kept all the time: {_quantiles(one['steady'])}"


def _quantiles(values: Mapping[str, float]) -> str:
    return ", ".join(f"p{float(q) * 100:g} {value:.4g}" for q, value in values.items())


def _needs(record: Record) -> Iterator[tuple[str, ...]]:
    plans = record.get("plans") or {}
    for name in ("raising", "lowering", "reacting"):
        planned = record["reacting"] if name == "reacting" else plans.get(name, {"none": "no forecast yet"})
        if "none" in planned:
            yield name, "-", planned["none"]
            continue
        for kind, need in planned["needs"].items():
            mark = " (binding)" if kind == planned["binding"] else ""
            told = f"{kind} {need['demand']:.4g} at {need['per_replica']:.4g} a replica{mark}"
            yield name, str(need["replicas"]), told
    if record.get("capacity"):
        one = record["capacity"]
        yield "capacity", f"{one['concurrency']:g}", f"in flight a replica, {one['source']}. {one['note']}".rstrip(". ")
        if sizes := one.get("sizes"):
            seen = sizes.get("unknown") or "as of late"
            told = (
                f"in flight, {sizes['throughput']:.3g} requests/s a replica, for prompts of {sizes['prompt']:.0f} and"
                f" outputs of {sizes['output']:.0f} tokens; {seen}"
            )
            yield "by size", f"{sizes['concurrency']:.3g}", told


def _cluster(record: Record) -> Iterator[tuple[str, ...]]:
    seen = record.get("cluster") or {}
    if not seen:
        return
    yield (
        "owner",
        str(seen["owner"]),
        f"{seen['standing']} stands, minimum {seen['base']}, {seen['replicas']} asked for",
    )
    soon = ", ".join(f"{seconds:.0f} s" for seconds in seen["ready_in"])
    yield "replicas", f"{seen['ready']} ready", f"{seen['warming']} warming{f' (ready in {soon})' if soon else ''}"
    for one in seen["stuck_pods"]:
        yield "stuck", f"{one['waited']:.0f} s", f"{one['pod']}: {one['reason']}: {one['message']}"
    for name, replicas in record["limits"].items():
        yield "at most", str(replicas), name
    usual = seen.get("warm_up") or {}
    if usual.get("seconds") is not None:
        yield "warm-up", f"{usual['seconds']:.0f} s", f"p90 of {usual['measured']} starts"


def _rules(record: Record) -> Iterator[tuple[str, ...]]:
    for one in record["decision"]["trail"]:
        yield one["rule"].replace("_", " "), str(one["replicas"]), f"{one['reason']}: {one['note']}"


def _what_if(record: Record) -> Iterator[tuple[str, ...]]:
    for one in record["what_if"]:
        yield one["change"], str(one["replicas"]), one["reason"]
