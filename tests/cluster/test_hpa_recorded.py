"""Two HPAs of the real control plane under scripted metrics, and `models.peers` on the same metrics at the same times.

Each value is held for several syncs, so that a sync more or less makes no difference to the replicas, only to the
seconds at which they change. With HPA_RECORDINGS=tests/models/peers/recordings in the environment what was
written is kept there, for the fast tests to replay.
"""

import copy
import dataclasses
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import audit as audit_log
from tests.cluster import load, manifests, serving
from tests.cluster.conftest import Serve
from tests.models.peers.recorded import LATE, MAXIMUM, REPLICAS, RULES, Change, Recording, Shown

CONTROLLER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
PLAIN = manifests.Workload(name="plain", replicas=REPLICAS, max_replicas=MAXIMUM, image_delay_s=0, model_delay_s=1)


@dataclasses.dataclass(frozen=True)
class Held:
    """One value for a while; None is a metric that fails. `expected` are the replicas written meanwhile, in order."""

    seconds: float
    value: float | None
    expected: tuple[int, ...]
    minimum: int = 2


DEFAULTS = (  # no section `behavior`; downscale stabilisation 10 s
    Held(8, 8, ()),
    Held(10, 18, (4, 5)),  # 4.5 -> 5, but 4 at most from 2
    Held(8, 21, ()),  # 21 / (4 x 5) = 1.05
    Held(10, 40, (10,)),  # twice as many at most
    Held(10, 100, (12,)),
    Held(24, 12, (3,)),  # only once nothing higher was recommended for 10 s
    Held(8, 12, (6,), minimum=6),  # a floor raise needs no metric
    Held(16, 12, (), minimum=6),
    Held(8, 12, (3,)),  # a floor lowered: at once and all the way
    Held(10, None, ()),
    Held(8, 16, (4,)),
)
LIMITED = (  # 2 pods in 10 s up, 3 pods in 8 s down after 6 s
    Held(8, 8, ()),
    Held(44, 36, (4, 6, 8, 9)),
    Held(40, 8, (6, 3, 2)),
    Held(38, 40, (6, 8, 10), minimum=6),  # the floor raise eats the budget of its period
)


@dataclasses.dataclass(frozen=True)
class Script:
    """What one HPA is shown."""

    name: str
    metric: str
    steps: tuple[Held, ...]

    def timeline(self, start: float) -> list[tuple[float, Held]]:
        """Each step with the Unix time at which it begins."""
        found, at = [], start
        for step in self.steps:
            found.append((at, step))
            at += step.seconds
        return found

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)


SCRIPTS = (Script("plain", manifests.METRIC, DEFAULTS), Script("limited", "queue-limited", LIMITED))


def limited(served: serving.Serving) -> list[dict[str, Any]]:
    """A second Deployment with an HPA that has a section `behavior`."""
    workload = dataclasses.replace(served.workload, name="limited")
    hpa = copy.deepcopy(manifests.hpa(workload))
    hpa["spec"]["metrics"][0]["external"]["metric"]["name"] = "queue-limited"
    hpa["spec"]["behavior"] = {
        name: {
            "stabilizationWindowSeconds": int(way.window),
            "policies": [{"type": str(p.kind), "value": p.value, "periodSeconds": int(p.period)} for p in way.policies],
        }
        for name, way in (("scaleUp", RULES.up), ("scaleDown", RULES.down))
    }
    return [manifests.deployment(workload), hpa]


def show(served: serving.Serving, script: Script, step: Held, minimum: int) -> None:
    """Makes a step true; `minimum` is what stood before."""
    namespace = served.workload.namespace
    if step.minimum != minimum:  # first: a sync may fall between the two, and must not see the new value alone
        patch = f'{{"spec": {{"minReplicas": {step.minimum}}}}}'
        served.plane.kubectl(
            "patch", "hpa", script.name, f"--namespace={namespace}", "--type=merge", f"--patch={patch}"
        )
    query = "vector(1) == 2" if step.value is None else f"vector({step.value})"
    served.plane.metrics.set(namespace, script.metric, prometheus=served.prometheus.url, query=query)


def act(served: serving.Serving) -> dict[str, list[tuple[float, Held]]]:
    """Plays the scripts side by side; returns when each step really began."""
    pause, start = threading.Event(), time.clock_gettime(time.CLOCK_REALTIME) + 1
    due = sorted(((at, script, step) for script in SCRIPTS for at, step in script.timeline(start)), key=lambda d: d[0])
    played: dict[str, list[tuple[float, Held]]] = {script.name: [] for script in SCRIPTS}
    minimum = dict.fromkeys(played, PLAIN.replicas)
    for at, script, step in due:
        pause.wait(max(at - time.clock_gettime(time.CLOCK_REALTIME), 0))
        played[script.name].append((time.clock_gettime(time.CLOCK_REALTIME), step))
        show(served, script, step, minimum[script.name])
        minimum[script.name] = step.minimum
    pause.wait(start + max(script.seconds for script in SCRIPTS) - time.clock_gettime(time.CLOCK_REALTIME))
    return played


def recorded(audit: audit_log.AuditLog, since: int, name: str, namespace: str) -> tuple[Change, ...]:
    """What the HPA controller wrote."""
    writes = audit.writes(since=since, user=CONTROLLER, resource="deployments/scale")
    ours = [one for one in writes if (one.namespace, one.name) == (namespace, name) and one.code == 200]
    return tuple(Change(one.at.timestamp(), int(one.body["spec"]["replicas"])) for one in ours)


@pytest.mark.timeout(400, func_only=True)
def test_two_real_hpas_and_the_models_of_them_write_the_same_replicas(serve: Serve, audit: audit_log.AuditLog) -> None:
    served = serve(load.steady(0.1), PLAIN)
    namespace = served.workload.namespace
    for script in SCRIPTS:
        show(served, script, script.steps[0], PLAIN.replicas)
    served.plane.kubectl.apply(limited(served))
    served.await_ready(2)
    since = audit.mark()
    played = act(served)
    end = time.clock_gettime(time.CLOCK_REALTIME)
    for script in SCRIPTS:
        shown = tuple(Shown(at, step.value, step.minimum) for at, step in played[script.name])
        found = Recording(script.name, shown, end, recorded(audit, since, script.name, namespace))
        expected = [step.expected for step in script.steps]
        assert found.by_step(found.replayed) == expected
        assert found.by_step(found.written) == expected, f"{script.name}: {found.written}"
        assert max(map(abs, found.lateness)) < LATE, f"{script.name}: real less model, seconds: {found.lateness}"
        if folder := os.environ.get("HPA_RECORDINGS"):
            found.save(Path(folder))
