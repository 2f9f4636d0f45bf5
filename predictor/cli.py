"""The command line: reads what was asked for, hands it on, and turns every expected failure into an exit code.

Exit codes: 0 done; 1 a failure while running; 2 the configuration or the command line cannot be used.
Whatever takes long to import is imported by the command that needs it, so that --help answers at once.
"""

import importlib.metadata
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from predictor.errors import ConfigurationError, FloorcastError

if TYPE_CHECKING:
    from predictor.settings.loading import Watch
    from predictor.settings.root import Settings

app = typer.Typer(
    name="floorcast",
    help="Predictive autoscaler for LLM inference: moves the floor under your autoscaler before the load arrives.",
    epilog="Exit codes: 0 done, 1 a failure while running, 2 configuration or command line unusable.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
config_app = typer.Typer(help="Look at the configuration without running anything.", no_args_is_help=True)
app.add_typer(config_app, name="config")

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="The YAML file. Without it $FLOORCAST_CONFIG, else config/floorcast.yaml, else"
        " /etc/floorcast/floorcast.yaml.",
        show_default=False,
    ),
]
ModeOption = Annotated[str | None, typer.Option("--mode", help="shadow or control.", show_default=False)]
LogLevelOption = Annotated[
    str | None, typer.Option("--log-level", help="debug, info, warning or error.", show_default=False)
]
LogFormatOption = Annotated[str | None, typer.Option("--log-format", help="json or console.", show_default=False)]
PortOption = Annotated[str | None, typer.Option("--port", help="Port of metrics and health.", show_default=False)]
KubeconfigOption = Annotated[
    str | None, typer.Option("--kubeconfig", help="A kubeconfig file to use.", show_default=False)
]


def main() -> None:
    """What the `floorcast` command runs; the one place where expected failures end."""
    try:
        app()
    except FloorcastError as error:
        for line in error.lines:
            sys.stderr.write(f"{line}\n")
        sys.exit(error.exit_code)


@app.command()
def run(  # noqa: PLR0913, PLR0917  (one parameter a flag)
    config: ConfigOption = None,
    mode: ModeOption = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
    port: PortOption = None,
    kubeconfig: KubeconfigOption = None,
    reload: Annotated[bool, typer.Option(help="Take up a changed file; an invalid one changes nothing.")] = True,  # noqa: FBT002
) -> None:
    """Run the service: both loops, metrics and health, until it is told to stop."""
    watch = _watch(
        config,
        {
            "--mode": ("mode", mode),
            "--log-level": ("log.level", log_level),
            "--log-format": ("log.format", log_format),
            "--port": ("server.port", port),
            "--kubeconfig": ("kubernetes.kubeconfig", kubeconfig),
        },
    )
    settings = watch.first()
    from predictor import app as service  # noqa: PLC0415  (late: it brings in statsforecast and the cluster client)

    raise typer.Exit(service.run(settings, watch if reload else None))


@app.command()
def release(  # noqa: PLR0913, PLR0917  (one parameter a flag)
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            help="Targets as namespace/name; without any all, and what else carries our annotations.",
            show_default=False,
        ),
    ] = None,
    everywhere: Annotated[  # noqa: FBT002
        bool, typer.Option("--all-namespaces", "-A", help="Look for our annotations in the whole cluster.")
    ] = False,
    lasting: Annotated[
        str,
        typer.Option(
            "--for",
            help="How long a Floorcast that runs leaves them alone, as 10m; 0 not at all.",
            show_default="until `floorcast resume`",
        ),
    ] = "",
    config: ConfigOption = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Give the original minimum of each target back and forget it; safe to repeat, also while the service runs."""
    settings = _settings(config, _cluster_flags(log_level, log_format, kubeconfig))
    keys = _known(targets or [], settings)
    from predictor import releasing  # noqa: PLC0415  (late, as in run)
    from predictor.settings import durations  # noqa: PLC0415

    try:
        seconds = durations.parse(lasting) if lasting else None
    except ValueError as error:
        raise ConfigurationError([f"--for: {error}"]) from None
    asked = releasing.Release(lasting=seconds, everywhere=everywhere)
    raise typer.Exit(releasing.release(settings, keys, asked=asked))


@app.command()
def resume(
    targets: Annotated[
        list[str] | None, typer.Argument(help="Targets as namespace/name; all without any.", show_default=False)
    ] = None,
    config: ConfigOption = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Let the service write what was released, or left to somebody else who kept changing it back."""
    settings = _settings(config, _cluster_flags(log_level, log_format, kubeconfig))
    keys = _known(targets or [], settings)
    from predictor import releasing  # noqa: PLC0415  (late, as in run)

    raise typer.Exit(releasing.resume(settings, keys))


