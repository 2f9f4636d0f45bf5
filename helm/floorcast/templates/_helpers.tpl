{{- define "floorcast.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "floorcast.fullname" -}}
{{- if .Values.fullnameOverride -}}{{ .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{- $name := include "floorcast.name" . -}}
{{- if contains $name .Release.Name -}}{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}{{ printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}{{- end -}}
{{- end -}}
{{- end }}

{{- /* The full name with a purpose behind it, whole within what a name may be long. */ -}}
{{- define "floorcast.nameFor" -}}
{{- $purpose := kebabcase .purpose -}}
{{ include "floorcast.fullname" .root | trunc (int (sub 62 (len $purpose))) | trimSuffix "-" }}-{{ $purpose }}
{{- end }}

{{- /* Cluster-wide objects also carry the namespace, so that two releases do not meet. */ -}}
{{- define "floorcast.clusterNameFor" -}}
{{ .root.Release.Namespace }}-{{ include "floorcast.nameFor" . }}
{{- end }}

{{- define "floorcast.selectorLabels" -}}
app.kubernetes.io/name: {{ include "floorcast.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* What is no part of the service (hook, test) must not be selected by it. */ -}}
{{- define "floorcast.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: floorcast
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "floorcast.labels" -}}
{{ include "floorcast.selectorLabels" . }}
{{ include "floorcast.commonLabels" . }}
{{- end }}

{{- define "floorcast.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default (include "floorcast.fullname" .) }}
{{- end }}

{{- define "floorcast.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "floorcast.port" -}}
{{ dig "server" "port" 8080 .Values.config | int }}
{{- end }}

{{- /* Port of KEDA's external scaler; empty while it is off. */ -}}
{{- define "floorcast.scalerPort" -}}
{{ if dig "external_scaler" "enabled" false .Values.config }}{{ dig "external_scaler" "port" 6000 .Values.config | int }}{{ end }}
{{- end }}

{{- define "floorcast.mode" -}}
{{ dig "mode" "shadow" .Values.config }}
{{- end }}

{{- define "floorcast.elects" -}}
{{ if dig "leader_election" "enabled" false .Values.config }}yes{{ end }}
{{- end }}

{{- /* Where roles are made: a list, as JSON. */ -}}
{{- define "floorcast.namespaces" -}}
{{ .Values.rbac.namespaces | default (list .Release.Namespace) | toJson }}
{{- end }}

{{- /* The purposes under rbac.grant that are true: a list, as JSON. */ -}}
{{- define "floorcast.granted" -}}
{{- $granted := list -}}
{{- range $purpose, $on := .Values.rbac.grant }}{{ if $on }}{{ $granted = append $granted $purpose }}{{ end }}{{ end -}}
{{ $granted | toJson }}
{{- end }}

{{- /*
The configuration file. What the roles do not allow is not looked for nor sent, and two installations in one namespace do not share
a lease; HPAs are always looked for, since a workload that has one must not be taken for one that has none.
*/ -}}
{{- define "floorcast.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $grant := .Values.rbac.grant -}}
{{- $owners := list "hpa" -}}
{{- if $grant.keda }}{{ $owners = append $owners "keda" }}{{ end -}}
{{- if $grant.kserve }}{{ $owners = append $owners "kserve" }}{{ end -}}
{{- if or $grant.scale $grant.leaderWorkerSets $grant.rollouts }}{{ $owners = append $owners "scale" }}{{ end -}}
{{- if and .Values.rbac.create (lt (len $owners) 4) -}}
{{- $_ := set $config "kubernetes" (merge ($config.kubernetes | default dict) (dict "owners" $owners)) -}}
{{- end -}}
{{- if and .Values.rbac.create (not $grant.events) -}}
{{- $_ := set $config "kubernetes" (set ($config.kubernetes | default dict) "events" false) -}}
{{- end -}}
{{- if include "floorcast.elects" . -}}
{{- $_ := set $config "leader_election" (merge $config.leader_election (dict "name" (include "floorcast.fullname" .))) -}}
{{- end -}}
{{ toYaml $config }}
{{- end }}

{{- define "floorcast.podSecurityContext" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "floorcast.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* One container of the image, less its arguments: what the service, the hook and the test share. */ -}}
{{- define "floorcast.container" -}}
image: {{ include "floorcast.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  # Compiled code is kept, and the root file system can only be read.
  - {name: NUMBA_CACHE_DIR, value: /tmp/numba}
  - name: POD_NAME
    valueFrom:
      fieldRef: {fieldPath: metadata.name}
  - name: POD_NAMESPACE
    valueFrom:
      fieldRef: {fieldPath: metadata.namespace}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
resources: {{- toYaml .Values.resources | nindent 2 }}
securityContext: {{- include "floorcast.securityContext" . | nindent 2 }}
{{- end }}

{{- define "floorcast.mounts" -}}
- {name: config, mountPath: /etc/floorcast, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- range $number, $one := .Values.secretFiles }}
- {name: secret-{{ $number }}, mountPath: {{ $one.mountPath | quote }}, readOnly: true}
{{- end }}
{{- range $number, $one := .Values.configMapFiles }}
- {name: files-{{ $number }}, mountPath: {{ $one.mountPath | quote }}, readOnly: true}
{{- end }}
{{- end }}

{{- /* Volumes of a pod whose configuration stands in the ConfigMap .config. */ -}}
{{- define "floorcast.volumes" -}}
- name: config
  configMap: {name: {{ .config }}}
- name: tmp
  emptyDir: {}
{{- range $number, $one := .root.Values.secretFiles }}
- name: secret-{{ $number }}
  secret: {secretName: {{ $one.name }}}
{{- end }}
{{- range $number, $one := .root.Values.configMapFiles }}
- name: files-{{ $number }}
  configMap: {name: {{ $one.name }}}
{{- end }}
{{- end }}

{{- /* Where the pods may run: the same for the service, the hook and the test. */ -}}
{{- define "floorcast.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
