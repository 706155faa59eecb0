{{/* Labels, and what every pod may and may not do. */}}

{{/* A dict of `root` and `component`. */}}
{{- define "holdfast.selector" -}}
app.kubernetes.io/name: holdfast
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "holdfast.labels" -}}
{{ include "holdfast.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* The metadata of a pod, with sums of what it reads at start. */}}
{{- define "holdfast.podMetadata" -}}
labels:
  {{- include "holdfast.labels" . | nindent 2 }}
  {{- if has .component (list "management" "core") }}
  holdfast/public: 'true'
  {{- end }}
  {{- with .set }}
  holdfast/set: {{ . }}
  {{- end }}
  {{- with .root.Values.pods.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  checksum/settings: {{ include "holdfast.settings" .root | sha256sum }}
  {{- with .root.Values.pods.annotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* What every pod has. Without service links: Kubernetes would set CORE_PORT and the like. */}}
{{- define "holdfast.pod" -}}
enableServiceLinks: false
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pods.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pods.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pods.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "holdfast.container" -}}
securityContext:
  privileged: false
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* Of a program that ends. */}}
{{- define "holdfast.smallResources" -}}
resources:
  requests: { cpu: 50m, memory: 128Mi }
  limits: { cpu: '1', memory: 256Mi }
{{- end }}

{{/* Spread over machines, and over zones where there are some. A dict of `root` and `component`. */}}
{{- define "holdfast.spread" -}}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "holdfast.selector" $ | nindent 8 }}
{{- end }}
{{- end }}

{{/* A volume that can't be shared between machines holds its pods on one. */}}
{{- define "holdfast.place" -}}
{{- if include "holdfast.isSpread" .root }}
{{- include "holdfast.spread" . }}
{{- else if eq .component "core" }}
affinity:
  podAffinity:
    # Not required: it starts first. Without it a moved core would wait for the volume that management holds.
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "holdfast.selector" (dict "root" .root "component" "management") | nindent 14 }}
{{- else }}
affinity:
  podAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "holdfast.selector" (dict "root" .root "component" "core") | nindent 12 }}
{{- end }}
{{- end }}

{{/* One pod at a time leaves; one that isn't ready holds no machine. A dict of `root`, `component` and `name`. */}}
{{- define "holdfast.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  labels:
    {{- include "holdfast.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "holdfast.selector" . | nindent 6 }}
{{- end }}

{{- define "holdfast.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{/* The health checks of a container: a dict of `command` and, of what starts slowly, `startSeconds`. */}}
{{- define "holdfast.probes" -}}
{{- $exec := dict "command" .command }}
startupProbe:
  exec: {{ toJson $exec }}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: {{ div (default 300 .startSeconds) 5 }}
readinessProbe:
  exec: {{ toJson $exec }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
livenessProbe:
  exec: {{ toJson $exec }}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}

{{- define "holdfast.answers" -}}
{{ list "node" "/app/dist/answers.js" . | toJson }}
{{- end }}

{{/* A claim that outlives the release. A dict of `root`, `component`, `name`, `mode`, `storage`. */}}
{{- define "holdfast.claim" -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ .name }}
  labels:
    {{- include "holdfast.labels" . | nindent 4 }}
  annotations:
    helm.sh/resource-policy: keep
spec:
  {{- include "holdfast.claimSpec" . | nindent 2 }}
{{- end }}

{{- define "holdfast.claimSpec" -}}
accessModes: [{{ .mode }}]
{{- with .storage.storageClass }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .storage.size }}
{{- end }}

{{- define "holdfast.archivesClaim" -}}
{{ .Values.management.archives.existingClaim | default "mission-archives" }}
{{- end }}

{{- define "holdfast.coreClaim" -}}
{{ .Values.core.storage.existingClaim | default "core-data" }}
{{- end }}

{{/* A claim can't change its mode, and Caddy gets lost certificates again. */}}
{{- define "holdfast.caddyClaim" -}}
{{ ternary "caddy-data-shared" "caddy-data" (include "holdfast.isSpread" . | eq "true") }}
{{- end }}

{{/* Several nodes, or a number that may grow. */}}
{{- define "holdfast.isCluster" -}}
{{- if and (eq .Values.core.kind "light") (or (gt (int .Values.core.nodes) 1) .Values.core.autoscaling.enabled) }}true{{ end }}
{{- end }}

{{- define "holdfast.natsHost" -}}
{{ regexReplaceAll "^[a-z]+://|:[0-9]*$" .Values.nats.url "" }}
{{- end }}

{{/* Whether NATS is in this namespace, where our policies and certificates are for it. */}}
{{- define "holdfast.isNatsHere" -}}
{{- $labels := include "holdfast.natsHost" . | splitList "." }}
{{- if or (eq (len $labels) 1) (eq (index $labels 1) .Release.Namespace) }}true{{ end }}
{{- end }}

{{/* In subdomain mode, who gets the public certificate; in direct mode nobody. */}}
{{- define "holdfast.public" -}}
{{- if eq .Values.mode "subdomain" }}{{ .Values.certificates.public }}{{ end }}
{{- end }}

{{- define "holdfast.publicSecret" -}}
{{ .Values.certificates.secretName }}
{{- end }}

{{- define "holdfast.hosts" -}}
{{- $address := .Values.address }}
{{- list $address (printf "monitor.%s" $address) (printf "nodered.%s" $address) (printf "takserver.%s" $address) | toJson }}
{{- end }}

{{/* Whether every pod can be on another machine. */}}
{{- define "holdfast.isSpread" -}}
{{- if eq .Values.core.storage.accessMode "ReadWriteMany" }}true{{ end }}
{{- end }}

{{- define "holdfast.trafficPolicy" -}}
{{ .Values.exposure.externalTrafficPolicy | default (ternary "Cluster" "Local" (include "holdfast.isSpread" . | eq "true")) }}
{{- end }}
