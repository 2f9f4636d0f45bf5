"""The rig at a terminal: `python -m tests.cluster up | status | down | build`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tests.cluster import background, binaries, keda, kubectl, load
from tests.servers import prometheus

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A real Kubernetes control plane on this machine.",
)
State = Annotated[Path, typer.Option(help="Folder of this rig; two rigs need two.")]
WithKeda = Annotated[bool, typer.Option("--keda", help="KEDA scales the example; its first build takes minutes.")]
DEFAULT_SEASON = load.ramp(base_per_s=4.0, peak_per_s=24.0)


@app.command()
def build() -> None:
    """Build and download what the rig needs, into the cache."""
    typer.echo(prometheus.ensure().prometheus)
    for program in binaries.ALL:
        typer.echo(binaries.ensure(program))
    typer.echo(keda.crds())


@app.command()
def up(
    state: State = background.default_state(),  # noqa: B008  (typer shows the default)
    load_file: Annotated[Path | None, typer.Option("--load", help="YAML: period_s, points.")] = None,
    with_keda: WithKeda = False,  # noqa: FBT002  (a flag of the command line)
) -> None:
    """Start everything in the background; what is not built yet is built first."""
    for program in (*binaries.CONTROL_PLANE, *(binaries.KEDA if with_keda else ())):
        binaries.ensure(program)
    season = load.Season.read(load_file) if load_file else DEFAULT_SEASON
    with _errors_as_words():
        found = background.start(state.resolve(), season, keda=with_keda)
    typer.echo(_what_next(found))


@app.command()
def status(state: State = background.default_state()) -> None:  # noqa: B008  (likewise)
    """Show each part; exit code 1 if nothing is up."""
    found = background.running(state.resolve())
    if found is None:
        typer.echo(f"nothing is up in {state}")
        raise typer.Exit(1)
    for name, pid in found.processes.items():
        typer.echo(f"{name:24} {'runs' if Path(f'/proc/{pid}').exists() else 'GONE':5} pid {pid}")
    call = kubectl.Kubectl(Path(found.kubeconfig))
    typer.echo(f"\n{found.api_server} readyz: {call('get', '--raw=/readyz')}")
    typer.echo(f"{found.prometheus}\n")
    typer.echo(call("get", "deployment,hpa", f"--namespace={found.deployment.split('/')[0]}"))


@app.command()
def down(state: State = background.default_state()) -> None:  # noqa: B008  (likewise)
    """Stop everything and remove its folder."""
    with _errors_as_words():
        typer.echo("down" if background.stop(state.resolve()) else f"nothing was up in {state}")


@app.command(hidden=True)
def serve(state: State, with_keda: WithKeda = False) -> None:  # noqa: FBT002  (likewise)
    """Run in the foreground, as `up` does in the background."""
    background.serve(state, keda=with_keda)


def _what_next(found: background.Running) -> str:
    namespace, name = found.deployment.split("/")
    season = Path(found.kubeconfig).parent / "serving" / namespace / "load.yaml"
    return f"""
export KUBECONFIG={found.kubeconfig}
Prometheus: {found.prometheus}

Try:
  {binaries.tool("kubectl")} -n {namespace} get hpa,pods -w
      the HPA of {name} follows its queue; pods take 20 s to warm up
  curl -s '{found.prometheus}/api/v1/query?query=vllm:num_requests_waiting'
  edit {season}
      changes the load at once
  python -m tests.cluster status | down"""


@contextmanager
def _errors_as_words() -> Iterator[None]:
    try:
        yield
    except (background.RigError, TimeoutError) as error:
        typer.echo(error, err=True)
        raise typer.Exit(1) from error


if __name__ == "__main__":
    app()
