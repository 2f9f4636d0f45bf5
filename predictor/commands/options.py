"""What several commands share: flags, and the configuration they read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from predictor.settings.loading import Watch
    from predictor.settings.root import Settings

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


def settings(config: Path | None, flags: dict[str, tuple[str, str | None]]) -> "Settings":
    """The configuration of a file and flags: flag -> key and value, None where it is not given."""
    return watch(config, flags).first()


def watch(config: Path | None, flags: dict[str, tuple[str, str | None]]) -> "Watch":
    """The same, for who takes up a changed file."""
    from predictor.settings import loading  # noqa: PLC0415  (late: pydantic takes a third of a second)

    given = tuple(
        loading.Flag(name, tuple(key.split(".")), value) for name, (key, value) in flags.items() if value is not None
    )
    return loading.Watch(config, given)


def cluster_flags(
    log_level: str | None, log_format: str | None, kubeconfig: str | None
) -> dict[str, tuple[str, str | None]]:
    """Those of every command that talks to a cluster."""
    return {
        "--log-level": ("log.level", log_level),
        "--log-format": ("log.format", log_format),
        "--kubeconfig": ("kubernetes.kubeconfig", kubeconfig),
    }
