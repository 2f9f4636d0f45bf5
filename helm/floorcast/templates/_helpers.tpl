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

{{- /* Secret with the certificate of the external scaler; empty for none. Values of an older chart have no such key. */ -}}
{{- define "floorcast.scalerSecret" -}}
{{ ((.Values.externalScaler).tls).secretName | default "" }}
{{- end }}

{{- define "floorcast.scalerFolder" -}}
/var/run/secrets/floorcast-scaler
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

{{- /* The purposes under rbac.grant by who owns the number, in the words of config.kubernetes.owners. */ -}}
{{- define "floorcast.purposes" -}}
hpa: [hpa]
keda: [keda]
kserve: [kserve]
scale: [scale, leaderWorkerSets, rollouts]
{{- end }}

{{- /* The purposes under rbac.grant that a kind of workload is looked at with; kinds that every cluster has need none. */ -}}
{{- define "floorcast.purposeOfKind" -}}
LeaderWorkerSet: leaderWorkerSets
Rollout: rollouts
InferenceService: kserve
{{- end }}

{{- /*
The owners that are looked for and written: granted, and not left out of config.kubernetes.owners. Roles and configuration
both follow from this list. A list, as JSON.
*/ -}}
{{- define "floorcast.owners" -}}
{{- $asked := dig "kubernetes" "owners" list .Values.config -}}
{{- $owners := list -}}
{{- range $owner, $purposes := include "floorcast.purposes" . | fromYaml -}}
{{- $granted := not $.Values.rbac.create -}}
{{- range $purposes }}{{ if index $.Values.rbac.grant . }}{{ $granted = true }}{{ end }}{{ end -}}
{{- if and $granted (or (not $asked) (has $owner $asked)) }}{{ $owners = append $owners $owner }}{{ end -}}
{{- end -}}
{{ $owners | toJson }}
{{- end }}

{{- /* The purposes under rbac.grant that roles are made for: a list, as JSON. */ -}}
{{- define "floorcast.granted" -}}
{{- $owners := include "floorcast.owners" . | fromJsonArray -}}
{{- $granted := list -}}
{{- range $owner, $purposes := include "floorcast.purposes" . | fromYaml -}}
{{- range $purposes }}{{ if and (has $owner $owners) (index $.Values.rbac.grant .) }}{{ $granted = append $granted . }}{{ end }}{{ end -}}
{{- end -}}
{{- if and .Values.rbac.grant.events (dig "kubernetes" "events" true .Values.config) }}{{ $granted = append $granted "events" }}{{ end -}}
{{ $granted | toJson }}
{{- end }}

{{- /* Kinds of the targets, with those that are looked through for labels: a list, as JSON. */ -}}
{{- define "floorcast.kinds" -}}
{{- $kinds := list -}}
{{- range dig "targets" list .Values.config }}{{ $kinds = append $kinds (dig "kind" "Deployment" .) }}{{ end -}}
{{- if dig "discovery" "enabled" false .Values.config }}{{ $kinds = concat $kinds (dig "discovery" "kinds" list .Values.config) }}{{ end -}}
{{ $kinds | uniq | toJson }}
{{- end }}

{{- /* "control" where the target .target is to be written, with the configuration .config. */ -}}
{{- define "floorcast.modeOf" -}}
{{- $ceiling := dig "mode" "shadow" .config -}}
{{ ternary (dig "mode" (dig "defaults" "mode" $ceiling .config) .target) "shadow" (eq $ceiling "control") }}
{{- end }}

{{- /* Not empty where it is said what a replica of the target .target carries, there or in the defaults of .config. */ -}}
{{- define "floorcast.capacityOf" -}}
{{- $common := dig "defaults" "capacity" dict .config -}}
{{- range list "concurrency" "knee" }}{{ dig "capacity" . (dig . "" $common) $.target }}{{ end -}}
{{- end }}

{{- /*
The configuration file. What the roles do not allow is not looked for nor sent, and two installations in one namespace do not share
a lease. Where nothing is granted but to look, HPAs are the owner that is named: they are looked at in any case. With roles in the
whole cluster one watch covers all namespaces, unless the configuration says that it shall not.
*/ -}}
{{- define "floorcast.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $owners := include "floorcast.owners" . | fromJsonArray -}}
{{- if and .Values.rbac.create (lt (len $owners) 4) -}}
{{- $_ := set $config "kubernetes" (merge ($config.kubernetes | default dict) (dict "owners" ($owners | default (list "hpa")))) -}}
{{- end -}}
{{- if and .Values.rbac.create (not .Values.rbac.grant.events) -}}
{{- $_ := set $config "kubernetes" (set ($config.kubernetes | default dict) "events" false) -}}
{{- end -}}
{{- if and .Values.rbac.create .Values.rbac.clusterWide (not (hasKey ($config.kubernetes | default dict) "cluster_wide")) -}}
{{- $_ := set $config "kubernetes" (set ($config.kubernetes | default dict) "cluster_wide" true) -}}
{{- end -}}
{{- if include "floorcast.scalerSecret" . -}}
{{- $folder := include "floorcast.scalerFolder" . -}}
{{- $files := dict "cert_file" (printf "%s/tls.crt" $folder) "key_file" (printf "%s/tls.key" $folder) -}}
{{- if .Values.externalScaler.tls.verifyClient }}{{ $_ := set $files "client_ca_file" (printf "%s/ca.crt" $folder) }}{{ end -}}
{{- $_ := set $config "external_scaler" (merge $files $config.external_scaler) -}}
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