@app.command()
def demo(  # noqa: PLR0913, PLR0917  (one parameter a flag)
    headless: Annotated[bool, typer.Option("--headless", help="No page and no waiting: print a summary.")] = False,  # noqa: FBT002
    json: Annotated[bool, typer.Option("--json", help="The same as one JSON object.")] = False,  # noqa: FBT002
    seed: Annotated[int, typer.Option(help="Of traffic and warm-ups; the same seed gives the same day.")] = 1,
    hours: Annotated[float, typer.Option(help="Simulated hours, from midnight.")] = 24.0,
    minutes: Annotated[float, typer.Option(help="Real minutes a simulated day takes on the page.")] = 10.0,
    owner: Annotated[
        Literal["hpa", "scale"], typer.Option(help="A floor under an HPA, or the replica count itself.")
    ] = "hpa",
    days: Annotated[int, typer.Option(help="Earlier days of generated history at the start; 0 is a cold start.")] = 8,
    rival: Annotated[
        Literal["queue", "load"], typer.Option(help="What the HPAs follow: the queue, or running and waiting requests.")
    ] = "queue",
    host: Annotated[str, typer.Option(help="Address to serve the page on.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(help="Port of the page; 8080, or a free one.", show_default=False)] = None,
    stay: Annotated[bool, typer.Option(help="Keep serving the page when the day is over.")] = True,  # noqa: FBT002
) -> None:
    """Show everything on this machine, without a cluster: a simulated fleet, both loops, a live page."""
    from predictor import ports  # noqa: PLC0415  (late: numpy)
    from predictor.demo import options, run  # noqa: PLC0415  (late: it brings in statsforecast and the fleet)

    page = options.Output.TABLE if headless else options.Output.PAGE
    chosen = options.DemoOptions(
        seed=seed,
        hours=hours,
        minutes=minutes,
        output=options.Output.JSON if json else page,
        owner=ports.Owner(owner),
        days=days,
        rival=options.Rival(rival),
        host=host,
        port=port,
        stay=stay,
    )
    raise typer.Exit(run(chosen))


@app.command()
def backtest(  # noqa: PLR0913, PLR0917  (one parameter a flag)
    file: Annotated[
        list[Path] | None,
        typer.Option("--file", help="A file in the traces' format; repeat it for more.", show_default=False),
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Any CSV file, with --columns.", show_default=False)] = None,
    columns: Annotated[
        str, typer.Option(help="Its columns: time=ts,requests=rps[,target=..,in_flight=..].", show_default=False)
    ] = "",
    unit: Annotated[
        Literal["rate", "count", "total"], typer.Option(help="Its requests: a second, a row, or a running total.")
    ] = "rate",
    zone: Annotated[str, typer.Option(help="Time zone of times that name none, and of hours of day.")] = "UTC",
    since: Annotated[
        str, typer.Option(help="How much history to ask Prometheus for, as 14d; with --config.", show_default=False)
    ] = "",
    config: ConfigOption = None,
    warm_up: Annotated[
        str, typer.Option(help="Of a new replica: 5m, or several: 2m,5m,10m.", show_default="5m, or as configured")
    ] = "",
    every: Annotated[str, typer.Option(help="Distance between two forecasts.")] = "2m",
    step: Annotated[
        str, typer.Option(help="Distance between two points.", show_default="1m, or as recorded or configured")
    ] = "",
    quantile: Annotated[
        float | None, typer.Option(help="Judge the floor at this one only.", show_default=False)
    ] = None,
    objective: Annotated[float, typer.Option(help="Share of the load that should find enough replicas.")] = 0.99,
    concurrency: Annotated[
        float | None, typer.Option(help="Requests in flight one replica carries.", show_default=False)
    ] = None,
    throughput: Annotated[
        float | None, typer.Option(help="Requests a second one replica carries.", show_default=False)
    ] = None,
    duration: Annotated[str, typer.Option(help="Time a request takes, with --concurrency.", show_default=False)] = "",
    slow: Annotated[bool, typer.Option(help="Compare with ARIMA, Kalman and AutoETS too.")] = True,  # noqa: FBT002
    out: Annotated[Path, typer.Option(help="Folder for report.html and backtest.csv.")] = Path("backtest"),
) -> None:
    """Replay a history and say whether a floor pays on it, at which quantile, and why not if not."""
    settings = _settings(config, {}) if since or config else None
    from predictor.replay import command, csvfiles  # noqa: PLC0415  (late: it brings in statsforecast and plotly)

    asked = command.Asked(
        files=tuple(file or ()),
        csv=csv,
        columns=columns,
        unit=csvfiles.Unit(unit),
        zone=zone,
        since=since,
        settings=settings,
        warm_up=warm_up,
        every=every,
        step=step,
        quantile=quantile,
        objective=objective,
        concurrency=concurrency,
        throughput=throughput,
        duration=duration,
        slow=slow,
        out=out,
        arguments=tuple(sys.argv[2:]),
    )
    raise typer.Exit(command.run(asked))


@app.command()
def simulate(  # noqa: PLR0913, PLR0917  (one parameter a flag)
    file: Annotated[
        Path | None, typer.Option("--file", help="A file in the traces' format.", show_default=False)
    ] = None,
    generate: Annotated[
        str | None,
        typer.Option(
            "--generate",
            help="A generated workload: rate=20,day=0.5,surge=6h:3:30m (also peak, hour, weekend, growth, noise, cv,"
            " prompt, output, days); '' for the defaults.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str, typer.Option(help="How much history to ask Prometheus for, as 9d; with --config.", show_default=False)
    ] = "",
    config: ConfigOption = None,
    target: Annotated[str, typer.Option(help="As namespace/name, with --since.", show_default=False)] = "",
    hours: Annotated[float, typer.Option(help="Simulated hours: the last ones of a recording.")] = 24.0,
    profile: Annotated[str, typer.Option(help="What one replica is; a wrong name lists all.")] = "llama-8b-h100",
    concurrency: Annotated[
        float | None,
        typer.Option(help="Requests in flight a replica is planned for.", show_default="by a load test"),
    ] = None,
    ttft: Annotated[
        str, typer.Option(help="Time to the first token to keep to, as 2s.", show_default="twice an idle replica's")
    ] = "",
    attainment: Annotated[float, typer.Option(help="Share of the requests that should keep to it.")] = 0.99,
    warm_up: Annotated[str, typer.Option(help="Of a new replica.")] = "5m",
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", help="A policy to compare; repeat it for more.", show_default="all there are"),
    ] = None,
    maximum: Annotated[
        int | None, typer.Option(help="Replicas at most.", show_default="twice what the peak needs")
    ] = None,
    sweep: Annotated[int, typer.Option(help="Runs of each policy at other settings, for the frontier.")] = 2,
    prompt: Annotated[float, typer.Option(help="Mean prompt tokens where nothing says, with --since.")] = 1000.0,
    output: Annotated[float, typer.Option(help="Mean output tokens, likewise.")] = 200.0,
    price: Annotated[float, typer.Option(help="Of one GPU and hour.")] = 3.5,
    currency: Annotated[str, typer.Option(help="Sign before a price.")] = "$",
    seed: Annotated[int, typer.Option(help="Of everything drawn.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("simulation"),
) -> None:
    """Say what a workload would have cost under an HPA, under KEDA, under Floorcast: on a simulated fleet."""
    settings = _settings(config, {}) if since or config else None
    from predictor.replay import simulate as simulation  # noqa: PLC0415  (late: rich and the settings)

    asked = simulation.Asked(
        file=file,
        generate=generate,
        since=since,
        settings=settings,
        target=target,
        hours=hours,
        profile=profile,
        concurrency=concurrency,
        objective=ttft,
        attainment=attainment,
        warm_up=warm_up,
        policies=tuple(policy or ()),
        maximum=maximum,
        sweep=sweep,
        tokens=(prompt, output),
        price=price,
        currency=currency,
        seed=seed,
        out=out,
        arguments=tuple(sys.argv[2:]),
    )
    raise typer.Exit(simulation.run(asked))


@app.command()
def counterfactual(  # noqa: PLR0913, PLR0917  (one parameter a flag)
    target: Annotated[str, typer.Argument(help="The target, as namespace/name.", show_default=False)],
    since: Annotated[str, typer.Option(help="How much of the journal, as 24h.")] = "24h",
    ttft: Annotated[
        str, typer.Option(help="Time to the first token to keep to, as 2s.", show_default="capacity.ttft, or 2s")
    ] = "",
    price: Annotated[float, typer.Option(help="Of one GPU and hour.")] = 3.5,
    currency: Annotated[str, typer.Option(help="Sign before a price.")] = "$",
    seeds: Annotated[int, typer.Option(help="Simulations, for the error bar.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,  # noqa: FBT002
    config: ConfigOption = None,
) -> None:
    """Say what Floorcast would have changed in shadow mode: late answers, replica-hours, money, with an error bar."""
    settings = _settings(config, {})
    from predictor.clock import SystemClock  # noqa: PLC0415
    from predictor.replay import counterfactual_command as command  # noqa: PLC0415  (late: it compiles the fleet)

    asked = command.Asked(target, since, ttft=ttft, price=price, currency=currency, seeds=seeds, as_json=json)
    raise typer.Exit(command.run(asked, settings, now=SystemClock().now()))


@app.command()
def explain(
    target: Annotated[str, typer.Argument(help="The target, as namespace/name.", show_default=False)],
    at: Annotated[
        str, typer.Option(help="The decision that held at a time, as 2026-03-01T14:30.", show_default="now")
    ] = "",
    since: Annotated[str, typer.Option(help="All changes of the last while, as 2h.", show_default=False)] = "",
    json: Annotated[bool, typer.Option("--json", help="All of it, for machines.")] = False,  # noqa: FBT002
    url: Annotated[
        str, typer.Option(help="Of the running service.", show_default="server.port on this machine, else the journal")
    ] = "",
    config: ConfigOption = None,
) -> None:
    """Say why the number is what it is: inputs, forecast, needs, the rules in order, and what would have changed it."""
    settings = _settings(config, {})
    from predictor import explained  # noqa: PLC0415  (late: numpy and rich)
    from predictor.clock import SystemClock  # noqa: PLC0415

    asked = explained.Asked(target, at=at, since=since, url=url.rstrip("/"), as_json=json)
    raise typer.Exit(explained.run(asked, settings, now=SystemClock().now()))


@config_app.command()
def validate(config: ConfigOption = None) -> None:
    """Read the configuration as `run` would and say what it comes to; exit code 2 when it cannot be used."""
    settings = _settings(config, {})
    from predictor.settings import summary  # noqa: PLC0415  (late: rich tables)

    summary.show(settings)


@config_app.command()
def reference() -> None:
    """Print every key with its default and what it means, as a YAML file to start from."""
    from predictor.settings import reference as keys  # noqa: PLC0415  (late: not needed by any other command)

    sys.stdout.write(keys.yaml_file())


@config_app.command()
def schema() -> None:
    """Print the JSON schema of the configuration file, for editors."""
    from predictor.settings import reference as keys  # noqa: PLC0415  (late: not needed by any other command)

    sys.stdout.write(keys.json_schema())


@app.command()
def version() -> None:
    """Print the version."""
    sys.stdout.write(f"floorcast {importlib.metadata.version('floorcast')}\n")


def _settings(config: Path | None, flags: dict[str, tuple[str, str | None]]) -> "Settings":
    return _watch(config, flags).first()


def _watch(config: Path | None, flags: dict[str, tuple[str, str | None]]) -> "Watch":
    from predictor.settings import loading  # noqa: PLC0415  (late: pydantic takes a third of a second)

    given = tuple(
        loading.Flag(name, tuple(key.split(".")), value) for name, (key, value) in flags.items() if value is not None
    )
    return loading.Watch(config, given)


def _cluster_flags(
    log_level: str | None, log_format: str | None, kubeconfig: str | None
) -> dict[str, tuple[str, str | None]]:
    return {
        "--log-level": ("log.level", log_level),
        "--log-format": ("log.format", log_format),
        "--kubeconfig": ("kubernetes.kubeconfig", kubeconfig),
    }


def _known(keys: list[str], settings: "Settings") -> tuple[str, ...]:
    """The keys, refused when one is none of the targets; of those that are found by label nothing is known here."""
    every = tuple(target.key for target in settings.targets)
    strangers = [key for key in keys if key not in every and not settings.discovery.enabled]
    if strangers:
        names = ", ".join(every) or "none"
        raise ConfigurationError(
            f"TARGETS: {key!r} is no target of the configuration; the targets are {names}" for key in strangers
        )
    return tuple(keys)


if __name__ == "__main__":
    main()
