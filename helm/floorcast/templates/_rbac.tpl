{{- /* A role with a binding, from: root, purpose (its name), rules (YAML), account, namespace, clusterWide, annotations. */ -}}
{{- define "floorcast.role" -}}
{{- $name := include "floorcast.nameFor" . -}}
{{- if .clusterWide }}{{ $name = include "floorcast.clusterNameFor" . }}{{ end -}}
{{- $kind := ternary "ClusterRole" "Role" .clusterWide -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata: {{- include "floorcast.roleMetadata" (dict "name" $name "given" .) | nindent 2 }}
rules:
{{ .rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata: {{- include "floorcast.roleMetadata" (dict "name" $name "given" .) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}

{{- define "floorcast.roleMetadata" -}}
name: {{ .name }}
{{- if not .given.clusterWide }}
namespace: {{ .given.namespace }}
{{- end }}
labels: {{- include "floorcast.commonLabels" .given.root | nindent 2 }}
{{- with .given.annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Rules to look, at all that is granted to be written and at the kinds of the targets. */ -}}
{{- define "floorcast.observing" -}}
{{- $looked := without (include "floorcast.granted" . | fromJsonArray) "events" -}}
{{- $kinds := include "floorcast.kinds" . | fromJsonArray -}}
{{- range $kind, $purpose := include "floorcast.purposeOfKind" . | fromYaml -}}
{{- if has $kind $kinds }}{{ $looked = append $looked $purpose }}{{ end -}}
{{- end -}}
{{- $rules := list (include "floorcast.rules.observe" .) -}}
{{- range $looked | uniq }}{{ $rules = append $rules (include (printf "floorcast.rules.observe.%s" .) $) }}{{ end -}}
{{ without $rules "" | join "\n" }}
{{- end }}
