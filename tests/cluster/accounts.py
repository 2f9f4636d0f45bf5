"""Service accounts with the permissions of the table and no others."""

from collections.abc import Iterable
from typing import Any

from predictor.cluster import permissions
from predictor.cluster.access import Access
from predictor.cluster.permissions import Purpose
from tests.cluster import plane

RBAC = "rbac.authorization.k8s.io"


def login(
    cluster: plane.ControlPlane,
    namespace: str,
    name: str,
    purposes: Iterable[Purpose],
    *,
    more: Iterable[dict[str, Any]] = (),
) -> Access:
    """Makes an account that may do what is named in a namespace, and nothing elsewhere, and logs in as it."""
    place = {"namespace": namespace, "name": name}
    role = {"apiGroup": RBAC, "kind": "Role", "name": name}
    rules = [*permissions.rules(purposes), *more]
    subjects = [{"kind": "ServiceAccount", **place}]
    cluster.kubectl.apply(
        [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place},
            {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": place, "rules": rules},
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "RoleBinding",
                "metadata": place,
                "roleRef": role,
                "subjects": subjects,
            },
        ]
    )
    return Access(kubeconfig=cluster.kubeconfig_for(cluster.service_account_token(namespace, name)))
