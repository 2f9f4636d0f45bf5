"""Ports and loopback networks that two rigs on one machine never share.

A lease is an abstract Unix socket: the kernel gives a name to one holder only and takes it back when the holder dies,
so nothing is left to clean up. Ports come from below the range the kernel hands to outgoing connections; otherwise
a server that is restarted on its own port could find it taken by somebody's client.
"""

import os
import socket
from collections.abc import Iterable
from types import TracebackType
from typing import Self

PORTS = range(20000, 30000)
NETWORKS = range(10, 127)  # 127.N.0.0/16; 127.0.0.0/16 stays with everybody else


class NothingFreeError(RuntimeError):
    """Every number of the range is taken."""


class Lease:
    """A number nobody else on this machine holds until `close` or the end of this process."""

    def __init__(self, kind: str, number: int) -> None:
        self.number = number
        self._holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._holder.bind(f"\0floorcast-rig/{kind}/{number}")
        except OSError:
            self._holder.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the number back."""
        self._holder.close()


def port() -> Lease:
    """Lease a TCP port on which 127.0.0.1 can listen."""
    start = os.getpid() * 37 % len(PORTS)  # neighbours start far apart, so that they seldom try the same port
    return _first_free("port", [*PORTS[start:], *PORTS[:start]])


def network() -> Lease:
    """Lease N for the pods of one cluster: they live in 127.N.0.0/16."""
    return _first_free("network", NETWORKS)


def _first_free(kind: str, numbers: Iterable[int]) -> Lease:
    for number in numbers:
        try:
            lease = Lease(kind, number)
        except OSError:
            continue
        if kind != "port" or _can_listen(number):
            return lease
        lease.close()
    raise NothingFreeError(f"no {kind} is free")


def _can_listen(number: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", number))
        except OSError:
            return False
        return True
