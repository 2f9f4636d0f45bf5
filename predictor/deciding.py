"""The deciding stage of a tick: what is known of a target -> context -> decision."""

import dataclasses
from collections.abc import Iterable

from models import stall
from models.capacity import crowd, limits, mix, sizing
from models.capacity.limits import Limit
from models.policy import floor, planning, reactive
from models.policy.context import Context, Memory
from models.policy.decision import Decision, Reason
from models.signals import Cause, Known, Signal, Unknown
from predictor import learning, limiting
from predictor.board import NOT_YET, Basis, Entry
from predictor.outlooks import Pace
from predictor.ports import Readings, Workload
from predictor.targets import Mode

PLANS_LIVE_FOR = 4  # slow intervals: one tick may fail and one be late before the fast loop stops trusting the plans
LOOKS_LAST = 300.0  # seconds: growth since a look further back is that of another time
DEMAND_SIGNALS = (Signal.ARRIVALS, Signal.IN_FLIGHT, Signal.WAITING)
SIZE_SIGNALS = (Signal.TOKENS_IN, Signal.TOKENS_OUT, Signal.COMPLETIONS)
NEVER_TOLD = (Cause.NOT_ASKED, Cause.EMPTY)


def decide(
    entry: Entry,
    workload: Workload,
    *,
    now: float,
    loading: bool,
    pace: Pace,
    others: Iterable[Entry] = (),
) -> Decision:
    """The decision for one target; the row's memory moves on with it.

    Args:
        entry: the target's row, with fresh readings.
        workload: its state in the cluster.
        now: Unix time, seconds.
        loading: the history is not loaded yet.
        pace: how often the loops look, after which plans are too old, and over how long rates are taken.
        others: the rows of all targets: some may share its GPUs.
    """
    plans_ttl = PLANS_LIVE_FOR * pace.slow
    entry.mix = _mix(entry, workload, lag=pace.rates_lag)
    entry.capacity = learning.learn(entry, workload, now=now)
    entry.flow = stall.look(entry.flow, _flow(entry), now=now)
    entry.stalled = stall.stalled_for(entry.flow, now=now)
    entry.limits = limiting.of(entry, workload, others)
    memory = _memory(entry, now=now, longest_gap=plans_ttl)
    context = _context(entry, workload, now=now, loading=loading, plans_ttl=plans_ttl)
    entry.basis = Basis(context, memory, entry.objectives.floor)
    decision, entry.memory = floor.decide(context, entry.basis.settings, memory)
    return _named(decision, limiting.applied(entry.limits, workload, standing=context.standing))


def _named(decision: Decision, limit: Limit) -> Decision:
    """A cap says which limit it is, where it is not the owner's own maximum."""
    if decision.reason is not Reason.CAPPED_AT_MAXIMUM or limit.name == limits.MAXIMUM:
        return decision
    return dataclasses.replace(decision, note=f"{decision.note} ({limit.name})")


def _memory(entry: Entry, *, now: float, longest_gap: float) -> Memory:
    """What is remembered of the target; after a long gap, or one in the clock, holds begin anew.

    What was needed meanwhile nobody looked at, and times from before the clock was set say nothing of how long ago.
    """
    memory = entry.memory or Memory(needed_at=now)
    if entry.decision is None or abs(now - entry.decision.at) <= longest_gap:
        return memory
    return Memory(needed_at=now, lowered_at=min(memory.lowered_at, now))


def demanded(entry: Entry) -> Readings:
    """The readings as the history is to remember them, in flight as far as it is demand.

    A forecast from what a fleet holds while it works a backlog off would ask for more replicas the more there are.
    """
    reading, workload = entry.readings.get(Signal.IN_FLIGHT), entry.workload
    if not isinstance(reading, Known) or not isinstance(workload, Workload):
        entry.looks, entry.growth = (), 0.0
        return entry.readings
    ready, waiting = workload.supply.ready, _value(entry, Signal.WAITING)
    if waiting is None or not _whole(entry, ready):
        # Pods that have just become Ready are not scraped yet, and that is when a backlog begins to be worked off:
        # what was seen before them says by how much, once they are.
        entry.looks, entry.growth = _lasting(entry.looks, ready=ready, at=reading.at), 0.0
    else:
        before = _lasting(entry.looks, ready=ready, at=reading.at)
        entry.looks = crowd.after(before, crowd.Look(reading.at, reading.value + waiting, waiting, ready))
        entry.growth = crowd.growth(entry.looks)
    value = crowd.demanded(entry.objectives.profile, _load(entry), ready=ready)
    if value is None or value == reading.value:
        return entry.readings
    return {**entry.readings, Signal.IN_FLIGHT: dataclasses.replace(reading, value=value)}


