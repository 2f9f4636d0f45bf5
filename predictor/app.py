"""The composition root: puts the adapters behind the ports and runs the loops until the process is told to stop."""

import dataclasses
import gc
import logging
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from predictor import explaining, keeping, releasing, reloading, wiring
from predictor.aside import Aside
from predictor.clock import SystemClock
from predictor.cluster import permissions
from predictor.cluster.client import Api
from predictor.cluster.errors import ClusterError
from predictor.cluster.permissions import Purpose
from predictor.cluster.watching import Cache
from predictor.cluster.workloads import ClusterWorkloads
from predictor.diary import Diary
from predictor.errors import ConfigurationError
from predictor.finding import Finding
from predictor.keeping import Place
from predictor.leading import Alone, Replica
from predictor.loops import Loops, World
from predictor.publishing.publisher import Publisher
from predictor.schedule import Job, Schedule
from predictor.settings import convert, discovered, loading
from predictor.settings.root import Settings
from predictor.targets import Mode, Target
from predictor.telemetry import logs, pages, snapshot
from predictor.telemetry.health import Pulse
from predictor.telemetry.http import Server
from predictor.telemetry.metrics import Metrics
from predictor.telemetry.observed import ObservedSource, ObservedWorkloads
from predictor.telemetry.recording import Telemetry

GRACE = 3.0  # seconds a tick gets to end when the process is told to stop; 5 are promised, http.GRACE is in them
KEEPING_GRACE = 0.5  # seconds for the last of what was learned to get to the disk, beside all else that ends
RELEASE_GRACE = 20.0  # seconds to give every floor back; a pod that is asked to stop has 30
WATCH = 1.0  # seconds between two looks at the wall clock, and at the configuration file

_log = structlog.stdlib.get_logger("floorcast")


