{{- define "sds-monitor.name" -}}
{{- $name := .Release.Name }}
{{- if not (contains "sds-monitor" $name) }}
{{- $name = printf "%s-sds-monitor" $name }}
{{- end }}
{{- /* Labels of pods have 63 characters at most, with suffixes of ours and theirs. */}}
{{- $name | trunc 45 | trimSuffix "-" }}
{{- end }}

{{- /* Labels that select the pods of all parts, or with "part" those of one. */}}
{{- define "sds-monitor.selector" -}}
app.kubernetes.io/name: sds-monitor
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .part }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{- define "sds-monitor.labels" -}}
{{ include "sds-monitor.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end }}

{{- define "sds-monitor.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* Parts that run: name of their objects, job of their series, words of the command,
port, path of the readiness probe, seconds to end in. */}}
{{- define "sds-monitor.parts" -}}
{{- $name := include "sds-monitor.name" . }}
{{- $jobs := .Values.serviceMonitor.jobPrefix | default (trimSuffix "-monitor" $name) }}
{{- if .Values.monitor.enabled }}
monitor: {name: {{ $name }}, job: {{ $jobs }}-monitor, words: [run], port: 9108, ready: /readyz, grace: 90}
{{- end }}
{{- if .Values.mirror.enabled }}
mirror: {name: {{ $name }}-mirror, job: {{ $jobs }}-mirror, words: [mirror], port: 9109, ready: /readyz, grace: 90}
{{- end }}
{{- if .Values.audit.enabled }}
audit: {name: {{ $name }}-audit, job: {{ $jobs }}-audit, words: [audit, compare], port: 9110, ready: /healthz, grace: 30}
{{- end }}
{{- end }}

{{- /* A flat map as lines of TOML: scalars and lists of JSON are the same there. */}}
{{- define "sds-monitor.toml" -}}
{{- range $key, $value := . }}
{{ $key }} = {{ $value | toJson }}
{{- end }}
{{- end }}

{{- define "sds-monitor.claim" -}}
{{ (get .root.Values .part).storage.existingClaim | default (printf "%s-%s" .name (eq .part "monitor" | ternary "checkpoint" "state")) }}
{{- end }}

{{- /* Field of a NetworkPolicy. Monitor and executors also reach one another, and the
monitor asks the audit. */}}
{{- define "sds-monitor.egress" -}}
{{- with .root.Values.networkPolicy.egress -}}
egress:
  {{- toYaml . | nindent 2 }}
  {{- if has $.part (list "monitor" "executor") }}
  - to:
      - podSelector:
          matchLabels:
            {{- include "sds-monitor.selector" (dict "root" $.root) | nindent 12 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "sds-monitor.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "sds-monitor.pod-security" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "sds-monitor.secret-volume" -}}
{{- with .Values.secrets.files -}}
- name: secrets
  secret:
    secretName: {{ . }}
    # Readable by the group of the pod alone.
    defaultMode: 0440
{{- end }}
{{- end }}
