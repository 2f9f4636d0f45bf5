"""Contexts for the tests of the policy."""

import dataclasses

from models.capacity.sizing import Need, NeedKind, NoPlan, Plan
from models.policy.context import Context, FloorSettings, Memory, Supply

NOW = 1_000_000.0
SETTINGS = FloorSettings(hold=300, step_down=1, step_period=60, unknown_ttl=3600)
LONG_AGO = Memory(needed_at=NOW - 10_000)
NO_PLAN = NoPlan("nothing is known")


def plan(replicas: int, *, room: bool = False) -> Plan:
    return Plan((Need(NeedKind.IN_FLIGHT, replicas * 40.0, 40.0, room=room),))


def context(**changes: object) -> Context:
    """A target at rest: 5 stand, 5 are planned, base 2, max 10."""
    rest = Context(
        now=NOW,
        standing=5,
        base=2,
        maximum=10,
        raising=plan(5),
        lowering=plan(5),
        reacting=plan(1),
        supply=Supply(ready=5),
    )
    return dataclasses.replace(rest, **changes)  # type: ignore[arg-type]
