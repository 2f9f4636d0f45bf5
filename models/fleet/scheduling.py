"""From one step of a replica to the next: who is in it, how long it takes, what an arrival changes."""

import math

from models.fleet import heap, measuring, prefixes, queues, replica, view
from models.fleet.jit import Record, compiled
from models.fleet.layout import ID_BITS, IDLE, MIXED, NEVER, NOTHING, RUNNING, STRETCH

ADMITTED, STUCK, UNSEEN = 0, 1, 2  # why admission stopped: nothing left to admit or no budget, no room, too new


@compiled
def retire(p: Record, rep: Record, i: int, t: float) -> None:
    """A request is done: its record is free again."""
    x = view.requests(p)[i]
    replica.finish(p, rep, i, t)
    prefixes.store(p, rep, x)
    if p.keeps_log == 1 and x.log >= 0:
        entry = view.log(p)[x.log]
        entry.first = x.first
        entry.end = t + p.alpha0
    queues.free_record(p, i)


@compiled
def end_step(p: Record, rep: Record, t: float) -> None:
    """The step or stretch under way ends: tokens are counted, first tokens appear, sequences finish."""
    q = view.requests(p)
    replica.end_step(p, rep, t)
    if rep.mode == MIXED:
        i = rep.run_tail
        if rep.partial != NOTHING:
            i = q[i].prev
        for _ in range(rep.completing):
            before = q[i].prev
            if replica.token_after_prefill(p, rep, i, t):
                retire(p, rep, i, t)
            i = before
        rep.tokens += rep.completing
        p.tokens += rep.completing
        rep.completing = 0
    while rep.decoding > 0 and rep.heap[0] >> ID_BITS == rep.step:
        i = rep.heap[0] & ((1 << ID_BITS) - 1)
        heap.pop(rep.heap, rep.decoding)
        rep.decoding -= 1
        x = q[i]
        rep.phases[(rep.step - (x.prompt + x.output - 1)) & p.mask] -= 1
        rep.context -= x.prompt + x.output
        retire(p, rep, i, t)
    rep.mode = IDLE


@compiled
def make_room(p: Record, rep: Record, t: float) -> bool:
    """Preempts until the blocks that the next tokens need are free, and takes them. True when one was preempted."""
    any_preempted = False
    while rep.phases[rep.step & p.mask] > rep.free:
        replica.preempt(p, rep, t)
        any_preempted = True
    return any_preempted


@compiled
def chunk(p: Record, rep: Record, x: Record, room: int) -> bool:
    """Prefills the next tokens of a request, as many as the budget leaves, and takes their blocks. True at its end."""
    tokens = min(x.target - x.done, room)
    rep.free -= replica.blocks(p, x.done + tokens) - replica.blocks(p, x.done)
    rep.prefill += tokens
    rep.square += tokens * (x.done + 0.5 * tokens)
    rep.allocated += tokens
    x.done += tokens
    if x.done == x.target:
        rep.completing += 1
        return True
    return False


@compiled
def admit(p: Record, rep: Record, i: int, t: float) -> None:
    """Moves the head of the queue into the batch."""
    q = view.requests(p)
    queues.leave_waiting(p, rep, i)
    x = q[i]
    x.state, x.target = RUNNING, x.prompt + x.made
    x.done = prefixes.hit(p, rep, x)
    rep.free -= replica.blocks(p, x.done)
    p.hit_tokens += x.done
    x.next, x.prev = NOTHING, rep.run_tail
    if rep.run_tail != NOTHING:
        q[rep.run_tail].next = i
    rep.run_tail = i
    rep.running += 1
    p.peak_running = max(p.peak_running, rep.running)
    if x.made == 0:
        rep.prompt_tokens += x.prompt
        if p.keeps_log == 1 and x.log >= 0:
            view.log(p)[x.log].scheduled = t


@compiled
def entry_blocks(p: Record, x: Record, room: int) -> int:
    """Blocks that have to be free for a waiting request to join: for its whole prompt, or for its first chunk."""
    tokens = x.prompt + x.made
    if p.reserve_prompt == 0:
        tokens = min(tokens, room)
    return replica.blocks(p, tokens)


