"""Whether this process is the one that writes: alone, or one of several replicas."""

import dataclasses
import threading
from collections.abc import Callable
from typing import Protocol

from predictor.cluster.access import Access
from predictor.cluster.client import Api
from predictor.cluster.lease import Elector, Terms
from predictor.ports import Clock

GRACE = 0.5  # seconds for a renewal that is under way to end, and as many to give the lease back


class Leadership(Protocol):
    """Who may write."""

    @property
    def guard(self) -> Callable[[], bool] | None:
        """What is asked right before each write; None where there is nobody to ask."""
        ...

    def leads(self) -> bool:
        """Whether this process may write at this instant."""
        ...

    def start(self) -> None:
        """Takes part from now on."""
        ...

    def halt(self) -> None:
        """Renews no more: what is held goes on for as long as it lasts. Does not wait."""
        ...

    def end(self, *, idle: bool) -> None:
        """Takes part no more. Where `idle`, no write being under way, another replica may begin at once."""
        ...


class Alone:
    """The only replica there is."""

    guard = None

    def leads(self) -> bool:
        """Always."""
        return True

    def start(self) -> None:
        """Nothing to take part in."""

    def halt(self) -> None:
        """Nothing to renew."""

    def end(self, *, idle: bool) -> None:
        """Nothing to give back."""


class Replica:
    """One of several, with a client and a thread of its own: nothing that is slow delays a renewal."""

    def __init__(self, terms: Terms, access: Access, clock: Clock) -> None:
        self._stop = threading.Event()
        # Two tries at least before the lease is over.
        quick = dataclasses.replace(access, timeout=min(access.timeout, terms.renew / 2))
        self._api = Api(quick, wait=self._stop.wait)
        self._elector = Elector(self._api, terms, clock=clock)
        self._thread = threading.Thread(target=self._elector.run, args=(self._stop,), name="election", daemon=True)

    @property
    def guard(self) -> Callable[[], bool] | None:
        """Whether the lease is held."""
        return self._elector.holds

    def leads(self) -> bool:
        """Whether the lease is held."""
        return self._elector.holds()

    def start(self) -> None:
        """Takes part in the election."""
        self._thread.start()

    def halt(self) -> None:
        """Renews no more."""
        self._stop.set()

    def end(self, *, idle: bool) -> None:
        """Ends the election; the lease is given back unless a write, or a renewal, is still under way."""
        self.halt()
        self._thread.join(GRACE)
        if self._thread.is_alive():
            return
        if idle:
            giving = threading.Thread(target=self._elector.resign, name="resign", daemon=True)
            giving.start()
            giving.join(GRACE)
            if giving.is_alive():
                return
        self._api.close()
