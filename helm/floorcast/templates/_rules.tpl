{{- /* The rules of every purpose, made from predictor/cluster/permissions.py by `python -m predictor.generate`. */ -}}
{{- define "floorcast.rules.observe" -}}
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list]
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [list]
- apiGroups: [serving.kserve.io]
  resources: [inferenceservices]
  verbs: [list]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [list]
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets]
  verbs: [list]
- apiGroups: [argoproj.io]
  resources: [rollouts]
  verbs: [list]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list]
- apiGroups: ['']
  resources: [pods]
  verbs: [list]
{{- end }}
{{- define "floorcast.rules.writeHpa" -}}
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.writeKeda" -}}
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.writeKserve" -}}
- apiGroups: [serving.kserve.io]
  resources: [inferenceservices]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.writeScale" -}}
- apiGroups: [apps]
  resources: [deployments/scale]
  verbs: [get, patch]
- apiGroups: [apps]
  resources: [statefulsets/scale]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.writeLeaderWorkerSets" -}}
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets/scale]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.writeRollouts" -}}
- apiGroups: [argoproj.io]
  resources: [rollouts/scale]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.events" -}}
- apiGroups: ['']
  resources: [events]
  verbs: [create]
{{- end }}
{{- define "floorcast.rules.lead" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create, get, update]
{{- end }}
{{- define "floorcast.rules.release.observe" -}}
{{- end }}
{{- define "floorcast.rules.release.writeHpa" -}}
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, patch]
{{- end }}
{{- define "floorcast.rules.release.writeKeda" -}}
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [get, list, patch]
{{- end }}
{{- define "floorcast.rules.release.writeKserve" -}}
- apiGroups: [serving.kserve.io]
  resources: [inferenceservices]
  verbs: [get, list, patch]
{{- end }}
{{- define "floorcast.rules.release.writeScale" -}}
- apiGroups: [apps]
  resources: [deployments/scale]
  verbs: [get, patch]
- apiGroups: [apps]
  resources: [statefulsets/scale]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.release.writeLeaderWorkerSets" -}}
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets/scale]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.release.writeRollouts" -}}
- apiGroups: [argoproj.io]
  resources: [rollouts/scale]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.release.events" -}}
{{- end }}
{{- define "floorcast.rules.release.lead" -}}
{{- end }}