def _load(entry: Entry) -> sizing.Load:
    return sizing.Load(
        in_flight=_value(entry, Signal.IN_FLIGHT),
        arrivals=_value(entry, Signal.ARRIVALS),
        duration=entry.plans.duration if entry.plans else None,
        growth=entry.growth,
        tokens_in=_value(entry, Signal.TOKENS_IN),
        tokens_out=_value(entry, Signal.TOKENS_OUT),
    )


def _lasting(looks: crowd.Looks, *, ready: int, at: float) -> crowd.Looks:
    """Looks from which growth can still be told: as many replicas are Ready, and the last is not long ago."""
    return looks if looks and ready >= looks[-1].ready and at - looks[-1].at <= LOOKS_LAST else ()


def standing(entry: Entry, workload: Workload) -> int:
    """The number that counts as standing: the live one, or where nothing is written what would stand had we."""
    written = entry.target.mode is Mode.CONTROL and workload.advice is None
    if written or entry.shadow_floor is None:
        return workload.standing
    return max(entry.shadow_floor, workload.base)


def unknown(entry: Entry, workload: Workload) -> tuple[tuple[Signal, Cause], ...]:
    """What plans are made of, was asked for and is not known; KV usage and token rates where they are planned for.

    What sizes are made of counts once they were known: an engine that never tells them is planned for as it was tested.
    Sums over fewer pods than are Ready are too low, however fresh: that is partial, and as good as unknown.
    """
    profile = entry.objectives.profile
    sizes = SIZE_SIGNALS if entry.mix and profile.by_size is not None else ()
    planned = (*([Signal.KV_USAGE] if profile.kv_tokens is not None else []), *planning.token_signals(profile))
    asked = dict.fromkeys((*DEMAND_SIGNALS, *planned, *sizes))
    readings = ((signal, entry.readings.get(signal, Unknown(Cause.EMPTY))) for signal in asked)
    missing = tuple(
        (signal, reading.cause)
        for signal, reading in readings
        if isinstance(reading, Unknown) and reading.cause is not Cause.NOT_ASKED
    )
    return (*missing, (Signal.REPORTING, Cause.PARTIAL)) if _partial(entry, workload.supply.ready) else missing


def _whole(entry: Entry, ready: int) -> bool:
    """Whether sums are known to be over all Ready pods; a source that has no such signal tells a missing one apart."""
    if Signal.REPORTING not in entry.readings:
        return True
    reporting = _value(entry, Signal.REPORTING)
    return reporting is not None and reporting >= ready


def _partial(entry: Entry, ready: int) -> bool:
    """Whether they are known not to be."""
    reporting = _value(entry, Signal.REPORTING)
    return reporting is not None and reporting < ready


def _context(entry: Entry, workload: Workload, *, now: float, loading: bool, plans_ttl: float) -> Context:
    plans = entry.plans
    stalled = ((Signal.IN_FLIGHT, Cause.STALLED),) if entry.stalled else ()
    raising, lowering = (plans.raising, plans.lowering) if plans else (NOT_YET, NOT_YET)
    if plans and now - plans.made_at > plans_ttl:
        raising = lowering = sizing.NoPlan(f"the last forecast is {now - plans.made_at:.0f} s old")
    return Context(
        now=now,
        standing=standing(entry, workload),
        base=workload.base,
        maximum=limiting.applied(entry.limits, workload, standing=standing(entry, workload)).replicas,
        raising=_moving(raising, entry),
        lowering=_moving(lowering, entry),
        reacting=reacting(entry, workload),
        supply=workload.supply,
        unknown=(*unknown(entry, workload), *stalled),
        loading=loading,
        rollout=workload.rollout,
        owner_problem=workload.owner_problem,
        breach=_breach(entry),
        unsized=unsized(entry),
    )


