"""One replica: vLLM's v1 scheduler over the step law.

Each step decodes one token of every sequence, goes on with the one partial prefill, then admits from the queue in order
while the token budget, the batch and the KV blocks allow. When the blocks of the next tokens are not free, the newest
sequence is preempted: it goes to the front of the queue and its tokens are computed again; nothing is admitted in such
a step. Steps without prefill repeat until a sequence finishes, the blocks run out or a request arrives that can be
admitted: m of them take m T0 + c n m (m - 1) / 2, so that a request costs a few events and not one for each token.

The functions take the pool record `p`, the replica record `rep`, the request records `q` and the time `t`.
"""

import math

from models.fleet import heap, measuring, queues, view
from models.fleet.jit import Record, compiled
from models.fleet.layout import ID_BITS, NOTHING, STRETCH


# ------------------------------------------------------------------------------------------------------ step and blocks
@compiled
def step_time(p: Record, decoding: int, prefill: int, context: int, square: float) -> float:
    """Seconds of one step; `square` is the sum of chunk x (start + chunk / 2)."""
    x = p.d * (decoding + prefill)
    xx = x * x
    root = math.sqrt(math.sqrt(p.w4 + xx * xx))
    return p.fixed + root + p.b * decoding + p.c * context + p.q * square


@compiled
def stretch_time(p: Record, rep: Record, steps: int) -> float:
    """Seconds of so many steps of the present batch without prefill."""
    first = p.base[rep.decoding] + p.c * rep.context
    return steps * first + p.c * rep.decoding * (0.5 * steps * (steps - 1))


@compiled
def steps_at(p: Record, rep: Record, t: float) -> float:
    """Steps of the stretch under way that have passed at the time t, with the share of the one in progress."""
    half = 0.5 * p.c * rep.decoding
    linear = p.base[rep.decoding] + p.c * rep.context - half
    passed = t - rep.began
    return 2 * passed / (linear + math.sqrt(linear * linear + 4 * half * passed))


@compiled
def blocks(p: Record, tokens: int) -> int:
    """Blocks that hold so many tokens."""
    return (tokens + p.mask) >> p.shift


@compiled
def growth(p: Record, rep: Record, steps: int) -> int:
    """Blocks that the next so many decode steps take."""
    total: int = (steps >> p.shift) * rep.decoding
    for k in range(steps & p.mask):
        total += rep.phases[(rep.step + k) & p.mask]
    return total


@compiled
def steps_until_full(p: Record, rep: Record, most: int) -> int:
    """Decode steps, `most` at most, for which the free blocks last."""
    if blocks(p, most) * rep.decoding <= rep.free:
        return most
    rounds = rep.free // rep.decoding
    steps, used = rounds << p.shift, rounds * rep.decoding
    while steps < most:
        used += rep.phases[(rep.step + steps) & p.mask]
        if used > rep.free:
            break
        steps += 1
    return steps


# ------------------------------------------------------------------------------------------------- what a step leads to
@compiled
def finish(p: Record, rep: Record, i: int, t: float) -> None:
    """The last token of a request."""
    q = view.requests(p)
    x = q[i]
    held = blocks(p, x.prompt + x.output - 1)  # the KV of the last token is never computed
    if p.ahead == 1:
        rep.owed_blocks += held
        rep.owed_places += 1
    else:
        rep.free += held
        rep.running -= 1
    if x.next == NOTHING:
        rep.run_tail = x.prev
    else:
        q[x.next].prev = x.prev
    if x.prev != NOTHING:
        q[x.prev].next = x.next
    end = t + p.alpha0
    measuring.whole(p, rep, end - x.arrived)
    if x.output > 1:
        p.tpot_sum += (end - x.first) / (x.output - 1)
        p.tpot_count += 1
    p.last_end = max(p.last_end, end)
    rep.finished += 1
    p.finished += 1
    measuring.in_system(p, -1, t)


@compiled
def pay(rep: Record) -> bool:
    """Frees what finished requests still held. True when there was something."""
    if rep.owed_places == 0:
        return False
    rep.free += rep.owed_blocks
    rep.running -= rep.owed_places
    rep.owed_blocks, rep.owed_places = 0, 0
    return True


@compiled
def note_first_token(p: Record, rep: Record, x: Record, t: float) -> None:
    """The first token a client sees, judged once however often the request was sent."""
    x.first = t + p.alpha0
    ttft = x.first - x.arrived
    if x.met == NOTHING:
        measuring.first_token(p, rep, ttft)
        x.met = 1 if ttft <= p.objective else 0
        p.met += x.met
        p.late += 1 - x.met


@compiled
def token_after_prefill(p: Record, rep: Record, i: int, t: float) -> bool:
    """The token that ends a prefill; the request then decodes. True when it was its last one."""
    q = view.requests(p)
    x = q[i]
    x.made += 1
    if x.first < 0:
        note_first_token(p, rep, x, t)
    else:
        measuring.gaps(p, rep, 1, t - x.last)  # it was preempted in between
    if x.made == x.output:
        return True
    x.finish = rep.step + x.output - x.made
    rep.phases[(rep.step - (x.prompt + x.made - 1)) & p.mask] += 1
    rep.context += x.prompt + x.made
    heap.push(rep.heap, rep.decoding, (x.finish << ID_BITS) | i)
    rep.decoding += 1
    return False


@compiled
def preempt(p: Record, rep: Record, t: float) -> None:
    """Takes the newest sequence out of the batch; it goes to the front of the queue and starts again."""
    q = view.requests(p)
    i = rep.run_tail
    x = q[i]
    if i == rep.partial:
        rep.free += blocks(p, x.done)
        rep.partial = NOTHING
    else:
        x.made = x.output - (x.finish - rep.step)
        held = x.prompt + x.made - 1
        rep.free += blocks(p, held)
        rep.phases[(rep.step - held) & p.mask] -= 1
        rep.context -= x.prompt + x.made
        heap.remove(rep.heap, rep.decoding, (x.finish << ID_BITS) | i)
        rep.decoding -= 1
        x.last = t
        p.recomputed += held
    rep.run_tail = x.prev
    if x.prev != NOTHING:
        q[x.prev].next = NOTHING
    rep.running -= 1
    rep.preempted += 1
    p.preempted += 1
    x.done = 0
    queues.wait_first(p, rep, i)


@compiled
def end_step(p: Record, rep: Record, t: float) -> None:
    """The step or the stretch under way is over: every sequence has its tokens, at the time t."""
    n, steps = rep.decoding, rep.planned
    if rep.mode == STRETCH:
        rep.free -= growth(p, rep, steps)  # a mixed step took its blocks when it was planned
    rep.step += steps
    rep.context += n * steps
    rep.tokens += n * steps
    rep.allocated += n * steps
    p.tokens += n * steps
    if n > 0:
        measuring.gaps(p, rep, n * steps, (t - rep.began) / steps)
    # Planned ahead, the next step was decided when the last one began; only what had arrived by then can be in it.
    rep.seen_until = t
    if p.ahead == 1:
        rep.seen_until = rep.began + (t - rep.began) * (steps - 1) / steps
