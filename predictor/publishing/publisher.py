"""The recommended numbers of all targets, as a metric and for KEDA."""

import time
from collections.abc import Callable

from predictor.board import Board
from predictor.publishing import certificates, recommending
from predictor.publishing.certificates import Files
from predictor.publishing.recommending import Recommendation, Recommended
from predictor.publishing.scaler import Scaler, Server

SLOW_TICKS = 2.0  # a decision older than this many slow intervals is not told: one tick may be late, not two


class Publisher:
    """Tells what the board says, as long as that is new.

    Args:
        board: the board as it is now; another one after a change of the configuration.
        slow: seconds between two slow ticks, as it is now.
        told: where the metric goes: target key, replicas or None.
        monotonic: the clock of the board's rows.
    """

    def __init__(
        self,
        board: Callable[[], Board],
        *,
        slow: Callable[[], float],
        told: Callable[[str, int | None], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._board = board
        self._slow = slow
        self._told = told
        self._monotonic = monotonic
        self._server: Server | None = None

    def serve(self, *, host: str, port: int, tls: Files | None = None) -> None:
        """Answers KEDA from now on; with `tls`, by that certificate.

        Raises:
            ListenError: the address cannot be had.
            ConfigurationError: the certificate cannot be used.
        """
        credentials = certificates.credentials(tls) if tls else None
        self._server = Server(Scaler(self.recommendation), host=host, port=port, credentials=credentials)
        self._server.start()

    def stop(self) -> None:
        """Answers no more."""
        if self._server is not None:
            self._server.stop()

    def tell(self) -> None:
        """Brings the metric up to date."""
        for key in self._board().entries:
            found = self.recommendation(key)
            self._told(key, found.replicas if isinstance(found, Recommended) else None)

    def recommendation(self, key: str) -> Recommendation | None:
        """The number of a target, or why there is none; None where there is no such target."""
        entry = self._board().entries.get(key)
        if entry is None:
            return None
        return recommending.recommend(entry, at=self._monotonic(), old_after=SLOW_TICKS * self._slow())
