"""Everything that can go wrong with the cluster, as one tree.

    ClusterError
    ├── MisconfiguredError      no usable way to the API server is configured
    ├── UnreachableError        no answer: refused, timed out, cut off, not trusted
    ├── UnreadableError         an answer that is not the JSON it should be
    ├── StaleError              what is known of it is too old to go by
    ├── NotLeaderError          another replica may be writing: not sent
    ├── RejectedError           the API server said no
    │   ├── InvalidError            400, 422
    │   ├── UnauthorizedError       401
    │   ├── ForbiddenError          403
    │   ├── NotFoundError           404
    │   ├── ConflictError           409
    │   ├── ExpiredError            410
    │   ├── TooManyRequestsError    429
    │   └── ServerError             everything else
    └── NotOursError            the number is there, and must not be touched
        ├── AmbiguousOwnerError     more than one object claims it
        ├── OwnedElsewhereError     a controller above would undo the write
        ├── OwnedByGitOpsError      a GitOps tool applies the field, and would
        ├── ContestedError          somebody changed it back twice
        ├── ReleasedError           it was given back by `floorcast release`
        ├── PausedError             its autoscaler is paused
        ├── TooSoonError            its autoscaler should not be disturbed so often
        ├── OwnerGoneError          the autoscaler that owned it was deleted while we ran
        ├── ScaledToZeroError       asleep, on purpose
        ├── NoSelectorError         the scale subresource does not say which pods are meant
        ├── OverruledError          the API server kept another number than the one written
        └── NotReleasedError        read back after a release, and still not what it was

The leaves' `reason` is the word that ends up in `Refused`, in metrics and Events. They are translated from HTTP in
`client.py` and handled in one place, `workloads.py`.
"""

from typing import ClassVar

from predictor import errors as tree


class ClusterError(Exception):
    """Anything that keeps a target from being observed or written; `str()` is the detail for a person."""

    reason: ClassVar[str] = "ClusterError"


class MisconfiguredError(ClusterError, tree.FloorcastError):
    """No usable way to the API server: no file, an unknown context, an empty token.

    Met at the start it ends the program with a clear line; met later (a token file is gone) it is an answer too.
    """

    reason = "Misconfigured"
    exit_code = 2


class UnreachableError(ClusterError):
    """The API server did not answer."""

    reason = "Unreachable"


class UnreadableError(ClusterError):
    """What came back is not the JSON object that was asked for."""

    reason = "Unreadable"


class StaleError(ClusterError):
    """The watch has not said anything for longer than it may; what it said last is not told."""

    reason = "Stale"


class NotLeaderError(ClusterError):
    """A write that was not sent: the lease is another replica's, or may be by now."""

    reason = "NotLeader"


class RejectedError(ClusterError):
    """The API server answered with an error."""

    reason = "Rejected"


class InvalidError(RejectedError):
    """The API server finds what was sent invalid (400, 422)."""

    reason = "Invalid"


class UnauthorizedError(RejectedError):
    """The credentials are not accepted, and were not after they had been read again either (401)."""

    reason = "Unauthorized"


class ForbiddenError(RejectedError):
    """A permission is missing (403); the text names the rule that would grant it."""

    reason = "Forbidden"


class NotFoundError(RejectedError):
    """The object does not exist (404)."""

    reason = "NotFound"


class ConflictError(RejectedError):
    """Somebody else changed the object since it was read (409)."""

    reason = "Conflict"


class ExpiredError(RejectedError):
    """The rest of a list is no longer to be had (410)."""

    reason = "Expired"


class TooManyRequestsError(RejectedError):
    """The API server asks to come back later (429)."""

    reason = "TooManyRequests"


class ServerError(RejectedError):
    """The API server, or something in front of it, failed."""

    reason = "ServerError"


class NotOursError(ClusterError):
    """The number exists, and Floorcast must leave it alone."""

    reason = "NotOurs"


class AmbiguousOwnerError(NotOursError):
    """More than one object claims the replica count; Kubernetes scales by neither then."""

    reason = "AmbiguousOwner"


class OwnedElsewhereError(NotOursError):
    """The object is made by a controller, which would undo what is written to it."""

    reason = "OwnedElsewhere"


class OwnedByGitOpsError(NotOursError):
    """The field is in what a GitOps tool applies, and nobody said that the tool leaves it alone."""

    reason = "OwnedByGitOps"


class ContestedError(NotOursError):
    """Somebody else changed what we had written, twice in a while; the text names the field manager."""

    reason = "Contested"


class ReleasedError(NotOursError):
    """The number was given back while we ran."""

    reason = "Released"


class PausedError(NotOursError):
    """The autoscaler does not act on the number for now."""

    reason = "Paused"


class TooSoonError(NotOursError):
    """The autoscaler starts over at every change of the number, and was changed a moment ago."""

    reason = "TooSoon"


class OwnerGoneError(NotOursError):
    """There was an autoscaler and now there is none: replaced or paused, or gone for good, which only people know."""

    reason = "OwnerGone"


class ScaledToZeroError(NotOursError):
    """The workload has no replicas: a floor does not wake it, and somebody may have put it to sleep on purpose."""

    reason = "ScaledToZero"


class NoSelectorError(NotOursError):
    """The scale subresource names no pods."""

    reason = "NoSelector"


class OverruledError(NotOursError):
    """The number that stands after the write is not the one that was written."""

    reason = "Overruled"


class NotReleasedError(NotOursError):
    """The original number does not stand after it was given back."""

    reason = "NotReleased"
