"""A configuration that changes under the running service: what is kept, what is not, and that nothing bad gets in."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from models.capacity.mix import Mix
from models.capacity.observing import Observer
from models.signals import Known, Signal
from predictor import reloading
from predictor.board import Memory
from predictor.cluster import marks
from predictor.errors import ConfigurationError
from predictor.settings import loading
from predictor.settings.root import Settings
from predictor.targets import Mode
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.prometheus_api import PrometheusApi, result

CHAT = {"namespace": "llm", "name": "chat", "model": "m", "capacity": {"concurrency": 32}}
MARKS = {marks.ORIGINAL: "2", marks.LAST_WRITTEN: "5"}
OTHER = {"namespace": "llm", "name": "other", "model": "n", "capacity": {"concurrency": 8}}


def settings(*targets: dict[str, Any], **more: Any) -> Settings:  # noqa: ANN401  (any key)
    return Settings(targets=list(targets), **more)


def learned(given: Settings) -> reloading.Learned:
    """After a while: each target has a memory and a reading an hour ago, and the history has been loaded."""
    made = reloading.fresh(given)
    for key, entry in made.board.entries.items():
        entry.memory = Memory(needed_at=1000.0)
        entry.shadow_floor = 5
        made.history.record(key, Signal.ARRIVALS, Known(3.0, 999_000.0), now=999_000.0)
    return reloading.Learned(made.board, made.history, made.outlooks, loaded=True)


# ------------------------------------------------------------------------------------------------------- what is kept


def test_what_was_learned_of_a_target_outlives_a_change_of_its_objectives() -> None:
    old, new = settings(CHAT), settings({**CHAT, "quantiles": {"raise": 0.99}, "warm_up": "9m"})
    before = learned(old)
    after = reloading.taken_over(before, old, new)
    entry = after.board.entries["llm/chat"]
    assert entry.memory == Memory(needed_at=1000.0)
    assert entry.target.objectives.raise_quantile == 0.99
    assert entry.target.warm_up == 540
    assert after.history is before.history
    assert after.outlooks is before.outlooks
    assert after.loaded


@pytest.mark.parametrize(
    ("capacity", "kept"),
    [
        ({"ttft": "2s", "concurrency": 32, "duration": "4s", "learn": "both"}, True),
        ({"ttft": "3s", "concurrency": 32}, False),
        ({"ttft": "2s", "concurrency": 48}, False),
        ({"ttft": "2s", "concurrency": 32, "kv_tokens": 90000}, False),
        ({"ttft": "2s", "concurrency": 32, "tokens_in": 9000}, False),
        ({"ttft": "2s", "concurrency": 32, "tokens_out": 900}, False),
    ],
)
def test_what_was_seen_of_a_replica_says_nothing_of_another_or_for_another_objective(
    capacity: dict[str, Any], *, kept: bool
) -> None:
    old = settings({**CHAT, "capacity": {"ttft": "2s", "concurrency": 32}})
    before = learned(old)
    seen = {"H100": Observer(objective=2.0)}
    before.board.entries["llm/chat"].observers = dict(seen)
    after = reloading.taken_over(before, old, settings({**CHAT, "capacity": capacity}))
    assert after.board.entries["llm/chat"].observers == (seen if kept else {})


def load_tests(**last: float) -> dict[str, Any]:
    tests = [{"prompt": 1000, "output": output, "throughput": 400 / output, "concurrency": 40} for output in (100, 200)]
    tests.append({"prompt": 2000, "output": 100, "throughput": 3.0, "concurrency": 40, **last})
    return {**CHAT, "capacity": {"ttft": "2s", "load_tests": tests}}


@pytest.mark.parametrize("last", [{}, {"throughput": 2.0}, {"concurrency": 30}, {"prompt": 3000}, {"output": 150}])
def test_votes_do_not_survive_a_change_of_a_later_load_test_and_sizes_do(last: dict[str, float]) -> None:
    old = settings(load_tests())
    before = learned(old)
    seen, mixed = {"H100": Observer(objective=2.0)}, Mix(999_000.0, 20.0, 1e6, 1e5, 1e3, 1e3)
    before.board.entries["llm/chat"].observers = dict(seen)
    before.board.entries["llm/chat"].mix = mixed
    after = reloading.taken_over(before, old, settings(load_tests(**last))).board.entries["llm/chat"]
    assert after.observers == ({} if last else seen)
    assert after.mix == mixed


def test_a_new_target_has_to_load_its_history_first_and_the_others_keep_theirs() -> None:
    old, new = settings(CHAT), settings(CHAT, OTHER)
    after = reloading.taken_over(learned(old), old, new)
    assert not after.loaded
    assert after.board.entries["llm/other"].memory is None
    assert after.history.series("llm/chat", Signal.ARRIVALS, now=999_000.0).known


def test_a_signal_that_is_newly_planned_for_has_to_load_its_past_first() -> None:
    tokens = {**CHAT, "capacity": {"concurrency": 32, "tokens_in": 30000}}
    old, new = settings(CHAT), settings(tokens)
    after = reloading.taken_over(learned(old), old, new)
    assert not after.loaded
    assert after.history.series("llm/chat", Signal.ARRIVALS, now=999_000.0).known
    assert reloading.taken_over(learned(new), new, old).loaded
    assert reloading.taken_over(learned(new), new, new).loaded


def test_a_target_that_is_named_no_more_is_forgotten() -> None:
    old, new = settings(CHAT, OTHER), settings(OTHER)
    after = reloading.taken_over(learned(old), old, new)
    assert list(after.board.entries) == ["llm/other"]
    assert not after.history.series("llm/chat", Signal.ARRIVALS, now=999_000.0).known
    assert after.loaded


@pytest.mark.parametrize("change", [{"model": "another"}, {"engine": "sglang"}, {"kind": "StatefulSet"}])
def test_what_serves_something_else_under_the_same_name_begins_anew(change: dict[str, str]) -> None:
    old, new = settings(CHAT), settings({**CHAT, **change})
    before = learned(old)
    after = reloading.taken_over(before, old, new)
    assert after.board.entries["llm/chat"].memory is None
    assert not after.history.series("llm/chat", Signal.ARRIVALS, now=999_000.0).known
    assert after.outlooks is not before.outlooks
    assert not after.loaded


def test_another_grid_is_another_history() -> None:
    old, new = settings(CHAT), settings(CHAT, history={"step": "15s"})
    after = reloading.taken_over(learned(old), old, new)
    assert after.history.step == 15
    assert after.board.entries["llm/chat"].memory is not None
    assert not after.loaded


@pytest.mark.parametrize("change", [{"forecast": {"zone": "Europe/Berlin"}}, {"loops": {"slow": "45s"}}])
def test_another_way_to_forecast_learns_again_from_the_same_history(change: dict[str, Any]) -> None:
    old, new = settings(CHAT), settings(CHAT, **change)
    before = learned(old)
    after = reloading.taken_over(before, old, new)
    assert after.history is before.history
    assert after.outlooks is not before.outlooks
    assert after.loaded


def test_what_would_have_stood_in_shadow_is_forgotten_when_control_begins() -> None:
    old, new = settings(CHAT), settings(CHAT, mode="control")
    after = reloading.taken_over(learned(old), old, new)
    assert after.board.entries["llm/chat"].shadow_floor is None
    assert reloading.taken_over(learned(old), old, old).board.entries["llm/chat"].shadow_floor == 5


def test_only_targets_that_were_controlled_and_are_named_no_more_are_left() -> None:
    def targets(*given: dict[str, Any], mode: str) -> list[Any]:
        return reloading.fresh(settings(*given, mode=mode)).board.targets

    assert [one.key for one in reloading.left(targets(CHAT, OTHER, mode="control"), targets(CHAT, mode="control"))] == [
        "llm/other"
    ]
    assert reloading.left(targets(CHAT, mode="shadow"), targets(mode="shadow")) == []
    assert reloading.left(targets(CHAT, mode="control"), targets(CHAT, mode="shadow")) == []


def test_sections_that_need_a_new_process_stay_as_they_were_and_are_named() -> None:
    old, new = settings(CHAT), settings(CHAT, server={"port": 9999}, mode="control")
    assert reloading.needs_restart(old, new) == ["server"]
    kept = reloading.without_them(old, new)
    assert kept.server == old.server
    assert kept.mode is Mode.CONTROL


# ------------------------------------------------------------------------------------------------- looking at the file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "floorcast.yaml"
    path.write_text("mode: shadow\n")
    return path


def test_a_file_that_stays_the_same_is_no_news(file: Path) -> None:
    watch = loading.Watch(file)
    assert watch.first().mode is Mode.SHADOW
    file.write_text("mode: shadow\n")
    assert [watch.look() for _ in range(3)] == [None, None, None]


def test_a_changed_file_is_read_once_it_stands_still(file: Path) -> None:
    watch = loading.Watch(file)
    watch.first()
    file.write_text("mode: cont")
    assert watch.look() is None
    file.write_text("mode: control\n")
    assert watch.look() is None
    changed = watch.look()
    assert changed is not None
    assert changed.mode is Mode.CONTROL
    assert watch.look() is None


def test_a_file_that_cannot_be_used_is_told_once_for_each_change(file: Path) -> None:
    watch = loading.Watch(file)
    watch.first()
    file.write_text("modus: control\n")
    watch.look()
    with pytest.raises(ConfigurationError, match="did you mean mode"):
        watch.look()
    assert watch.look() is None
    file.unlink()
    watch.look()
    with pytest.raises(ConfigurationError, match="no such file"):
        watch.look()
    assert watch.look() is None


def test_flags_outweigh_the_changed_file_too(file: Path) -> None:
    watch = loading.Watch(file, (loading.Flag("--mode", ("mode",), "shadow"),))
    watch.first()
    file.write_text("mode: control\nrelease_on_exit: true\n")
    watch.look()
    changed = watch.look()
    assert changed is not None
    assert (changed.mode, changed.release_on_exit) == (Mode.SHADOW, True)


def test_a_configmap_changes_by_the_exchange_of_a_link(tmp_path: Path) -> None:
    for version, mode in (("..1", "shadow"), ("..2", "control")):
        (tmp_path / version).mkdir()
        (tmp_path / version / "floorcast.yaml").write_text(f"mode: {mode}\n")
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "floorcast.yaml").symlink_to("..data/floorcast.yaml")
    watch = loading.Watch(tmp_path / "floorcast.yaml")
    watch.first()
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").replace(tmp_path / "..data")
    watch.look()
    changed = watch.look()
    assert changed is not None
    assert changed.mode is Mode.CONTROL


# ------------------------------------------------------------------------------------------------ the running service

SERVICE = """
mode: control
loops: {{slow: 1s, fast: 0.5s}}
kubernetes: {{server: "{api}", token_file: {token}}}
source: {{prometheus: {{url: "{prometheus}", timeout: 1s, budget: 1s}}}}
server: {{host: 127.0.0.1, port: 0}}
targets: {targets}
"""


class Running:
    """The service as a process, and the file it runs with."""

    def __init__(self, folder: Path, api: FakeApiServer, prometheus: PrometheusApi) -> None:
        (folder / "token").write_text("t")
        self._where = {"api": api.url, "prometheus": prometheus.url, "token": folder / "token"}
        self.file, self.log = folder / "c.yaml", folder / "log"

    def write(self, *targets: dict[str, Any], more: str = "") -> None:
        self.file.write_text(SERVICE.format(**self._where, targets=json.dumps(targets)) + more)

    def lines(self, event: str) -> list[dict[str, Any]]:
        return [line for line in map(json.loads, self.log.read_text().splitlines()) if line["event"] == event]

    def page(self, path: str) -> str:
        return requests.get(self.lines("started")[0]["url"] + path, timeout=5).text

    def metric(self, name: str) -> float | None:
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.page("/metrics"), re.MULTILINE)
        return float(found[1]) if found else None

    def state(self) -> dict[str, Any]:
        return dict(json.loads(self.page("/api/state")))


@contextmanager
def running(folder: Path, api: FakeApiServer, *targets: dict[str, Any], more: str = "") -> Iterator[Running]:
    with PrometheusApi(lambda _: result([])) as prometheus:
        service = Running(folder, api, prometheus)
        service.write(*targets, more=more)
        with service.log.open("wb") as log:
            command = [sys.executable, "-m", "predictor.cli", "run", "--config", str(service.file)]
            process = subprocess.Popen(command, stderr=log, stdout=subprocess.DEVNULL)  # noqa: S603  (our own command)
        try:
            wait_for(lambda: bool(service.lines("started")))
            yield service
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()
            process.wait()
    assert "Traceback" not in service.log.read_text()


def minimum(api: FakeApiServer, name: str) -> int:
    return int(api.objects["horizontalpodautoscalers", "llm", name]["spec"]["minReplicas"])


def wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.1)  # noqa: TID251  (waits for another process)


def test_the_service_takes_up_a_valid_change_refuses_an_invalid_one_and_gives_back_what_is_named_no_more(
    tmp_path: Path,
) -> None:
    """Three changes of one running process: a target comes, nonsense comes, the first target goes with its floor."""
    with FakeApiServer() as api:
        for name in ("chat", "other"):
            api.put("deployments", objects.deployment(name))
            api.put("horizontalpodautoscalers", objects.hpa(name, low=5, aim=name, annotations=MARKS))
        with running(tmp_path, api, CHAT) as service:
            wait_for(lambda: service.state()["targets"]["llm/chat"]["decision"] is not None)
            assert service.metric("floorcast_config_reload_successful") == 1
            assert service.lines("nothing that is learned is kept over a restart: journal.path is not set")

            service.write(CHAT, OTHER, more="log: {level: debug}\n")
            wait_for(lambda: bool(service.lines("configuration taken up")))
            wait_for(lambda: service.state()["targets"]["llm/other"]["decision"] is not None)
            assert service.metric('floorcast_config_reloads_total{outcome="taken_up"}') == 1

            service.write(CHAT, {**OTHER, "warmup": "5m"})
            wait_for(lambda: bool(service.lines("configuration refused, the one before it counts")))
            wait_for(lambda: service.metric("floorcast_config_reload_successful") == 0)
            assert "did you mean warm_up" in service.state()["configuration"]["refused"][0]
            assert set(service.state()["targets"]) == {"llm/chat", "llm/other"}
            at = service.state()["targets"]["llm/chat"]["decision"]["at"]
            wait_for(lambda: service.state()["targets"]["llm/chat"]["decision"]["at"] > at)

            service.write(OTHER, more="history: {step: 20s}\n")
            wait_for(lambda: len(service.lines("configuration taken up")) == 2)
            assert service.metric("floorcast_config_reload_successful") == 1
            assert set(service.state()["targets"]) == {"llm/other"}
            assert 'target="llm/chat"' not in service.page("/metrics")
            wait_for(lambda: minimum(api, "chat") == 2)
            assert minimum(api, "other") == 5


def test_a_restarted_service_knows_the_warm_ups_of_pods_that_are_gone(tmp_path: Path) -> None:
    more = f"journal: {{path: {tmp_path / 'kept'}}}\n"
    with FakeApiServer() as api:
        api.put("deployments", objects.deployment("chat"))
        api.put("replicasets", objects.replica_set("chat"))
        for number in range(4):
            api.put("pods", objects.pod(f"p{number}", created=-500, ready=-400 + number, owner="chat-1"))
        with running(tmp_path, api, CHAT, more=more) as service:
            wait_for(lambda: service.metric('floorcast_warm_ups_measured{target="llm/chat"}') == 4)
        for number in range(3):
            api.delete("pods", "llm", f"p{number}")
        with running(tmp_path, api, CHAT, more=more) as service:
            assert service.lines("what was learned before is known")[0]["targets"] == 1
            wait_for(lambda: service.metric('floorcast_warm_ups_measured{target="llm/chat"}') is not None)
            assert service.metric('floorcast_warm_ups_measured{target="llm/chat"}') == 4
            assert service.metric('floorcast_warm_up_seconds{source="measured",target="llm/chat"}') == 103