class Service:
    """The running service, from settings; with a `watch` it takes up what changes in their file."""

    def __init__(self, settings: Settings, watch: loading.Watch | None = None) -> None:
        self._settings = settings
        self._watch = watch
        self._problems: tuple[str, ...] = ()  # of the configuration file, while the one before it counts
        self._stop = threading.Event()
        self._named = settings  # as in the file, without what is found by label
        self._used: Mapping[str, discovered.Labelled] = {}  # of each found target, when it could last be used
        self._found: tuple[discovered.Labelled, ...] = ()  # what was, when the settings were last put together
        self._targets = convert.targets(settings)
        self._clock = SystemClock()
        self._leadership = (
            Replica(wiring.terms(settings), wiring.access(settings.kubernetes), self._clock)
            if settings.leader_election.enabled
            else Alone()
        )
        self._api = Api(wiring.access(settings.kubernetes), wait=self._stop.wait, may_write=self._leadership.guard)
        self._cache = (
            Cache(self._api, everywhere=settings.kubernetes.cluster_wide) if settings.kubernetes.watch else None
        )
        self._workloads = ClusterWorkloads(
            self._api, owners=settings.kubernetes.owners, lister=self._cache, events=settings.kubernetes.events
        )
        self._metrics = Metrics()
        self._metrics.targets(self._targets)
        self._metrics.configuration(at=self._clock.now())
        self._finding = Finding(self._api, asked=lambda: self._named.discovery, stop=self._stop, metrics=self._metrics)
        self._pulse = Pulse(_intervals(settings))
        self._journal = wiring.journal(settings)
        self._aside = self._make_aside(settings, watch.path if watch else None)
        self._telemetry = Telemetry(
            self._metrics, self._pulse, self._clock, Diary(self._journal) if self._journal else None
        )
        self._keeping = wiring.keeping(
            settings,
            Place(
                lambda: self._loops.between_ticks(),  # noqa: PLW0108  (of the loops at that time: they are replaced)
                self._workloads,
                self._leadership.leads,
                self._clock,
            ),
        )
        self._learned = reloading.fresh(settings)
        self._loops = self._make_loops()
        self._schedule = self._make_schedule()
        self._publisher = Publisher(
            lambda: self._loops.board, slow=lambda: self._settings.loops.slow, told=self._metrics.recommended
        )
        self._server = Server(
            pages.application(
                pages.Sources(
                    registry=self._metrics.registry,
                    dead=self._pulse.problems,
                    missing=self._missing,
                    state=self._state,
                    explain=self._explain,
                )
            ),
            host=settings.server.host,
            port=settings.server.port,
        )

    def run(self) -> int:
        """Serves until `stop`; 0 when all ended as it should, 1 when a tick or a release had to be left behind.

        Raises:
            ListenError: the configured address cannot be had.
            ConfigurationError: the external scaler's certificate cannot be used.
        """
        self._server.start()
        _log.info(
            "started", mode=self._settings.mode, targets=[target.key for target in self._targets], url=self._server.url
        )
        if self._settings.external_scaler.enabled:
            given = self._settings.external_scaler
            tls = wiring.certificate(given)
            self._publisher.serve(host=self._settings.server.host, port=given.port, tls=tls)
        threading.Thread(target=self._tell_missing_permissions, name="permissions", daemon=True).start()
        self._finding.start()
        # What the libraries made at import is never garbage: walking over it would stop a tick for a tenth of a second.
        gc.freeze()
        self._leadership.start()
        self._schedule.start()
        if self._aside:
            self._aside.start()
        if self._keeping:
            self._keeping.start()
        else:
            _log.info("nothing that is learned is kept over a restart: journal.path is not set", lost=keeping.LOST)
        while not self._stop.wait(WATCH):
            self._metrics.leader(leads=self._leadership.leads())
            self._publisher.tell()
            if self._cache is not None:
                self._metrics.watches(self._cache.report())
            if self._schedule.keep_pace():
                _log.warning("the wall clock jumped: the loops were set anew")
            if self._watch is not None:
                self._look_at(self._watch)
            if self._finding.found != self._found:
                self._take_up_found()
        return self._end()

    def stop(self) -> None:
        """Ends `run`; may be called from a signal handler."""
        self._loops.stopping.set()
        self._stop.set()

    def _look_at(self, watch: loading.Watch) -> None:
        """Takes up a changed configuration; one that cannot be used changes nothing, and that is said."""
        try:
            changed = watch.look()
            if changed is None:
                return
            self._take_up(self._joined(changed))
            self._named = changed
        except ConfigurationError as error:
            self._problems = error.lines
            for line in error.lines:
                _log.error("configuration refused, the one before it counts", problem=line)
        else:
            self._problems = ()
        self._metrics.configuration_changed(refused=bool(self._problems), at=self._clock.now())

    def _take_up_found(self) -> None:
        """Takes up the targets that were found by label, and lets those go that are no longer."""
        self._found = self._finding.found
        joined = self._joined(self._named)
        if joined.targets == self._settings.targets:
            return
        try:
            self._take_up(joined)
        except ConfigurationError as error:
            _log.error("targets found by label cannot be taken up", problem="; ".join(error.lines))

    def _joined(self, named: Settings) -> Settings:
        """The settings of the file with the targets that were found by label; says which of these cannot be used."""
        joined = discovered.join(named, self._found, before=self._used)
        self._used = joined.used
        for key, why in joined.refused.items():
            _log.warning("target found by label cannot be used", target=key, why=why)
        self._metrics.discovered(len(joined.used), refused=joined.refused)
        return joined.settings

    def _take_up(self, changed: Settings) -> None:
        """Ends the loops, and begins others that know what these have learned.

        Raises:
            ConfigurationError: a query cannot be used; the loops go on.
        """
        wiring.source(changed, self._workloads)  # raises before anything has ended
        for section in reloading.needs_restart(self._settings, changed):
            _log.warning("section changed that only a restart takes up", section=section)
        settings = reloading.without_them(self._settings, changed)
        while not self._schedule.stop(within=GRACE):
            if self._stop.is_set():
                return
        before = dataclasses.replace(self._learned, loaded=self._loops.loaded)
        self._learned = reloading.taken_over(before, self._settings, settings)
        self._settings, known, self._targets = settings, self._targets, convert.targets(settings)
        logs.configure(settings.log.level, settings.log.format)
        self._metrics.targets(self._targets)
        self._telemetry.keep_only({target.key for target in self._targets})
        self._workloads.keep_only({target.key for target in self._targets})
        self._metrics.history_loaded(complete=self._learned.loaded)
        self._pulse.begin(_intervals(settings))
        self._loops = self._make_loops()
        self._schedule = self._make_schedule()
        _log.info("configuration taken up", mode=settings.mode, targets=[target.key for target in self._targets])
        self._give_up(reloading.left(known, self._targets))
        if not self._stop.is_set():
            self._schedule.start()

    def _give_up(self, targets: Sequence[Target]) -> None:
        """Gives back what was set for targets that are named no more."""
        if self._settings.mode is Mode.SHADOW:
            for target in targets:
                _log.warning("target named no more, in shadow mode its floor stays as it is", target=target.key)
        elif targets and self._leadership.leads():
            threading.Thread(
                target=releasing.give_back, args=(self._workloads, targets), name="give-up", daemon=True
            ).start()

    def _state(self) -> Mapping[str, object]:
        told = {"refused": self._problems, "file": str(self._watch.path) if self._watch else None}
        return {**snapshot.board(self._loops.board), "configuration": told}

    def _make_loops(self) -> Loops:
        if self._keeping:
            self._keeping.give(self._learned.board)
        source = ObservedSource(wiring.source(self._settings, self._workloads), self._metrics)
        workloads = ObservedWorkloads(self._workloads, self._metrics)
        learned = self._learned
        loops = Loops(
            World(self._clock, source, workloads, self._telemetry, leads=self._leadership.leads),
            learned.board,
            history=learned.history,
            outlooks=learned.outlooks,
            pace=wiring.pace(self._settings),
        )
        if learned.loaded:
            loops.resume()
        return loops

    def _make_schedule(self) -> Schedule:
        loops = self._settings.loops
        jobs = (Job("slow", self._loops.slow_tick, loops.slow), Job("fast", self._loops.fast_tick, loops.fast))
        return Schedule(jobs, clock=self._clock, late=self._telemetry.late)

    def _end(self) -> int:
        if not self._settings.release_on_exit:
            self._leadership.halt()  # the lease lasts longer than a tick gets to end
        whole = self._schedule.stop(within=GRACE)
        if not whole:
            _log.warning("a tick did not end in time and is left behind", seconds=GRACE)
        if self._keeping:
            self._keeping.stop()
        if self._settings.release_on_exit and self._leadership.leads():
            whole = whole and self._release()
            if not whole:
                _log.warning("not every floor was given back; `floorcast release` does it")
        self._leadership.end(idle=whole)
        self._publisher.stop()
        if self._cache is not None:
            self._cache.close()
        self._api.close()
        if self._aside:
            self._aside.stop()
        if self._journal:
            self._journal.close()
        if self._keeping:
            self._keeping.join(within=KEEPING_GRACE)
        self._server.stop()
        _log.info("stopped")
        return 0 if whole else 1

    def _release(self) -> bool:
        """Gives everything back, if that takes no longer than a process that is to stop has."""
        done: list[bool] = []
        thread = threading.Thread(
            target=lambda: done.append(releasing.give_back(self._workloads, self._targets)), name="release", daemon=True
        )
        thread.start()
        thread.join(RELEASE_GRACE)
        return done == [True]

    def _make_aside(self, settings: Settings, config: Path | None) -> Aside | None:
        every = settings.journal.counterfactual
        if self._journal is None or every is None:
            return None

        def shadowed() -> list[str]:
            return [target.key for target in self._targets if target.mode is Mode.SHADOW]

        return Aside(shadowed, self._metrics.counterfactual, every=every, config=config)

    def _explain(self, key: str) -> Mapping[str, object] | None:
        entry = self._loops.board.entries.get(key)
        return explaining.explain(entry) if entry else None

    def _missing(self) -> Sequence[str]:
        return () if self._loops.loaded else ("the history has not been loaded yet",)

    def _tell_missing_permissions(self) -> None:
        """Says at the start what would otherwise show as a refusal at the first write."""
        given = self._settings.kubernetes
        wanted = permissions.wanted(self._targets, given.owners, events=given.events)
        if self._settings.leader_election.enabled:
            place = wiring.terms(self._settings).namespace
            leading = {one for one in permissions.PERMISSIONS if one.purpose is Purpose.LEAD}
            wanted[place] = wanted.get(place, set()) | leading
        try:
            for missing in permissions.check_permissions(self._api, wanted):
                _log.warning("permission missing", problem=str(missing))
        except ClusterError as error:
            _log.warning("permissions could not be checked", problem=str(error))


def run(settings: Settings, watch: loading.Watch | None = None) -> int:
    """Runs the service until SIGTERM or SIGINT; does not return where a tick had to be left behind."""
    logs.configure(settings.log.level, settings.log.format)
    service = Service(settings, watch)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: service.stop())
    code = service.run()
    if code:
        # Python would wait for the tick's thread, and that for an answer: longer than the five seconds promised.
        logging.shutdown()
        os._exit(code)
    return code


def _intervals(settings: Settings) -> dict[str, float]:
    return {"slow": settings.loops.slow, "fast": settings.loops.fast}
