"""The chart's roles and the page about them, from the one table of permissions."""

import collections
import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import yaml

from predictor.cluster import permissions
from predictor.cluster.permissions import Permission, Purpose

Rule: TypeAlias = dict[str, list[str]]

EVERYWHERE = ("", "apps", "autoscaling")  # API groups that every cluster serves

HEAD = """\
{{- /* The rules of every purpose, made from predictor/cluster/permissions.py by `python -m predictor.generate`. */ -}}
"""
PAGE = """\
# Permissions

Made from `predictor/cluster/permissions.py` by `python -m predictor.generate`; do not edit.

Everything Floorcast asks of the API server, and why. The chart makes one Role (or ClusterRole) for each purpose:
`observe` always, `lead` in its own namespace with `config.leader_election.enabled`, the others while `config.mode` is
`control` and `rbac.grant` says so (unless `config.kubernetes.owners` leaves that owner out). What is listed of KEDA,
KServe, LeaderWorkerSets and Argo Rollouts goes with their own lines there. Each verb is needed: `tests/cluster` takes
them away one at a time on a real API server, and what needs it is refused and names the rule that is missing. The
service asks for what it lacks at its start and names it in the log; anybody may ask that (SelfSubjectAccessReview), so
that needs no permission.

The Job that gives floors back before `helm uninstall` has a role of its own: of the tables below each `list` and each
`get`, and `patch` of what has a floor. It follows nothing, sets no replica count, tells no Events and has no lease.

"""


def value_of(purpose: Purpose) -> str:
    """What a purpose is called below `rbac.grant`: write_leader_worker_sets -> leaderWorkerSets."""
    return re.sub(r"_(\w)", lambda match: match.group(1).upper(), purpose.removeprefix("write_"))


def templates() -> str:
    """templates/_rules.tpl: a named template `floorcast.rules.PURPOSE` for each purpose.

    To look at an API that not every cluster has is no part of `observe`: it is `observe.PURPOSE` of the one purpose
    that is about that API.
    """
    told = {value_of(purpose): permissions.rules([purpose]) for purpose in Purpose if purpose is not Purpose.OBSERVE}
    told[Purpose.OBSERVE] = _granted(one for one in _observed() if _only_for(one) is None)
    for purpose in Purpose:
        if purpose.startswith("write"):
            told[f"observe.{value_of(purpose)}"] = _granted(one for one in _observed() if _only_for(one) is purpose)
    return HEAD + "".join(_template(name, rules) for name, rules in told.items())


def page() -> str:
    """docs/permissions.md."""
    return PAGE + "\n".join(_table(purpose) for purpose in Purpose)


def _observed() -> Iterator[Permission]:
    return (one for one in permissions.PERMISSIONS if one.purpose is Purpose.OBSERVE)


def _only_for(seen: Permission) -> Purpose | None:
    """The purpose that alone is about the API of what is looked at; None for an API that every cluster has."""
    resource = seen.resource
    if resource.group in EVERYWHERE:
        return None
    (purpose,) = {one.purpose for one in permissions.PERMISSIONS if one.resource.group == resource.group} - {
        seen.purpose
    }
    return purpose


def _granted(wanted: Iterable[Permission]) -> list[Rule]:
    """RBAC rules, one for each resource."""
    verbs = collections.defaultdict(list)
    for one in wanted:
        verbs[one.resource].append(one.verb)
    return [
        {"apiGroups": [resource.group], "resources": [resource.rule_name], "verbs": sorted(granted)}
        for resource, granted in verbs.items()
    ]


def _template(name: str, rules: list[Rule]) -> str:
    lines = yaml.safe_dump(rules, sort_keys=False, default_flow_style=None, width=200) if rules else ""
    return f'{{{{- define "floorcast.rules.{name}" -}}}}\n{lines}{{{{- end }}}}\n'


def _table(purpose: Purpose) -> str:
    rows = "\n".join(_rows(purpose))
    return f"## {value_of(purpose)}\n\n| verb | resource | group | what for |\n|---|---|---|---|\n{rows}\n"


def _rows(purpose: Purpose) -> Iterable[str]:
    for one in permissions.PERMISSIONS:
        if one.purpose is purpose:
            group = one.resource.group or "core"
            yield f"| {one.verb} | {one.resource.rule_name} | {group} | {one.why} |"
