"""The engines behind the pods of one Deployment: simulated replicas under load, in real time, with real metrics pages.

Run as a process of its own, `python -m tests.cluster.fleet`. Each serving pod gets a replica of `models.fleet` and an
HTTP server on its own address, port 8000; a pod that is not Ready, or is being deleted, refuses connections. The
listing port answers `/targets` (HTTP service discovery of Prometheus: namespace and pod as labels) and `/scorecard`.
"""

import argparse
import dataclasses
import json
import threading
import time
from pathlib import Path

import numpy as np
from kubernetes import config

from models.fleet import layout, page, profiles
from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.requests import Ints, Requests
from tests.cluster import load, pods
from tests.servers import http, processes

PAGE_PORT = 8000
TICK_S = 0.25
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What one replica can do and what a request asks of it; mean tokens.

    With these defaults a replica of `LLAMA_8B_H100` finishes about 4 requests a second and queues what comes above.
    """

    batch: int = 8
    prompt_tokens: int = 500
    output_tokens: int = 250


class LiveFleet:
    """A simulated fleet that is moved on by `tick`, from the present `start_s`; all times are Unix seconds."""

    def __init__(self, sizes: Sizes, *, start_s: float, random: np.random.Generator) -> None:
        simulated = dataclasses.replace(profiles.LLAMA_8B_H100, max_num_seqs=sizes.batch)
        self._pool = Pool(simulated, PoolSettings(scrape_interval=None), start=start_s)
        self._slots: dict[str, int] = {}  # by pod, those that drain included
        self._sizes = sizes
        self._random = random
        self._lock = threading.Lock()

    def tick(self, now_s: float, season: load.Season, serving: set[str]) -> None:
        """Let time pass under load until `now_s`; then replicas come and go so that those of `serving` remain."""
        with self._lock:
            self._pool.offer(self._arrivals(season, now_s))
            self._advance(now_s)
            for name in sorted(self._ready() - serving):
                self._pool.drain(self._slots[name])
            for name in sorted(serving - self._slots.keys()):
                self._slots[name] = self._pool.start(ready_at=now_s)
            self._advance(now_s)

    def page(self, name: str) -> http.Answer:
        """Return the metrics page of one replica, 503 if it has none."""
        with self._lock:
            try:
                return http.Answer(page.render(self._pool, self._slots[name]), content_type=_TEXT)
            except KeyError:
                return http.Answer("no engine\n", 503, _TEXT)

    def scorecard(self) -> http.Answer:
        """Return how the load was served so far, as JSON: counts of requests, and the share in time."""
        with self._lock:
            state = self._pool.state
            card = {name: int(state[name]) for name in ("finished", "met", "late", "rejected", "timed_out", "failed")}
            card |= {"requests": int(state["arrived"]), "in_flight": int(state["in_system"])}
        card["missed_ttft"] = card["late"] + card["rejected"] + card["timed_out"] + card["failed"]
        judged = card["met"] + card["missed_ttft"]
        return http.Answer(json.dumps({**card, "attainment": card["met"] / judged if judged else None}))

    def _ready(self) -> set[str]:
        phases = self._pool.replicas["phase"]
        return {name for name, slot in self._slots.items() if phases[slot] == layout.READY}

    def _advance(self, to_s: float) -> None:
        while events := self._pool.advance(to_s):
            gone = {event.slot for event in events if event.kind == "gone"}
            self._slots = {name: slot for name, slot in self._slots.items() if slot not in gone}

    def _arrivals(self, season: load.Season, until_s: float) -> Requests:
        since_s = self._pool.now
        expected = season.rate_per_s((since_s + until_s) / 2) * (until_s - since_s)
        count = int(self._random.poisson(expected))
        return Requests(
            np.sort(self._random.uniform(since_s, until_s, count)),
            self._tokens(self._sizes.prompt_tokens, count),
            self._tokens(self._sizes.output_tokens, count),
        )

    def _tokens(self, mean: int, count: int) -> Ints:
        # Log-normal, as lengths of requests usually are; exp(0.5 * 0.5**2) = 1.13 is what the spread adds to the mean.
        drawn = self._random.lognormal(np.log(mean / 1.13), 0.5, count)
        return np.maximum(drawn.astype(np.int64), 1)


class Pages:
    """One HTTP server a serving pod, on the pod's own address."""

    def __init__(self, live: LiveFleet, namespace: str) -> None:
        self._live = live
        self._namespace = namespace
        self._servers: dict[pods.Pod, http.Server] = {}

    def show(self, serving: dict[str, pods.Pod]) -> None:
        """Open the pages of new pods and close those of pods that serve no more."""
        wanted = set(serving.values())
        for pod in self._servers.keys() - wanted:
            self._servers.pop(pod).close()
        for pod in wanted - self._servers.keys():
            self._servers[pod] = http.Server(pod.address, PAGE_PORT, lambda _, name=pod.name: self._live.page(name))

    def listing(self, path: str) -> http.Answer:
        """Answer on the listing port."""
        if path == "/scorecard":
            return self._live.scorecard()
        targets = [
            {"targets": [f"{pod.address}:{PAGE_PORT}"], "labels": {"namespace": self._namespace, "pod": pod.name}}
            for pod in list(self._servers)
        ]
        return http.Answer(json.dumps(targets))


def run(asked: argparse.Namespace) -> None:
    """Serve until killed."""
    api = config.new_client_from_config(config_file=str(asked.kubeconfig))
    following = pods.ServingPods(api, namespace=asked.namespace, deployment=asked.deployment)
    # Seasons start at round Unix times, so that history written beforehand continues them; from here on the clock
    # is the monotonic one.
    offset_s = time.clock_gettime(time.CLOCK_REALTIME) - time.monotonic()
    sizes = Sizes(asked.batch, asked.prompt_tokens, asked.output_tokens)
    start_s, random = time.monotonic() + offset_s, np.random.default_rng(asked.seed)
    live = LiveFleet(sizes, start_s=start_s, random=random)
    pages = Pages(live, asked.namespace)
    beat = threading.Event()
    with http.Server("127.0.0.1", asked.listing_port, pages.listing):
        while not beat.wait(TICK_S):
            serving = following.now()
            live.tick(time.monotonic() + offset_s, load.Season.read(asked.load), set(serving))
            pages.show(serving)


def command(kubeconfig: Path, season: Path, *, deployment: str, listing_port: int, sizes: Sizes) -> list[str]:
    """Return the command line of a fleet behind `deployment`, given as NAMESPACE/NAME."""
    namespace, name = deployment.split("/")
    return [
        *processes.module("tests.cluster.fleet"),
        f"--kubeconfig={kubeconfig}",
        f"--namespace={namespace}",
        f"--deployment={name}",
        f"--load={season}",
        f"--listing-port={listing_port}",
        f"--batch={sizes.batch}",
        f"--prompt-tokens={sizes.prompt_tokens}",
        f"--output-tokens={sizes.output_tokens}",
    ]


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--deployment", required=True)
    parser.add_argument(
        "--load", type=Path, required=True, help="YAML: period_s and points [[seconds, per second], ...]"
    )
    parser.add_argument("--listing-port", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    for size in dataclasses.fields(Sizes):
        parser.add_argument(f"--{size.name.replace('_', '-')}", type=int, default=size.default)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
