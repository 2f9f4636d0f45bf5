{{- /* The rules of every purpose, made from predictor/cluster/permissions.py by `python -m predictor.generate`. */ -}}
{{- define "floorcast.rules.hpa" -}}
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.keda" -}}
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.kserve" -}}
- apiGroups: [serving.kserve.io]
  resources: [inferenceservices]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.scale" -}}
- apiGroups: [apps]
  resources: [deployments/scale]
  verbs: [get, patch]
- apiGroups: [apps]
  resources: [statefulsets/scale]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.leaderWorkerSets" -}}
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets/scale]
  verbs: [get, patch]
{{- end }}
{{- define "floorcast.rules.rollouts" -}}
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
{{- define "floorcast.rules.observe" -}}
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list, watch]
- apiGroups: ['']
  resources: [pods]
  verbs: [list, watch]
{{- end }}
{{- define "floorcast.rules.observe.hpa" -}}
{{- end }}
{{- define "floorcast.rules.observe.keda" -}}
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [list, watch]
{{- end }}
{{- define "floorcast.rules.observe.kserve" -}}
- apiGroups: [serving.kserve.io]
  resources: [inferenceservices]
  verbs: [list, watch]
{{- end }}
{{- define "floorcast.rules.observe.scale" -}}
{{- end }}
{{- define "floorcast.rules.observe.leaderWorkerSets" -}}
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets]
  verbs: [list, watch]
{{- end }}
{{- define "floorcast.rules.observe.rollouts" -}}
- apiGroups: [argoproj.io]
  resources: [rollouts]
  verbs: [list, watch]
{{- end }}
