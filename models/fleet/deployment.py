"""A fleet whose replicas have to be asked for and warm up first."""

from models.fleet.fleet import Arrivals, Fleet
from models.fleet.lifecycle import Lifecycle, State


class Deployment:
    """A fleet and the life of its replicas, on one time axis."""

    def __init__(self, fleet: Fleet, lifecycle: Lifecycle, *, replicas: int) -> None:
        """Begins with `replicas` that are ready."""
        self.fleet = fleet
        self.lifecycle = lifecycle
        lifecycle.ask(replicas, fleet.now)
        for member in lifecycle.members:
            if member.state is State.WARMING:
                member.ready_at = fleet.now
                self.fleet.add(member.name)
        lifecycle.warmed(fleet.now)
        lifecycle.warm_ups.clear()  # these did not warm up: nothing was measured

    @property
    def now(self) -> float:
        """The present, seconds."""
        return self.fleet.now

    def offer(self, arrivals: Arrivals) -> None:
        """Requests that will arrive."""
        self.fleet.offer(arrivals)

    def scale(self, replicas: int) -> None:
        """Asks for a number of replicas from now on."""
        for name in self.lifecycle.ask(replicas, self.now):
            self.fleet.remove(name)
        self._collect()

    def advance(self, to: float) -> None:
        """Lets time pass until `to` (seconds); replicas serve from the very moment they are ready."""
        while self.lifecycle.next_ready <= to:
            self.fleet.advance(max(self.lifecycle.next_ready, self.now))
            for name in self.lifecycle.warmed(self.now):
                self.fleet.add(name)
        self.fleet.advance(to)
        self._collect()

    def _collect(self) -> None:
        """Draining replicas that have finished are gone."""
        serving = {*self.fleet.ready, *self.fleet.draining}
        for member in list(self.lifecycle.members):
            if member.state is State.DRAINING and member.name not in serving:
                self.lifecycle.gone(member.name, self.now)