def _breach(entry: Entry) -> str:
    """The objective that is missed now; more replicas of a stalled engine would not mend it."""
    ttft, objective = _value(entry, Signal.TTFT_P95), entry.target.learning.ttft
    if ttft is None or objective is None or ttft <= objective or entry.stalled:
        return ""
    return f"TTFT p95 {ttft:.2f} s over {objective:g} s"


def _moving(planned: sizing.Planned, entry: Entry) -> sizing.Planned:
    """The plan without what is in flight while that is stalled: it does not end, however many replicas there are."""
    if not entry.stalled or isinstance(planned, sizing.NoPlan):
        return planned
    needs = tuple(need for need in planned.needs if need.kind is sizing.NeedKind.ARRIVALS)
    return sizing.Plan(needs) if needs else sizing.NoPlan(stall_told(entry))


def stall_told(entry: Entry) -> str:
    """That the engines are stalled, in words."""
    return f"requests run and none has ended for {entry.stalled:.0f} s: the engines are stalled"


def unsized(entry: Entry) -> str:
    """How many requests were seen where these are too few to know their sizes; empty where they do not matter.

    Nor do they where the engine has never told them: it is planned for as it was tested.
    """
    if entry.target.objectives.profile.by_size is None or mix.known(entry.mix):
        return ""
    readings = [entry.readings.get(signal, Unknown(Cause.EMPTY)) for signal in SIZE_SIGNALS]
    if entry.mix is None and any(isinstance(one, Unknown) and one.cause in NEVER_TOLD for one in readings):
        return ""
    seen = entry.mix.taken if entry.mix else 0.0
    return f"sizes of requests are not known, {max(seen, 0.0):.0f} of {mix.PRIOR:.0f} seen"


def _mix(entry: Entry, workload: Workload, *, lag: float) -> mix.Mix | None:
    """The sizes of late after this look; sums over some of the pods only tell nothing of them."""
    running = entry.readings.get(Signal.IN_FLIGHT)
    if entry.target.objectives.profile.by_size is None or not isinstance(running, Known):
        return entry.mix
    tokens_in, tokens_out, ended = (_value(entry, one) for one in SIZE_SIGNALS)
    if tokens_in is None or tokens_out is None or ended is None or not _whole(entry, workload.supply.ready):
        return entry.mix
    return mix.after(entry.mix, mix.Flow(tokens_in, tokens_out, ended, running.value), at=running.at, lag=lag)


def _flow(entry: Entry) -> stall.Flow:
    return stall.Flow(running=_value(entry, Signal.IN_FLIGHT), tokens=_value(entry, Signal.TOKENS_OUT))


def reacting(entry: Entry, workload: Workload, *, with_backlog: bool = True) -> sizing.Planned:
    """The plan for the load of this moment. Requests that wait for stalled engines ask for no more of them."""
    load = _load(entry)
    if entry.stalled:
        load = dataclasses.replace(load, in_flight=None, tokens_in=None, tokens_out=None)
    return reactive.react(
        entry.objectives,
        load if with_backlog or load.arrivals is None else dataclasses.replace(load, in_flight=None),
        waiting=_value(entry, Signal.WAITING) if with_backlog and not entry.stalled else None,
        supply=workload.supply,
        lead=entry.plans.horizons.raising if entry.plans else 0.0,
        tokens=None if entry.stalled else _tokens(entry, workload),
    )


def _tokens(entry: Entry, workload: Workload) -> sizing.Tokens | None:
    """KV-cache demand; None without usage or capacity. A backlog counts where mean lengths can be told."""
    usage, capacity = _value(entry, Signal.KV_USAGE), entry.objectives.profile.kv_tokens
    if usage is None or capacity is None:
        return None
    used = usage * capacity * workload.supply.ready
    arrivals, waiting = _value(entry, Signal.ARRIVALS), _value(entry, Signal.WAITING)
    prompts, outputs = _value(entry, Signal.TOKENS_IN), _value(entry, Signal.TOKENS_OUT)
    if not arrivals or waiting is None or prompts is None or outputs is None or workload.supply.warming:
        return sizing.Tokens(used)
    return sizing.Tokens(used, waiting, prompts / arrivals, outputs / arrivals)


def _value(entry: Entry, signal: Signal) -> float | None:
    reading = entry.readings.get(signal)
    return reading.value if isinstance(reading, Known) else None
