"""What a history says: of the forecast, of the policies, of what Floorcast would have changed."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from predictor.commands import options


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
    config: options.ConfigOption = None,
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
    settings = options.settings(config, {}) if since or config else None
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


def simulate(  # noqa: PLR0913, PLR0917  (one parameter a flag)
    file: Annotated[
        Path | None,
        typer.Option("--file", help="Columns arrival_s, or minute and requests; tokens.", show_default=False),
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
    config: options.ConfigOption = None,
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
    warm_up: Annotated[str, typer.Option(help="Of a new replica; 3m..8m: drawn evenly between.")] = "5m",
    retries: Annotated[int, typer.Option(help="How often a client that gave up comes back.")] = 0,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            help="A policy to compare, or one's own by the value of its knob: hpa-in-flight=20; repeat it for more.",
            show_default="all there are; with --hpa floorcast",
        ),
    ] = None,
    hpa: Annotated[
        list[Path] | None,
        typer.Option(
            "--hpa",
            help="A YAML file with one's own HorizontalPodAutoscaler or ScaledObject; repeat it for more.",
            show_default=False,
        ),
    ] = None,
    minimum: Annotated[int | None, typer.Option(help="Replicas at least.", show_default="1, or that of --hpa")] = None,
    maximum: Annotated[
        int | None, typer.Option(help="Replicas at most.", show_default="twice what the peak needs, or that of --hpa")
    ] = None,
    sweep: Annotated[int, typer.Option(help="Runs of each policy at other settings, for the frontier.")] = 2,
    prompt: Annotated[float, typer.Option(help="Mean prompt tokens where --file or --since has none.")] = 1000.0,
    output: Annotated[float, typer.Option(help="Mean output tokens, likewise.")] = 200.0,
    burstiness: Annotated[
        float | None,
        typer.Option(
            help="Coefficient of variation of the time between requests that counts do not tell apart.",
            show_default="1: Poisson",
        ),
    ] = None,
    price: Annotated[float, typer.Option(help="Of one GPU and hour.")] = 3.5,
    currency: Annotated[str, typer.Option(help="Sign before a price.")] = "$",
    seed: Annotated[int, typer.Option(help="Of everything drawn.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("simulation"),
) -> None:
    """Say what a workload would have cost under an HPA, under KEDA, under Floorcast: on a simulated fleet."""
    settings = options.settings(config, {}) if since or config else None
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
        retries=retries,
        policies=tuple(policy or ()),
        hpa=tuple(hpa or ()),
        minimum=minimum,
        maximum=maximum,
        sweep=sweep,
        burstiness=burstiness,
        tokens=(prompt, output),
        price=price,
        currency=currency,
        seed=seed,
        out=out,
        arguments=tuple(sys.argv[2:]),
    )
    raise typer.Exit(simulation.run(asked))


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
    config: options.ConfigOption = None,
) -> None:
    """Say what Floorcast would have changed in shadow mode: late answers, replica-hours, money, with an error bar."""
    settings = options.settings(config, {})
    from predictor.clock import SystemClock  # noqa: PLC0415
    from predictor.replay import counterfactual_command as command  # noqa: PLC0415  (late: it compiles the fleet)

    asked = command.Asked(target, since, ttft=ttft, price=price, currency=currency, seeds=seeds, as_json=json)
    raise typer.Exit(command.run(asked, settings, now=SystemClock().now()))
