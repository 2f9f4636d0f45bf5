"""The chart's roles and the page about them, from the one table of permissions."""

import re
from collections.abc import Iterable, Mapping, Sequence

import yaml

from predictor.cluster import permissions
from predictor.cluster.permissions import Purpose

HEAD = """\
{{- /* The rules of every purpose, made from predictor/cluster/permissions.py by `python -m predictor.generate`. */ -}}
"""
RELEASING = {"get", "list", "patch"}
PAGE = """\
# Permissions

Made from `predictor/cluster/permissions.py` by `python -m predictor.generate`; do not edit.

Everything Floorcast asks of the API server, and why. The chart makes one Role (or ClusterRole) for each purpose:
`observe` always, `lead` in its own namespace with `config.leader_election.enabled`, the others while `config.mode` is
`control` and `rbac.grant` says so. Each verb is needed: a test takes them away one at a time. The service asks for what
it lacks at its start and names it in the log; anybody may ask that (SelfSubjectAccessReview), so that needs no
permission.

"""


def value_of(purpose: Purpose) -> str:
    """What a purpose is called below `rbac.grant`: write_hpa -> writeHpa."""
    return re.sub(r"_(\w)", lambda match: match.group(1).upper(), str(purpose))


def templates() -> str:
    """templates/_rules.tpl: a named template `floorcast.rules.PURPOSE` each, and `floorcast.rules.release.PURPOSE`."""
    for_running = (_template(value_of(purpose), permissions.rules([purpose])) for purpose in Purpose)
    for_releasing = (_template(f"release.{value_of(one)}", releasing(one)) for one in Purpose)
    return HEAD + "".join((*for_running, *for_releasing))


def releasing(purpose: Purpose) -> list[dict[str, list[str]]]:
    """What giving back takes, of what is granted to write: to find the objects, and to read and patch them."""
    if not purpose.startswith("write"):
        return []
    rules = []
    for resource in dict.fromkeys(one.resource for one in permissions.PERMISSIONS if one.purpose is purpose):
        verbs = {one.verb for one in permissions.PERMISSIONS if one.resource == resource} & RELEASING
        rules.append({"apiGroups": [resource.group], "resources": [resource.rule_name], "verbs": sorted(verbs)})
    return rules


def page() -> str:
    """docs/permissions.md."""
    return PAGE + "\n".join(_table(purpose) for purpose in Purpose)


def _template(name: str, rules: Sequence[Mapping[str, object]]) -> str:
    lines = yaml.safe_dump(list(rules), sort_keys=False, default_flow_style=None, width=200) if rules else ""
    return f'{{{{- define "floorcast.rules.{name}" -}}}}\n{lines}{{{{- end }}}}\n'


def _table(purpose: Purpose) -> str:
    rows = "\n".join(_rows(purpose))
    return f"## {value_of(purpose)}\n\n| verb | resource | group | what for |\n|---|---|---|---|\n{rows}\n"


def _rows(purpose: Purpose) -> Iterable[str]:
    for one in permissions.PERMISSIONS:
        if one.purpose is purpose:
            group = one.resource.group or "core"
            yield f"| {one.verb} | {one.resource.rule_name} | {group} | {one.why} |"
