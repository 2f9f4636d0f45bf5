"""What the chart's roles grant, and what of it was used: equal, where no verb is too many and none is missing."""

from collections.abc import Iterable
from typing import Any

from tests.cluster import audit, kubectl

OURS = "app.kubernetes.io/part-of=floorcast"
OF_ANYBODY = ("create", "selfsubjectaccessreviews")
Verbs = set[tuple[str, str]]  # verb and resource


def granted(call: kubectl.Kubectl, *namespaces: str) -> Verbs:
    """Return what the roles of the chart grant in these namespaces."""
    roles = [
        role
        for namespace in namespaces
        for role in call.json("get", "roles", f"--namespace={namespace}", f"--selector={OURS}")["items"]
    ]
    return of(roles)


def of(roles: Iterable[dict[str, Any]]) -> Verbs:
    """Return what these roles grant."""
    rules = [rule for role in roles for rule in role["rules"]]
    return {(verb, resource) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


def used(entries: Iterable[audit.Entry], user: str) -> Verbs:
    """Return what was asked and not refused. A watch stands in the log when it has ended."""
    asked = {(one.verb, one.resource) for one in entries if one.user == user and one.code < 400}
    return asked - {OF_ANYBODY}
