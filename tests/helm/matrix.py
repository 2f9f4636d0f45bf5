"""Values that together use every switch of the chart."""

from typing import Any

TARGET = {"namespace": "llm", "name": "chat", "capacity": {"concurrency": 8}}
IN_LLM = {"namespaces": ["llm"]}  # roles where TARGET is
DIGEST = f"sha256:{'0123456789abcdef' * 4}"
EVERYTHING: dict[str, Any] = {
    "config": {
        "mode": "control",
        "targets": [TARGET, {**TARGET, "name": "groups", "kind": "LeaderWorkerSet"}],
        "external_scaler": {"enabled": True, "port": 7000},
    },
    "image": {"repository": "registry.example.com/floorcast", "tag": "1", "digest": DIGEST},
    "imagePullSecrets": [{"name": "pull"}],
    "commonLabels": {"team": "serving"},
    "configReload": False,
    "secretFiles": [{"name": "prometheus-token", "mountPath": "/var/run/secrets/prometheus"}],
    "configMapFiles": [{"name": "company-ca", "mountPath": "/etc/ssl/company"}],
    "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "serviceAccount": {"annotations": {"a": "b"}},
    "externalScaler": {"tls": {"secretName": "scaler-tls", "verifyClient": True}},
    "rbac": {"namespaces": ["llm", "search"], "grant": {"leaderWorkerSets": True, "rollouts": True}},
    "persistence": {"enabled": True, "storageClass": "fast"},
    "service": {"annotations": {"a": "b"}, "port": 80},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}, "leaveOut": ["FloorcastAbsent"]},
    "grafanaDashboard": {"enabled": True, "annotations": {"folder": "inference"}},
    "networkPolicy": {
        "enabled": True,
        "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
        "scalerFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "keda"}}}],
        "egress": [{"ports": [{"port": 443, "protocol": "TCP"}]}],
    },
    "podDisruptionBudget": {"enabled": True},
    "priorityClassName": "system-cluster-critical",
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
}
MATRIX: dict[str, dict[str, Any]] = {
    "defaults": {},
    "control": {"config": {"mode": "control", "targets": [TARGET]}, "rbac": IN_LLM},
    "everything": EVERYTHING,
    "cluster-wide": {**EVERYTHING, "rbac": {**EVERYTHING["rbac"], "clusterWide": True, "namespaces": []}},
    "two replicas": {
        "replicas": 2,
        "config": {"mode": "control", "leader_election": {"enabled": True}, "targets": [TARGET]},
        "rbac": IN_LLM,
        "podDisruptionBudget": {"enabled": True},
    },
    "next to nothing": {
        "serviceAccount": {"create": False, "name": "mine"},
        "rbac": {"create": False},
        "releaseOnUninstall": {"enabled": False},
        "resources": {},
    },
    "long names": {"fullnameOverride": "a" * 70, "config": {"mode": "control", "targets": [TARGET]}, "rbac": IN_LLM},
    "on OpenShift": {"persistence": {"enabled": True, "fsGroup": 0}},
}
