"""Each row of the ownership table under the chart as Helm installed it: raised, killed, released, uninstalled.

One installation has a target of every row, each in a namespace of its own, and goes through its life once; each row is
then judged by what was seen of it.
"""

import dataclasses
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from predictor.cluster import kserve, marks
from predictor.ports import Owner
from tests.cluster import audit as audit_log
from tests.cluster import chart, floorcast, kubelet, owned, plane, roles
from tests.cluster import test_ownership as table
from tests.cluster.needed import CONCURRENCY, Needed
from tests.cluster.test_chart_run import await_alive
from tests.servers import waiting

Json = dict[str, Any]
PATIENCE_S = 240.0
ORIGINAL, RAISED, RAISED_AGAIN = owned.MINIMUM, 4, 6
OTHER_KIND = "any other kind with a scale"
ASIDE = {"events", "selfsubjectaccessreviews"}


@dataclasses.dataclass(frozen=True)
class Seen:
    """The object that carries a row's number, at one moment of the story."""

    number: int
    marks: dict[str, str]


@dataclasses.dataclass
class Story:
    """What was seen of each row after each act, and who wrote what meanwhile."""

    after: dict[str, dict[str, Seen]] = dataclasses.field(default_factory=dict)
    written: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    refused: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    granted: dict[str, roles.Verbs] = dataclasses.field(default_factory=dict)
    used: dict[str, roles.Verbs] = dataclasses.field(default_factory=dict)


