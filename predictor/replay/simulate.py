"""`floorcast simulate`: what a workload would have cost under each policy."""

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import rich.console
import rich.progress
import rich.table

from predictor.clock import SystemClock
from predictor.errors import ConfigurationError
from predictor.ports import Clock
from predictor.replay import commandline, simulatepolicies
from predictor.settings.root import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from predictor.replay.simulateload import Workload
    from predictor.replay.simulatemanifest import Own
    from predictor.replay.simulatereport import Told

PROFILE = "llama-8b-h100"
MOST_RETRIES = 10  # each after a pause twice as long: the last one comes after a quarter of an hour


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The command line; a source is one of `file`, `generate` and `since`. Durations are still text.

    Attributes:
        file: in the traces' format.
        generate: parameters of a generated workload; None where it is not asked for.
        since: how far back a Prometheus is asked, with `settings`.
        settings: the configuration, with `since`.
        target: which of its targets; the only one where there is just one.
        hours: simulated, the last ones of a recording.
        profile: name of a replica, or a JSON file.
        concurrency: requests in flight a replica is planned for; None for what a load test says.
        objective: time to the first token; empty for twice an idle replica's.
        attainment: share of the requests that should meet it.
        warm_up: of a replica; shortest and longest as 3m..8m.
        retries: how often a client that gave up comes back.
        policies: as NAME, or NAME=VALUE of its knob; none for all there are.
        hpa: manifests of one's own HorizontalPodAutoscalers and ScaledObjects.
        minimum: replicas at least; None for that of the first manifest, and 1 without.
        maximum: replicas at most; None for that of the first manifest, and twice what the peak needs without.
        sweep: runs of each policy at other settings.
        burstiness: coefficient of variation of the time between requests inside a step of counts; None for Poisson.
        tokens: mean prompt and output where the recording does not say.
        price: of one GPU and hour.
        currency: its sign.
        seed: of everything drawn.
        out: folder of the report.
        arguments: the command line as it was given.
    """

    file: Path | None = None
    generate: str | None = None
    since: str = ""
    settings: Settings | None = None
    target: str = ""
    hours: float = 24.0
    profile: str = PROFILE
    concurrency: float | None = None
    objective: str = ""
    attainment: float = 0.99
    warm_up: str = "5m"
    retries: int = 0
    policies: tuple[str, ...] = ()
    hpa: tuple[Path, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    sweep: int = 2
    burstiness: float | None = None
    tokens: tuple[float, float] = (1000.0, 200.0)
    price: float = 3.5
    currency: str = "$"
    seed: int = 1
    out: Path = Path("simulation")
    arguments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sources = sum((self.file is not None, self.generate is not None, bool(self.since)))
        if sources != 1:
            raise ConfigurationError(
                f"{sources} sources are given; give one of --file, --generate, or --since with --config"
            )
        if not 0 < self.attainment < 1:
            raise ConfigurationError(f"--attainment: {self.attainment:g} must lie between 0 and 1, as 0.99")
        for name in ("hours", "price", "concurrency", "minimum", "maximum"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigurationError(f"--{name}: {value:g} must be a positive number")
        for name, mean in zip(("prompt", "output"), self.tokens, strict=True):
            if not mean >= 1:
                raise ConfigurationError(f"--{name}: {mean:g} must be at least 1 token")
        if not 0 <= self.retries <= MOST_RETRIES:
            raise ConfigurationError(f"--retries: {self.retries} must lie in 0..{MOST_RETRIES}")
        if self.sweep < 0:
            raise ConfigurationError(f"--sweep: {self.sweep} must not be negative; 0 runs each policy as set up only")
        _ = self.chosen  # refused before half a minute of load test

    @property
    def chosen(self) -> tuple[simulatepolicies.Chosen, ...]:
        """The policies with the values that were given."""
        return tuple(map(simulatepolicies.parse, self.policies))

    def bounds(self, own: "Sequence[Own]") -> tuple[int, int | None]:
        """Replicas of the policies without a manifest, at least and at most: as given, else those of the first one.

        Raises:
            ConfigurationError: they are the wrong way round.
        """
        first = own[0] if own else None
        least = self.minimum or (max(first.minimum, 1) if first else 1)
        most = self.maximum or (first.maximum if first else None)
        if most is not None and least > most:
            whose = f"--maximum, {most}" if self.maximum or first is None else f"the maximum of {first.name}, {most}"
            raise ConfigurationError(f"--minimum: {least} must not be above {whose}; give both")
        return least, most


def run(given: Asked, *, clock: Clock | None = None) -> int:
    """Runs the simulation and prints what it comes to. Returns the exit code.

    Raises:
        ConfigurationError: the command line cannot be used.
        HistoryError: the recorded history cannot be.
    """
    from predictor.replay import simulatereport  # noqa: PLC0415  (late: it brings in numba)

    with commandline.progress(rich.console.Console(stderr=True)) as bar:
        told = made(given, (clock or SystemClock()).now(), bar)
    written = simulatereport.write(told, given.out)
    out = rich.console.Console()
    _show(told, out)
    for note in filter(lambda one: one.doubtful, told.notes):
        out.print(f"note: {note.where}: {note.what}", highlight=False, soft_wrap=True, markup=False)
    out.print(f"\n{told.headline}\n", highlight=False, soft_wrap=True, markup=False)
    out.print(f"{', '.join(map(str, written))} have the rest.", highlight=False, soft_wrap=True, markup=False)
    return 0


def made(given: Asked, now: float, bar: rich.progress.Progress) -> "Told":
    """What the simulation finds; `now` is Unix seconds."""
    from predictor.replay import (  # noqa: PLC0415  (late: numba)
        profilefile,
        simulateload,
        simulatemanifests,
        simulatereport,
        simulateruns,
    )

    own = simulatemanifests.read(given.hpa)
    minimum, maximum = given.bounds(own)
    profile = profilefile.read(given.profile)
    step = bar.add_task("reading", total=1.0)
    load = _workload(given, now)
    if given.burstiness is not None:
        load = simulateload.bursty(load, given.burstiness)
    question = simulateruns.Question(
        profile=profile,
        warm_up=_warm_up(given.warm_up),
        retries=given.retries,
        objective=commandline.seconds("--ttft", given.objective) if given.objective else None,
        concurrency=given.concurrency,
        policies=given.chosen,
        own=own,
        minimum=minimum,
        maximum=maximum,
        sweep=given.sweep,
        seed=given.seed,
    )
    found = simulateruns.run(
        load, question, tell=lambda what, share: bar.update(step, description=what, completed=share)
    )  # fmt: skip
    return simulatereport.Told(
        command=shlex.join(("floorcast", "simulate", *given.arguments)),
        workload=load.name,
        found=found,
        price=given.price,
        currency=given.currency,
        attainment=given.attainment,
        notes=(*load.notes, *(note for one in own for note in one.notes)),
    )


def _warm_up(text: str) -> tuple[float, float]:
    """Shortest and longest."""
    first, between, last = text.partition("..")
    shortest = commandline.seconds("--warm-up", first)
    longest = commandline.seconds("--warm-up", last) if between else shortest
    if longest < shortest:
        raise ConfigurationError(f"--warm-up: {text!r}: the shorter one comes first, as 3m..8m")
    return shortest, longest


def _workload(given: Asked, now: float) -> "Workload":
    from predictor.replay import simulatefiles, simulateload  # noqa: PLC0415  (late: numba)

    if given.file is not None:
        return simulatefiles.read(given.file, hours=given.hours, seed=given.seed, tokens=given.tokens)
    if given.generate is not None:
        return simulateload.generated(given.generate, hours=given.hours, seed=given.seed)
    return _remembered(given, now)


def _remembered(given: Asked, now: float) -> "Workload":
    from predictor.replay import asked, simulateload  # noqa: PLC0415  (late, as above, and the Prometheus client)
    from predictor.settings import convert  # noqa: PLC0415

    since, settings = commandline.since(given.since), commandline.prometheus(given.settings)
    targets = {target.key: target for target in convert.targets(settings)}
    name = given.target or (next(iter(targets)) if len(targets) == 1 else "")
    if name not in targets:
        raise ConfigurationError(f"--target: {name!r} is none of the configuration's; use one of {', '.join(targets)}")
    until = now - settings.source.prometheus.scrape_interval
    span = asked.Span(until - since, until, settings.history.step)
    recorded = asked.remembered(settings, [targets[name]], simulateload.SIGNALS, span)
    return simulateload.recorded(recorded, name, hours=given.hours, seed=given.seed, tokens=given.tokens)


def _show(told: "Told", console: rich.console.Console) -> None:
    goal = f"tuned for {told.attainment * 100:.4g} %"
    names = rich.table.Column("policy", no_wrap=True)
    table = rich.table.Table(names, "in time", "hours", "starts", "TTFT p99", "cost", goal)
    for one in told.found.raced:
        table.add_row(
            one.name,
            f"{one.outcome.attainment * 100:.3f} %",
            f"{one.outcome.replica_hours:.1f}",
            str(one.outcome.starts),
            f"{one.outcome.ttft_p99:.2f} s",
            f"{told.currency}{told.cost(one):,.2f}",
            told.tuned_shown(one),
        )
    console.print(table)
    if any(told.tuned_shown(one).startswith("≤") for one in told.found.raced):
        console.print("≤: the cheapest run is that good already; it may cost less at another setting.")
