"""Prefix caching: which part of a prompt a replica need not compute because it served the session before.

A replica remembers, for each session it served, how many tokens of it are in its KV cache; a later turn of the session
that comes to the same replica finds the tokens it shares with the earlier turns. So the share of hits grows with the
locality of the sessions, which is the router's doing.
"""

from models.fleet import view
from models.fleet.jit import Record, compiled
from models.fleet.layout import CACHE_PLACES


@compiled
def place_of(session: int) -> int:
    """Where a session is remembered."""
    return ((session * 0x9E3779B1) >> 7) & (CACHE_PLACES - 1)


@compiled
def hit(p: Record, rep: Record, x: Record) -> int:
    """Tokens of the prompt, whole blocks, that need no computing; the last token of a prompt always does.

    What was stored is gone once as many tokens as the whole cache holds were allocated after it: least recently used.
    """
    if p.prefix == 0 or x.session < 0 or x.shared == 0 or x.made > 0:
        return 0
    entry = view.cached(p, rep.slot, place_of(x.session))
    if entry.session != x.session or rep.allocated - entry.stored > p.blocks << p.shift:
        return 0
    return (min(x.shared, entry.tokens, x.prompt - 1) >> p.shift) << p.shift


@compiled
def store(p: Record, rep: Record, x: Record) -> None:
    """Remembers a finished request's tokens."""
    if p.prefix == 0 or x.session < 0:
        return
    entry = view.cached(p, rep.slot, place_of(x.session))
    entry.session = x.session
    entry.tokens = x.prompt + x.output
    entry.stored = rep.allocated
