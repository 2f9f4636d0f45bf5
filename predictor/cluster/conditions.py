"""How a target fares, as a condition on the object whose minimum is moved: for `kubectl describe`, and for tools.

An annotation with the fields of a Kubernetes condition, because `status` of these objects is their own controllers'. It
changes when the state does, not with every tick, and at most once in `QUIET` seconds unless the number is written
anyway. Only what carries our marks has one: an object whose number was never moved is not touched to say so.

An annotation does not disturb who reads the object: KEDA begins its loop anew with the object's generation, which an
annotation leaves as it is, and an HPA looks every 15 s whatever changes.
"""

import dataclasses
import enum
import json
import threading
from collections.abc import Collection
from typing import Any

from models.policy.decision import Decision, Reason
from predictor.cluster import marks

TYPE = "FloorFollowsPlan"
QUIET = 60.0  # seconds between two writes of nothing but the condition
LONGEST_MESSAGE = 512  # characters: it is read on one line of `kubectl describe`


class State(enum.StrEnum):
    """The condition's reason."""

    ACTIVE = "Active"  # the number follows the plan, at the pace of the rules
    HELD = "Held"  # something is not known or not well: the number is held, or decays to the user's own
    CAPPED = "Capped"  # the plan asks for more than the maximum
    REFUSED = "Refused"  # the number cannot be written


# What is not here is the rules' everyday pace.
_STATES = {
    Reason.HELD_UNKNOWN: State.HELD,
    Reason.HELD_NO_FORECAST: State.HELD,
    Reason.HELD_OWNER_UNHEALTHY: State.HELD,
    Reason.HELD_ROLLOUT: State.HELD,
    Reason.HELD_OBJECTIVE_MISSED: State.HELD,
    Reason.DECAYED_ONE_STEP: State.HELD,
    Reason.CAPPED_AT_MAXIMUM: State.CAPPED,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """How a target fares.

    Attributes:
        state: in one word.
        message: for a person.
        floor: the number that stands.
        wanted: what the plan asks for; None where there is no plan.
    """

    state: State
    message: str
    floor: int
    wanted: int | None

    def written(self, before: str, *, now: float) -> str:
        """As it stands on the object; the transition is that of the annotation `before`, if that is the same state."""
        known = _parsed(before)
        same = known.get("reason") == self.state and isinstance(known.get("lastTransitionTime"), str)
        return json.dumps(
            {
                "type": TYPE,
                "status": "True" if self.state is State.ACTIVE else "False",
                "reason": self.state,
                "lastTransitionTime": known["lastTransitionTime"] if same else marks.stamp(now),
                "floor": self.floor,
                "wanted": self.wanted,
                "message": self.message[:LONGEST_MESSAGE],
            }
        )


def of(decision: Decision) -> Condition:
    """What a decision says."""
    state = _STATES.get(decision.reason, State.ACTIVE)
    change = f"{decision.before} -> {decision.replicas}" if decision.changes else f"stays {decision.before}"
    message = f"{marks.stamp(decision.at)} {decision.reason}: {change}: {decision.note or decision.reason}"
    return Condition(state, message, decision.replicas, decision.wanted)


def _parsed(written: str) -> dict[str, Any]:
    try:
        found = json.loads(written) if written else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class Conditions:
    """The conditions of all targets as they should stand. Safe to use from several threads."""

    def __init__(self) -> None:
        self._now: dict[str, Condition] = {}
        self._told_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def put(self, key: str, condition: Condition) -> None:
        """How target `key` fares from now on."""
        with self._lock:
            self._now[key] = condition

    def wrote(self, key: str, *, now: float) -> None:
        """A condition of target `key` was written."""
        with self._lock:
            self._told_at[key] = now

    def due(self, key: str, written: str, *, now: float, instead: Condition | None = None) -> Condition | None:
        """What is to be written now; None where the annotation `written` says so already, or was written just now.

        Args:
            key: target.
            written: the annotation.
            now: Unix time, seconds.
            instead: what holds for as long as it is given, whatever was decided.
        """
        with self._lock:
            condition = instead or self._now.get(key)
            quiet = 0 <= now - self._told_at.get(key, float("-inf")) < QUIET
        return None if condition is None or quiet or _parsed(written).get("reason") == condition.state else condition

    def drop(self, key: str) -> None:
        """Nothing is to be told of target `key` until there is something new."""
        with self._lock:
            self._now.pop(key, None)

    def keep_only(self, keys: Collection[str]) -> None:
        """Forgets all other targets."""
        with self._lock:
            self._now = {key: one for key, one in self._now.items() if key in keys}
            self._told_at = {key: at for key, at in self._told_at.items() if key in keys}
