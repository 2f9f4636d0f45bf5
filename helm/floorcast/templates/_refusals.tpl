{{- /*
Values that cannot work are refused before anything is made: a template for each promise, a line for each problem with the
key, its value and the remedy. All are run, so that one look shows every problem. What `floorcast config validate` refuses of
a target is refused here too; what it only notes stands in NOTES.txt.
*/ -}}
{{- define "floorcast.refuse" -}}
{{- $found := list -}}
{{- range list "oneWriter" "volumeForAll" "owners" "events" "something" "kinds" "places" "everywhere" "capacity" "certificate" -}}
{{- $found = concat $found (include (printf "floorcast.refuse.%s" .) $ | splitList "\n") -}}
{{- end -}}
{{- with without $found "" }}{{ fail (printf "these values cannot work:\n%s" (join "\n" .)) }}{{ end -}}
{{- end }}

{{- define "floorcast.refuse.oneWriter" -}}
{{- if and (gt (int .Values.replicas) 1) (not (include "floorcast.elects" .)) -}}
replicas is {{ .Values.replicas }}: two writers would fight; set config.leader_election.enabled, or replicas to 1
{{- end -}}
{{- end }}

{{- define "floorcast.refuse.volumeForAll" -}}
{{- with .Values.persistence -}}
{{- if and .enabled (gt (int $.Values.replicas) 1) (ne .accessMode "ReadWriteMany") (not .existingClaim) -}}
persistence.accessMode is {{ .accessMode }}: with {{ $.Values.replicas }} replicas it has to be ReadWriteMany
{{- end -}}
{{- end -}}
{{- end }}

{{- /* Nothing is looked for that no role allows. Granted and left out of the owners is no contradiction: no role is made. */ -}}
{{- define "floorcast.refuse.owners" -}}
{{- $owners := include "floorcast.owners" . | fromJsonArray -}}
{{- $purposes := include "floorcast.purposes" . | fromYaml -}}
{{- range dig "kubernetes" "owners" list .Values.config -}}
{{- if not (has . $owners) }}
{{- $switches := index $purposes . }}
config.kubernetes.owners has {{ . }}, and rbac.grant.{{ join " and rbac.grant." $switches }} {{ ternary "are" "is" (gt (len $switches) 1) }} false; set one to true, or leave {{ . }} out of the owners
{{ end -}}
{{- end -}}
{{- end }}

{{- define "floorcast.refuse.events" -}}
{{- if and .Values.rbac.create (not .Values.rbac.grant.events) (dig "kubernetes" "events" false .Values.config) -}}
config.kubernetes.events is true, and rbac.grant.events is false; set that to true, or leave events out of config.kubernetes
{{- end -}}
{{- end }}

{{- define "floorcast.refuse.something" -}}
{{- if and (eq (include "floorcast.mode" .) "control") (eq (include "floorcast.owners" .) "[]") -}}
config.mode is control, and rbac.grant lets nothing be written; set one of rbac.grant.hpa, keda, kserve and scale to true, or config.mode to shadow
{{- end -}}
{{- end }}

{{- define "floorcast.refuse.kinds" -}}
{{- $needed := include "floorcast.purposeOfKind" . | fromYaml -}}
{{- $places := dict -}}
{{- range $number, $target := dig "targets" list .Values.config -}}
{{- $_ := set $places (printf "config.targets[%d]" $number) (dig "kind" "Deployment" $target) -}}
{{- end -}}
{{- if dig "discovery" "enabled" false .Values.config -}}
{{- range $number, $kind := dig "discovery" "kinds" list .Values.config -}}
{{- $_ := set $places (printf "config.discovery.kinds[%d]" $number) $kind -}}
{{- end -}}
{{- end -}}
{{- range $place, $kind := $places -}}
{{- $purpose := get $needed $kind -}}
{{- if and $purpose $.Values.rbac.create (not (index $.Values.rbac.grant $purpose)) }}
{{ $place }} is a {{ $kind }}, and rbac.grant.{{ $purpose }} is false; set it to true
{{ end -}}
{{- end -}}
{{- end }}

{{- /* Roles stand where targets are. */ -}}
{{- define "floorcast.refuse.places" -}}
{{- if and .Values.rbac.create (not .Values.rbac.clusterWide) -}}
{{- $namespaces := include "floorcast.namespaces" . | fromJsonArray -}}
{{- $told := printf "%v%s" $namespaces (ternary "" ", the release's own" (not (empty .Values.rbac.namespaces))) -}}
{{- $remedy := printf "is not among rbac.namespaces (%s): no role would stand there; add it, or set rbac.clusterWide to true" $told -}}
{{- range $number, $target := dig "targets" list .Values.config -}}
{{- if not (has $target.namespace $namespaces) }}
config.targets[{{ $number }}].namespace is {{ $target.namespace }}, which {{ $remedy }}
{{ end -}}
{{- end -}}
{{- if dig "discovery" "enabled" false .Values.config -}}
{{- range $number, $namespace := dig "discovery" "namespaces" list .Values.config -}}
{{- if not (has $namespace $namespaces) }}
config.discovery.namespaces[{{ $number }}] is {{ $namespace }}, which {{ $remedy }}
{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* What asks for the whole cluster has a role in the whole cluster. */ -}}
{{- define "floorcast.refuse.everywhere" -}}
{{- if and .Values.rbac.create (not .Values.rbac.clusterWide) -}}
{{- if and (dig "discovery" "enabled" false .Values.config) (not (dig "discovery" "namespaces" list .Values.config)) }}
config.discovery.namespaces is empty, which is the whole cluster, and rbac.clusterWide is false; set that to true, or name the namespaces
{{ end -}}
{{- if dig "kubernetes" "cluster_wide" false .Values.config }}
config.kubernetes.cluster_wide is true, and rbac.clusterWide is false; set that to true, or leave cluster_wide out
{{ end -}}
{{- end -}}
{{- end }}

{{- /* A target that is written needs its capacity said. */ -}}
{{- define "floorcast.refuse.capacity" -}}
{{- range $number, $target := dig "targets" list .Values.config -}}
{{- $one := dict "target" $target "config" $.Values.config -}}
{{- if and (eq (include "floorcast.modeOf" $one) "control") (not (include "floorcast.capacityOf" $one)) }}
config.targets[{{ $number }}].capacity, of {{ $target.namespace }}/{{ $target.name }} in control mode, has neither knee nor concurrency; set one, there or in config.defaults.capacity, or the target's mode to shadow
{{ end -}}
{{- end -}}
{{- end }}

{{- define "floorcast.refuse.certificate" -}}
{{- $name := include "floorcast.scalerSecret" . -}}
{{- $given := dig "external_scaler" dict .Values.config -}}
{{- $remedy := "or leave externalScaler.tls.secretName empty" -}}
{{- if and $name (not $given.enabled) }}
externalScaler.tls.secretName is {{ $name }}, and config.external_scaler.enabled is false; set that to true, {{ $remedy }}
{{ end -}}
{{- range $key := list "cert_file" "key_file" "client_ca_file" -}}
{{- if and $name (get $given $key) }}
config.external_scaler.{{ $key }} is {{ get $given $key }}, and externalScaler.tls.secretName, {{ $name }}, says another; leave that key out, {{ $remedy }}
{{ end -}}
{{- end -}}
{{- if and (not $name) ((.Values.externalScaler).tls).verifyClient -}}
externalScaler.tls.verifyClient is true, and externalScaler.tls.secretName is empty; name the Secret that has ca.crt, or set verifyClient to false
{{- end -}}
{{- end }}
