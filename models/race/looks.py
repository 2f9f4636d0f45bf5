"""Looks at a pool through the compiled code, for observations that cost little."""

import numpy as np

from models.fleet import entry, layout, looking
from models.fleet.pool import Pool
from models.fleet.seen import STALE, Sight
from models.series import Floats


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
        self._rises: Floats | None = None

    def fresh(self) -> "Looks":
        """As of now: what was seen before is forgotten."""
        self._seen = self._rises = None
        return self

    def found(self) -> list[float]:
        """Of the pool as a whole, by the columns of `looking`."""
        if self._seen is None:
            memory = self.pool.bound()
            if self._each.shape[1] < len(memory.replicas):
                self._each = np.zeros((looking.EACH_ROWS, len(memory.replicas)))
            self._look(memory.pool, self._window, self._stale, self._found, self._each)
            self._seen = self._found.tolist()
        return self._seen

    def each(self) -> Floats:
        """Of each ready replica, by the rows of `looking`."""
        n = int(self.found()[looking.REPLICAS])
        found: Floats = self._each[:, :n]
        return found

    def rises(self) -> Floats:
        """Of all replicas together, by the columns of a scrape; `each` then has the rates."""
        if self._rises is None:
            self.found()
            self._rise(self.pool.bound().pool, self._found, self._each, self._total)
            self._seen, self._rises = self._found.tolist(), self._total
        return self._rises
