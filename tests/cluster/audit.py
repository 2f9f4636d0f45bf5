"""What was asked of the API server, by whom: the audit log of the control plane as values."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.servers import waiting

BLOCK = 65536  # bytes
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True)
class Entry:
    """One answered request.

    Attributes:
        at: when it was received, UTC.
        user: `admin`, or for instance `system:serviceaccount:kube-system:horizontal-pod-autoscaler`.
        resource: plural, with the subresource after a slash: `deployments/scale`.
        field_manager: as given in the request, else what the server derives from the user agent.
        body: the object or patch that was sent; None for reads.
        code: HTTP status of the answer.
        dry_run: it went through all checks and changed nothing.
    """

    at: datetime
    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    field_manager: str
    body: Any
    code: int
    dry_run: bool = False


class AuditLog:
    """Reader of the JSON lines the API server appends to `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mark(self) -> int:
        """Return the end of the last whole line, to pass as `since` and see only what follows."""
        if not self.path.exists():
            return 0
        with self.path.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            while end:  # a line may be half written
                start = max(end - BLOCK, 0)
                log.seek(start)
                if (found := log.read(end - start).rfind(b"\n")) >= 0:
                    return start + found + 1
                end = start
        return 0

    def entries(self, *, since: int = 0) -> list[Entry]:
        """Return all requests after `since`, in the order they were answered."""
        with self.path.open("rb") as log:
            log.seek(since)
            lines = log.read().split(b"\n")[:-1]  # the last piece is empty, or a line still being written
        return [_entry(json.loads(line)) for line in lines]

    def writes(self, *, since: int = 0, user: str | None = None, resource: str | None = None) -> list[Entry]:
        """Return the writes after `since`, of one user or on one resource where given; refused ones included.

        A dry run is none.
        """
        return [
            entry
            for entry in self.entries(since=since)
            if entry.verb in WRITES
            and not entry.dry_run
            and user in (None, entry.user)
            and resource in (None, entry.resource)
        ]

    def await_write(self, matching: Callable[[Entry], bool], *, since: int = 0, within_s: float = 30.0) -> Entry:
        """Return the first write after `since` that matches; TimeoutError if none comes."""
        return waiting.until(
            lambda: next(filter(matching, self.writes(since=since)), None),
            within_s=within_s,
            what="a write in the audit log",
        )


def _entry(event: dict[str, Any]) -> Entry:
    what = event.get("objectRef", {})
    resource = "/".join(part for part in (what.get("resource", ""), what.get("subresource", "")) if part)
    return Entry(
        at=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        user=event["user"]["username"],
        verb=event["verb"],
        resource=resource,
        namespace=what.get("namespace", ""),
        name=what.get("name", ""),
        field_manager=_field_manager(event),
        body=event.get("requestObject"),
        code=event.get("responseStatus", {}).get("code", 0),
        dry_run="dryRun" in parse_qs(urlsplit(event["requestURI"]).query),
    )


def _field_manager(event: dict[str, Any]) -> str:
    given = parse_qs(urlsplit(event["requestURI"]).query).get("fieldManager")
    return given[0] if given else event.get("userAgent", "").split("/")[0]