@compiled
def go_on(p: Record, rep: Record, t: float) -> bool:
    """The next chunk of the partial prefill. True when there is no room for it: as the newest it is preempted."""
    q = view.requests(p)
    x = q[rep.partial]
    tokens = min(x.target - x.done, p.budget - rep.decoding)
    if replica.blocks(p, x.done + tokens) - replica.blocks(p, x.done) > rep.free:
        replica.preempt(p, rep, t)
        return True
    if chunk(p, rep, x, tokens):
        rep.partial = NOTHING
    return False


@compiled
def admit_in_order(p: Record, rep: Record, t: float) -> int:
    """Admits from the queue, first come first served; why it stopped."""
    room = p.budget - rep.decoding
    while rep.waiting > 0 and room > rep.prefill:
        i = rep.wait_head
        x = view.requests(p)[i]
        if x.queued > rep.seen_until:
            return UNSEEN
        if rep.running == p.max_seqs or entry_blocks(p, x, room - rep.prefill) > rep.free:
            return STUCK
        admit(p, rep, i, t)
        if not chunk(p, rep, x, room - rep.prefill):
            rep.partial = i
    return ADMITTED


@compiled
def plan(p: Record, rep: Record, t: float) -> None:
    """Decides at a step boundary what the engine does next, and until when."""
    schedule(p, rep, t)
    if rep.mode == IDLE and rep.waiting > 0:
        rep.seen_until = t  # what the last step still held is free now
        schedule(p, rep, t)


@compiled
def schedule(p: Record, rep: Record, t: float) -> None:
    """Who is in the next step."""
    if rep.running == rep.owed_places:
        replica.pay(rep)  # nothing could be planned ahead: the engine waited for the last step and looks again now
        rep.seen_until = t
    preempted = make_room(p, rep, t)
    rep.free -= rep.phases[rep.step & p.mask]
    rep.prefill, rep.square = 0, 0.0
    if rep.partial != NOTHING and go_on(p, rep, t):
        preempted = rep.running > 0
    stopped = STUCK if preempted else admit_in_order(p, rep, t)
    measuring.blocked(p, rep, 1 if stopped == STUCK else 0, t)
    more_room = replica.pay(rep) and rep.waiting > 0
    begin(p, rep, t, preempted or more_room or stopped == UNSEEN)


@compiled
def begin(p: Record, rep: Record, t: float, single: bool) -> None:  # noqa: FBT001  (compiled code takes no keywords)
    """Starts a step with prefill, a stretch of steps without, or waits for work."""
    rep.began = t
    if rep.prefill > 0:
        rep.mode, rep.planned = MIXED, 1
        rep.ends = t + replica.step_time(p, rep.decoding, rep.prefill, rep.context, rep.square)
        return
    rep.free += rep.phases[rep.step & p.mask]  # a stretch takes its blocks when it ends, in one sum
    if rep.decoding == 0:
        rep.mode, rep.planned, rep.ends = IDLE, 0, NEVER
        return
    rep.mode = STRETCH
    rep.planned = replica.steps_until_full(p, rep, (rep.heap[0] >> ID_BITS) - rep.step)
    if single:
        rep.planned = 1  # after it there may be room for who waits
    rep.ends = t + replica.stretch_time(p, rep, rep.planned)


@compiled
def cut(p: Record, rep: Record, t: float) -> None:
    """The head of the queue is new: the stretch under way ends with the step of this moment if it then fits."""
    if rep.mode == IDLE:
        rep.seen_until = t
        plan(p, rep, t)
        return
    if rep.mode == MIXED or rep.waiting == 0:
        return
    steps = max(1, math.ceil(replica.steps_at(p, rep, t)))
    if steps < rep.planned and rep.began + replica.stretch_time(p, rep, steps) < t:
        steps += 1
    steps = min(steps + p.ahead, rep.planned)
    x = view.requests(p)[rep.wait_head]
    left = rep.free - replica.growth(p, rep, steps) - rep.phases[(rep.step + steps) & p.mask]
    if rep.running >= p.max_seqs or entry_blocks(p, x, p.budget - rep.decoding) > left:
        measuring.blocked(p, rep, 1, t)
    elif steps < rep.planned:
        rep.planned = steps
        rep.ends = rep.began + replica.stretch_time(p, rep, steps)


@compiled
def never_fits(p: Record, x: Record) -> bool:
    """Whether a request is too long for an empty replica."""
    return replica.blocks(p, x.prompt + x.output) > p.blocks
