"""Questions that change nothing: why a number is what it is, and what the configuration says."""

import sys
from typing import Annotated

import typer

from predictor.commands import options


def explain(
    target: Annotated[str, typer.Argument(help="The target, as namespace/name.", show_default=False)],
    at: Annotated[
        str,
        typer.Option(
            help="The decision that held at a time, as 2026-03-01T14:30 in forecast.zone; from the journal.",
            show_default="now",
        ),
    ] = "",
    since: Annotated[
        str, typer.Option(help="All changes of the last while, as 2h; from the journal.", show_default=False)
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="All of it, for machines.")] = False,  # noqa: FBT002
    url: Annotated[
        str, typer.Option(help="Of the running service.", show_default="server.port on this machine, else the journal")
    ] = "",
    config: options.ConfigOption = None,
) -> None:
    """Say why the number is what it is: inputs, forecast, needs, the rules in order, and what would have changed it."""
    settings = options.settings(config, {})
    from predictor import explained  # noqa: PLC0415  (late: numpy and rich)
    from predictor.clock import SystemClock  # noqa: PLC0415

    asked = explained.Asked(target, at=at, since=since, url=url.rstrip("/"), as_json=json)
    raise typer.Exit(explained.run(asked, settings, now=SystemClock().now()))


def validate(config: options.ConfigOption = None) -> None:
    """Read the configuration as `run` would and say what it comes to; exit code 2 when it cannot be used."""
    settings = options.settings(config, {})
    from predictor.settings import summary  # noqa: PLC0415  (late: rich tables)

    summary.show(settings)


def reference() -> None:
    """Print every key with its default and what it means, as a YAML file to start from."""
    from predictor.settings import reference as keys  # noqa: PLC0415  (late: not needed by any other command)

    sys.stdout.write(keys.yaml_file())


def schema() -> None:
    """Print the JSON schema of the configuration file, for editors."""
    from predictor.settings import reference as keys  # noqa: PLC0415  (late: not needed by any other command)

    sys.stdout.write(keys.json_schema())
