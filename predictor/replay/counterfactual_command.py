"""`floorcast counterfactual`: reads the journal, simulates both courses, and says what Floorcast would have changed."""

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import rich.console
import rich.progress
import rich.table

from predictor import asked_for, journal
from predictor.errors import ConfigurationError, HistoryError
from predictor.replay import counterfactual
from predictor.replay.counterfactual import Figure, Found, Terms
from predictor.settings import durations
from predictor.settings.root import Settings

LOW = 10  # niceness: a simulation takes the processor from no loop, yet ends on a machine where all is busy
OBJECTIVE = 2.0  # seconds to the first token where capacity.ttft is not set
WARM_UP = 300.0


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """What is asked.

    Attributes:
        target: as namespace/name.
        since: a span before now.
        ttft: time to the first token to keep to; empty for the target's own.
        price: of one GPU and hour.
        currency: sign before a price.
        seeds: how many times it is simulated.
        as_json: for machines.
    """

    target: str
    since: str = "24h"
    ttft: str = ""
    price: float = 3.5
    currency: str = "$"
    seeds: int = 5
    as_json: bool = False


def run(asked: Asked, settings: Settings, *, now: float, console: rich.console.Console | None = None) -> int:
    """Shows it on standard output; 0.

    Raises:
        ConfigurationError: the question cannot be understood, or there is no journal.
        HistoryError: the journal does not say enough.
    """
    os.nice(LOW - os.nice(0))
    console = console or rich.console.Console()
    asked_for.check(asked.target, settings, kept=lambda: any(True for _ in _records(asked, settings, now=now)))
    terms = _terms(asked, settings)
    given = counterfactual.recorded(_records(asked, settings, now=now), warm_up=terms.warm_up, target=asked.target)
    with _progress(asked) as progress:
        task = progress.add_task("simulating", total=1.0)
        found = counterfactual.run(given, terms, tell=lambda share: progress.update(task, completed=share))
    if asked.as_json:
        console.file.write(json.dumps(dataclasses.asdict(found)) + "\n")
    else:
        _show(found, asked, terms, console)
    return 0


def _terms(asked: Asked, settings: Settings) -> Terms:
    given = next((one for one in settings.targets if one.key == asked.target), settings.defaults)
    objective = _seconds(asked.ttft, "--ttft") if asked.ttft else given.capacity.ttft or OBJECTIVE
    if asked.seeds < 2:  # noqa: PLR2004  (an interval takes two)
        raise ConfigurationError(
            [f"--seeds: {asked.seeds} is less than 2, which an error bar takes; 5 is a good number"]
        )
    return Terms(objective=objective, price=asked.price, warm_up=given.warm_up, seeds=asked.seeds)


def _records(asked: Asked, settings: Settings, *, now: float) -> Iterator[Mapping[str, Any]]:
    folder = settings.journal.path
    if folder is None:
        raise ConfigurationError(["journal.path: is not set; without a journal nothing is known of the past"])
    try:
        yield from journal.read(folder, since=now - _seconds(asked.since, "--since"), until=now, target=asked.target)
    except OSError as error:
        raise HistoryError(f"journal.path: {folder}: {error.strerror or error}") from error


def _seconds(text: str, flag: str) -> float:
    try:
        return durations.parse(text)
    except ValueError:
        raise ConfigurationError([f"{flag}: {text!r} is no duration; write 2s, 24h, 7d"]) from None


def _progress(asked: Asked) -> contextlib.AbstractContextManager[rich.progress.Progress]:
    return rich.progress.Progress(console=rich.console.Console(stderr=True), transient=True, disable=asked.as_json)


def _show(found: Found, asked: Asked, terms: Terms, console: rich.console.Console) -> None:
    table = rich.table.Table("", "really ran", "with Floorcast", "difference", box=None)
    for name, told, form in (
        ("missed", f"later than {terms.objective:g} s", "{:,.0f}"),
        ("replica_hours", "replica-hours", "{:,.1f}"),
        ("warming_hours", "of these warming", "{:,.1f}"),
        ("starts", "starts", "{:,.0f}"),
        ("cost", "cost", asked.currency + "{:,.2f}"),
    ):
        figures = (found.ran[name], found.would[name], found.difference[name])
        table.add_row(told, *(_told(figure, form) for figure in figures))
    console.print(f"[bold]{asked.target}[/], {found.hours:.1f} h, {found.requests:,.0f} requests, simulated:")
    console.print(table)
    console.print(_sentence(found, asked), highlight=False)
    if found.missing > 0.01:  # noqa: PLR2004  (a per cent is a quarter of an hour of a day)
        console.print(f"[yellow]{found.missing:.0%} of the time nothing was recorded, and counts as no load.[/]")


def _sentence(found: Found, asked: Asked) -> str:
    spared, cost = found.difference["missed"], found.difference["cost"]
    fewer = "fewer" if spared.mean <= 0 else "more"
    more = "more" if cost.mean >= 0 else "less"
    late = f"{abs(spared.mean):,.0f} ± {spared.error:,.0f} {fewer} late answers"
    money = f"{asked.currency}{abs(cost.mean):,.2f} ± {cost.error:,.2f} {more}"
    if abs(spared.mean) <= spared.error:
        return f"Floorcast would have made no difference to answers that could be told ({late}), for {money}."
    return f"Floorcast would have meant {late}, for {money}."


def _told(figure: Figure, form: str) -> str:
    return f"{form.format(figure.mean)} ± {form.format(figure.error).lstrip('$€£')}"
