"""The demo: everything on one machine, without a cluster."""

from typing import Annotated, Literal

import typer


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
