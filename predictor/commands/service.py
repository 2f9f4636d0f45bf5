"""The service, and what it has done to a cluster."""

from typing import TYPE_CHECKING, Annotated

import typer

from predictor.commands import options
from predictor.errors import ConfigurationError

if TYPE_CHECKING:
    from predictor.settings.root import Settings


def run(  # noqa: PLR0913, PLR0917  (one parameter a flag)
    config: options.ConfigOption = None,
    mode: options.ModeOption = None,
    log_level: options.LogLevelOption = None,
    log_format: options.LogFormatOption = None,
    port: options.PortOption = None,
    kubeconfig: options.KubeconfigOption = None,
    reload: Annotated[bool, typer.Option(help="Take up a changed file; an invalid one changes nothing.")] = True,  # noqa: FBT002
) -> None:
    """Run the service: both loops, metrics and health, until it is told to stop."""
    watch = options.watch(
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
    config: options.ConfigOption = None,
    log_level: options.LogLevelOption = None,
    log_format: options.LogFormatOption = None,
    kubeconfig: options.KubeconfigOption = None,
) -> None:
    """Give the original minimum of each target back and forget it; safe to repeat, also while the service runs."""
    settings = options.settings(config, options.cluster_flags(log_level, log_format, kubeconfig))
    keys = _known(targets or [], settings)
    from predictor import releasing  # noqa: PLC0415  (late, as in run)
    from predictor.settings import durations  # noqa: PLC0415

    try:
        seconds = durations.parse(lasting) if lasting else None
    except ValueError as error:
        raise ConfigurationError([f"--for: {error}"]) from None
    asked = releasing.Release(lasting=seconds, everywhere=everywhere)
    raise typer.Exit(releasing.release(settings, keys, asked=asked))


def resume(
    targets: Annotated[
        list[str] | None, typer.Argument(help="Targets as namespace/name; all without any.", show_default=False)
    ] = None,
    config: options.ConfigOption = None,
    log_level: options.LogLevelOption = None,
    log_format: options.LogFormatOption = None,
    kubeconfig: options.KubeconfigOption = None,
) -> None:
    """Let the service write what was released, or left to somebody else who kept changing it back."""
    settings = options.settings(config, options.cluster_flags(log_level, log_format, kubeconfig))
    keys = _known(targets or [], settings)
    from predictor import releasing  # noqa: PLC0415  (late, as in run)

    raise typer.Exit(releasing.resume(settings, keys))


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
