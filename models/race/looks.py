"""Looks at a pool through the compiled code, for observations that cost little."""

import numpy as np

from models.fleet import entry, layout, looking
from models.fleet.pool import Pool
from models.fleet.seen import STALE, Sight
from models.series import Floats

SUMS = {
    looking.ARRIVED: looking.EACH_ARRIVED,
    looking.PROMPT: looking.EACH_PROMPT,
    looking.TOKENS: looking.EACH_TOKENS,
    looking.FINISHED: looking.EACH_FINISHED,
}


class Looks:
    """The newest look at a pool, taken when somebody asks; its memory is used again and again."""

    def __init__(self, pool: Pool, sight: Sight) -> None:
        self.pool, self.sight = pool, sight
        interval = pool.settings.scrape_interval
        self.interval = interval
        self._stale = STALE * (interval or 0.0)
        self._window = max(sight.window, self._stale)
        self._found, self._total = np.zeros(looking.POOL_COLUMNS), np.zeros(layout.SCRAPE_COLUMNS)
        self._each = np.zeros((looking.EACH_ROWS, 0))
        self._look, self._rise = entry.look(), entry.rises()
        self._seen: list[float] | None = None
        self._rose = False

    def fresh(self) -> "Looks":
        """As of now: what was seen before is forgotten."""
        self._seen, self._rose = None, False
        return self

    def found(self) -> list[float]:
        """Of the pool as a whole, by the columns of `looking`."""
        if self._seen is None:
            memory = self.pool.bound()
            if self._each.shape[1] < len(memory.replicas):
                self._each = np.zeros((looking.EACH_ROWS, len(memory.replicas)))
            self._look(memory.pool, self._window, self._stale, self._found, self._each)
            self._seen = self._found.tolist()
            if (n := int(self._seen[looking.REPLICAS])) > looking.BLOCK:
                self._seen[looking.KV] = float(self._each[looking.EACH_KV, :n].sum() / n)
        return self._seen

    def each(self) -> Floats:
        """Of each ready replica, by the rows of `looking`."""
        n = int(self.found()[looking.REPLICAS])
        found: Floats = self._each[:, :n]
        return found

    def risen(self) -> list[float]:
        """The same with what the counters' rises say; only where all pages are fresh."""
        seen = self.found()
        if not self._rose:
            self._rise(self.pool.bound().pool, self._found, self._each, self._total)
            self._rose = True
            seen[looking.TWICE_OLDEST :] = self._found[looking.TWICE_OLDEST :].tolist()
            if (n := int(seen[looking.TWICE])) > looking.BLOCK:
                for column, row in SUMS.items():
                    seen[column] = float(self._each[row, :n].sum())
        return seen