class Stage:
    """The objects of all rows, and what is done to them."""

    def __init__(self, control_plane: plane.ControlPlane) -> None:
        self.plane = control_plane
        self.home = "table-floorcast"
        self.namespaces = {row.name: f"table-{number}" for number, row in enumerate(table.ROWS)}
        self.needed = Needed((namespace, "m") for namespace in self.namespaces.values())
        self.story = Story()
        self._helm = chart.Helm(control_plane.state, control_plane.kubeconfig)
        self._builders = {
            name: owned.Builder(control_plane.kubectl, namespace) for name, namespace in self.namespaces.items()
        }

    def build(self) -> None:
        owned.install(self.plane.kubectl)
        meta = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in self.namespaces.values()]
        self.plane.kubectl.apply([*meta, *self._of_the_other_kind()])
        for row in table.ROWS:
            row.build(self._builders[row.name])

    def clear(self) -> None:
        self.plane.kubectl("delete", "namespace", self.home, *self.namespaces.values(), "--wait=false")

    def helm(self, command: str, *more: str, values: Json | None = None) -> None:
        name = (command, "floorcast", *((str(chart.CHART),) if values is not None else ()))
        self._helm(*name, f"--namespace={self.home}", f"--timeout={PATIENCE_S:.0f}s", *more, values=values)

    def granted_to_hooks(self) -> roles.Verbs:
        """What the roles grant that stand in the cluster during an uninstall only."""
        objects = yaml.safe_load_all(self._helm("get", "hooks", "floorcast", f"--namespace={self.home}"))
        return roles.of([one for one in objects if one and one["kind"] == "Role"])

    def by_hand(self, command: str, pod: kubelet.Pod) -> None:
        """As an administrator at a terminal, with the configuration that is installed."""
        config = pod.folder / "volumes" / "config" / "floorcast.yaml"
        environment = {**os.environ, "FLOORCAST__KUBERNETES__KUBECONFIG": str(self.plane.kubeconfig)}
        ran = subprocess.run(  # noqa: S603  (our own command)
            [str(floorcast.COMMAND), command, f"--config={config}"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def look(self) -> dict[str, Seen]:
        kinds = sorted({owned.PLURALS[row.written[1]] for row in table.ROWS})
        listed = self.plane.kubectl.json("get", ",".join(kinds), "--all-namespaces")["items"]
        place = {(one["metadata"]["namespace"], one["kind"], one["metadata"]["name"]): one for one in listed}
        return {row.name: _seen(row, place[self.namespaces[row.name], row.written[1], "llm"]) for row in table.ROWS}

    def await_all(self, what: str, met: Callable[[Seen], bool]) -> None:
        """Waits until it holds of every row, and remembers what was seen then under that name."""

        def behind() -> list[str]:
            return [name for name, seen in self.look().items() if not met(seen)]

        try:
            waiting.until(lambda: not behind(), within_s=PATIENCE_S, what=what, every_s=1)
        except TimeoutError as error:
            raise TimeoutError(f"{what}: not of {behind()}") from error
        self.remember(what)

    def copy_marks(self) -> None:
        """As KEDA and KServe do: what they make carries the annotations of what they make it from."""
        for row in table.ROWS:
            marked = [f"{key}={text}" for key, text in self.look()[row.name].marks.items()]
            if marked and row.owner in (Owner.KEDA, Owner.KSERVE):
                kinds = "hpa" if row.owner is Owner.KEDA else "hpa,scaledobjects.keda.sh"
                self.plane.kubectl("annotate", kinds, "--all", *marked, f"--namespace={self.namespaces[row.name]}")

    def remember(self, what: str) -> None:
        self.story.after[what] = self.look()

    def values(self) -> Json:
        targets = [
            {
                "namespace": self.namespaces[row.name],
                "name": "llm",
                "model": "m",
                "capacity": {"concurrency": CONCURRENCY},
                **{key: str(value) for key, value in row.target.items()},
            }
            for row in table.ROWS
        ]
        config = {
            "mode": "control",
            "source": {"prometheus": {"url": self.needed.api.url, "timeout": 2, "budget": 2}},
            "loops": {"slow": 5, "fast": 1},
            "defaults": {"quantiles": {"raise": 0.5, "lower": 0.5}, "warm_up": 20},
            "targets": targets,
        }
        grant = {"leaderWorkerSets": True, "rollouts": True}
        return {"config": config, "rbac": {"namespaces": list(self.namespaces.values()), "grant": grant}}

    def _of_the_other_kind(self) -> list[Json]:
        """The role that the chart cannot know, for the service and for the hook that gives back."""
        place = {"namespace": self.namespaces[OTHER_KIND], "name": "modelservers"}
        head = {"apiVersion": f"{table.accounts.RBAC}/v1", "metadata": place}
        follow = {"apiGroups": ["example.com"], "resources": ["modelservers"], "verbs": ["list", "watch"]}
        who = [{"kind": "ServiceAccount", "namespace": self.home, "name": name} for name in self.accounts]
        role = {"apiGroup": table.accounts.RBAC, "kind": "Role", "name": place["name"]}
        return [
            {**head, "kind": "Role", "rules": [follow, *table.SCALE_RULES]},
            {**head, "kind": "RoleBinding", "roleRef": role, "subjects": who},
        ]

    @property
    def accounts(self) -> tuple[str, str]:
        """Service accounts of the chart."""
        return ("floorcast", "floorcast-release")


def _seen(row: table.Row, thing: Json) -> Seen:
    number = table.value(thing, row.written[2])
    assert isinstance(number, int)
    annotations = thing["metadata"].get("annotations") or {}
    return Seen(number, {key: text for key, text in annotations.items() if key.startswith("floorcast.dev/")})


@contextmanager
def staged(cluster: plane.ControlPlane) -> Iterator[tuple[Stage, kubelet.Kubelet]]:
    stage = Stage(cluster)
    with stage.needed.api, kubelet.Kubelet(cluster, stage.home) as pods:
        stage.build()
        yield stage, pods
    stage.clear()


def is_released(seen: Seen) -> bool:
    return marks.RELEASED in seen.marks


@pytest.fixture(scope="module")
def story(cluster: plane.ControlPlane) -> Story:
    """The life of one installation with a target of every row."""
    since = cluster.audit.mark()
    with staged(cluster) as (stage, pods):
        stage.needed.replicas = RAISED
        stage.helm("install", values=stage.values())
        pod = await_alive(pods)
        stage.await_all("raised", lambda seen: seen.number >= RAISED)

        pod.crash()  # kill -9; the kubelet starts another process, which knows nothing
        stage.needed.replicas = RAISED_AGAIN
        stage.await_all("killed and raised again", lambda seen: seen.number >= RAISED_AGAIN)

        stage.by_hand("release", pod)
        stage.remember("released by hand")
        waiting.until(lambda: _keeps_off(pod), within_s=PATIENCE_S, what="the service keeps off", every_s=1)
        stage.remember("released, with the service running")
        stage.by_hand("resume", pod)
        stage.await_all("resumed", lambda seen: seen.number >= RAISED_AGAIN)

        service, release = stage.accounts
        stage.story.granted[service] = roles.granted(cluster.kubectl, *stage.namespaces.values())
        stage.story.granted[release] = stage.granted_to_hooks()
        stage.copy_marks()
        threading.Event().wait(
            kserve.InferenceService.raise_rest
        )  # until then no number would be raised again while it ends
        ending = cluster.audit.mark()
        stage.helm("uninstall", "--wait")
        stage.remember("uninstalled")
        users = {f"system:serviceaccount:{stage.home}:{name}": name for name in stage.accounts}
        asked = [entry for entry in cluster.audit.entries(since=since) if entry.user in users]
        # Its roles go while its process still ends: what it is refused then is nobody's loss.
        late = [one for one in cluster.audit.entries(since=ending) if users.get(one.user) == service]
        stage.story.refused = [
            (users[one.user], one.verb, one.resource) for one in asked if one.code in (401, 403) and one not in late
        ]
        stage.story.used = {name: roles.used(asked, user) for user, name in users.items()}
        wrote = [one for one in asked if one.verb in audit_log.WRITES and one.resource not in ASIDE]
        for name, namespace in stage.namespaces.items():
            stage.story.written[name] = {one.resource for one in wrote if one.namespace == namespace}
    return stage.story


def _keeps_off(pod: kubelet.Pod) -> bool:
    """Since it was released every target was looked at and left alone, which is logged once for each."""
    return pod.log.count('"Released"') >= len(table.ROWS)


@pytest.mark.parametrize("row", table.ROWS, ids=lambda row: row.name)
def test_a_row_gets_its_original_back_whatever_ends(row: table.Row, story: Story) -> None:
    after = {what: seen[row.name] for what, seen in story.after.items()}
    for what in ("raised", "killed and raised again", "resumed"):
        annotated = row.is_floor and row.owner is not Owner.KSERVE  # whose annotations would reach the pods
        kept = str(ORIGINAL) if annotated else None  # a count that is ours has nothing to go back to
        assert after[what].marks.get(marks.ORIGINAL) == kept, what
    for what in ("released by hand", "released, with the service running", "uninstalled"):
        assert after[what].number == ORIGINAL if row.is_floor else after[what].number >= RAISED_AGAIN, what
        assert set(after[what].marks) <= {marks.RELEASED}, what
    resource, *_ = row.written
    assert story.written[row.name] == {resource}


def test_nothing_was_refused_and_no_verb_was_granted_in_vain(story: Story) -> None:
    """With every role switched on, to the service and to the hook; what the other kind needs is none of the chart's."""
    assert story.refused == []
    for account, used in story.used.items():
        assert {one for one in used if "modelservers" not in one[1]} == story.granted[account], account
