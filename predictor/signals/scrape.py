"""Readings from the pods' own metrics pages, read directly over HTTP."""

import concurrent.futures
import dataclasses
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import requests
import requests.adapters

from models.series import Series
from models.signals import Cause, Reading, Signal, Unknown
from predictor.signals import catalog, computed, layout, pages, replies, tally
from predictor.targets import Target

NAMED = 3  # pods named when pages are missing; the rest is a number
DETAIL = 120  # characters told of each
SIGNALS = tuple(signal for signal in Signal if signal is not Signal.REPORTING)  # a page that is missing tells itself


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """Where the page of a pod is."""

    name: str
    url: str


@dataclasses.dataclass(frozen=True, slots=True)
class ScrapeSettings:
    """How pages are read.

    Attributes:
        window: seconds over which rates are taken.
        long_window: seconds over which quantiles and means are taken.
        timeout: seconds a pod has to answer.
        workers: pages read at once; 1 reads them one after the other, without threads.
    """

    window: float = 60.0
    long_window: float = 300.0
    timeout: float = 2.0
    workers: int = 16


Fetch = Callable[[str], str]
Pages = Callable[[Target], Sequence[Page]]


class ScrapeSource:
    """A `SignalSource` that remembers the last counters of each pod and makes rates of them.

    A target of which a page is missing is Unknown: its sums would be too low. It keeps no history. Looks from several
    threads take turns: a page read earlier and counted later would look like a restart.
    """

    def __init__(
        self, settings: ScrapeSettings, engines: catalog.Catalog, *, pages: Pages, fetch: Fetch | None = None
    ) -> None:
        """Readies the source.

        Args:
            settings: how pages are read.
            engines: what to look for on them.
            pages: the pods of a target that should have a page now; may not raise.
            fetch: text behind an address; raises OSError (as requests' errors are) or ValueError. Default: over HTTP.
        """
        self.matched: dict[tuple[str, Signal], str] = {}
        self._settings = settings
        self._engines = engines
        self._pages = pages
        self._fetch = fetch or Http(settings).fetch
        self._turn = threading.Lock()
        self._plans: dict[tuple[str, str], layout.Plan] = {}
        self._tallies: dict[str, tally.Tally] = {}
        self._pool = concurrent.futures.ThreadPoolExecutor(settings.workers, thread_name_prefix="scrape")

    def close(self) -> None:
        """Lets the threads go."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def read(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Mapping[Signal, Reading]]:
        """Readings by target key; see `SignalSource`. `matched` says afterwards which recipe gave each."""
        with self._turn:
            return self._look(targets, now=now)

    def history(
        self, targets: Sequence[Target], signal: Signal, *, since: float, until: float, step: float
    ) -> Mapping[str, Series | Unknown]:
        """Nothing: pages know only the present."""
        del signal, since, until, step
        return {target.key: Unknown(Cause.EMPTY, "pages keep no history") for target in targets}

    def _look(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Mapping[Signal, Reading]]:
        listed = {target.key: self._pages(target) for target in targets}
        addresses = list(dict.fromkeys(page.url for group in listed.values() for page in group))
        texts = dict(zip(addresses, self._texts(addresses), strict=True))
        for gone in set(self._tallies) - set(listed):
            del self._tallies[gone]
        return {target.key: self._target(target, listed[target.key], texts, now=now) for target in targets}

    def _texts(self, addresses: Sequence[str]) -> list[str | Exception]:
        if self._settings.workers == 1 or len(addresses) <= 1:
            return [self._text(address) for address in addresses]
        return list(self._pool.map(self._text, addresses))

    def _text(self, address: str) -> str | Exception:
        try:
            return self._fetch(address)
        except (OSError, ValueError) as error:
            return error

    def _target(
        self, target: Target, listed: Sequence[Page], texts: Mapping[str, str | Exception], *, now: float
    ) -> Mapping[Signal, Reading]:
        engine = self._engines.get(target.engine)
        if engine is None or not engine.pages:
            return dict.fromkeys(Signal, Unknown(Cause.NOT_ASKED, f"no recipe for pages of engine {target.engine!r}"))
        plan = self._plan(engine, target)
        sheets, missing = _sheets(plan, listed, texts)
        counted = self._tallies.setdefault(target.key, tally.Tally(plan))
        names = frozenset(page.name for page in listed)
        levels = counted.add(sheets, listed=names, now=now, keep=self._settings.long_window)
        if unknown := _unknown(listed, missing):
            return {signal: unknown if signal in engine.pages else _NO_RECIPE for signal in SIGNALS}
        look = computed.Look(
            plan=plan,
            sheets=sheets,
            levels=levels,
            recent=counted.increase(self._settings.window),
            longer=counted.increase(self._settings.long_window),
            at=now,
        )
        return {signal: self._reading(target, signal, engine, look) for signal in SIGNALS}

    def _reading(self, target: Target, signal: Signal, engine: catalog.Engine, look: computed.Look) -> Reading:
        ways = engine.pages.get(signal)
        if not ways:
            return _NO_RECIPE
        self.matched[target.key, signal], reading = computed.reading(signal, ways, look)
        return reading

    def _plan(self, engine: catalog.Engine, target: Target) -> layout.Plan:
        key = engine.name, target.model
        if key not in self._plans:
            self._plans[key] = layout.Plan(engine, target.model)
        return self._plans[key]


class Http:
    """Pages over HTTP, on connections that are kept."""

    def __init__(self, settings: ScrapeSettings) -> None:
        self._timeout = settings.timeout
        self._session = requests.Session()
        self._session.trust_env = False  # pods are never behind the proxy of the way out
        for scheme in ("http://", "https://"):
            adapter = requests.adapters.HTTPAdapter(pool_connections=256, pool_maxsize=settings.workers)
            self._session.mount(scheme, adapter)

    def fetch(self, url: str) -> str:
        """The text behind an address.

        Raises:
            OSError: there is none (requests' errors are of this kind), or not in time.
            ValueError: it is too large or no UTF-8.
        """
        deadline = time.monotonic() + self._timeout
        with self._session.get(url, timeout=self._timeout, stream=True) as response:
            response.raise_for_status()
            return replies.body(response, deadline).decode()


_NO_RECIPE = Unknown(Cause.NOT_ASKED, "the engine's pages do not show it")


def _sheets(
    plan: layout.Plan, listed: Sequence[Page], texts: Mapping[str, str | Exception]
) -> tuple[list[tally.Sheet], dict[str, str]]:
    """Pages that could be read, and why not for the others, by pod."""
    sheets: list[tally.Sheet] = []
    missing: dict[str, str] = {}
    for page in listed:
        text = texts[page.url]
        if isinstance(text, Exception):
            missing[page.name] = f"{type(text).__name__}: {text}"[:DETAIL]
            continue
        try:
            sheets.append(_sheet(plan, page.name, text))
        except pages.PageError as error:
            missing[page.name] = str(error)[:DETAIL]
    return sheets, missing


def _sheet(plan: layout.Plan, pod: str, text: str) -> tally.Sheet:
    series, values = plan.reader.read(text)
    if not series:
        raise pages.PageError("none of the engine's series on it")
    return tally.Sheet(pod, plan.layout(series), np.array(values))


def _unknown(listed: Sequence[Page], missing: Mapping[str, str]) -> Unknown | None:
    if not listed:
        return Unknown(Cause.EMPTY, "no pod that should have a page")
    if not missing:
        return None
    some = "; ".join(f"{pod}: {why}" for pod, why in list(missing.items())[:NAMED])
    cause = Cause.SOURCE_DOWN if len(missing) == len(listed) else Cause.PARTIAL
    return Unknown(cause, f"{len(missing)} of {len(listed)} pages missing: {some}")
