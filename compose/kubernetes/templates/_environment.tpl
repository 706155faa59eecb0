{{/* What the programs are told: settings, secrets and addresses. */}}

{{/* Settings of all programs; each reads its own. */}}
{{- define "holdfast.settings" -}}
SERVER_ADDRESS: {{ .Values.address | quote }}
DEPLOY_MODE: {{ .Values.mode | quote }}
TZ: {{ .Values.timeZone | quote }}
HOLDFAST_LISTEN: {{ .Values.listenAddress | quote }}
HOLDFAST_STACK: {{ ternary "container" "light" (eq .Values.core.kind "release") }}
LDAP_URL: {{ ternary "ldap://authentik-ldap:3389" "ldap://identity:3389" (eq .Values.identity.kind "authentik") }}
IDENTITY_URL: {{ ternary .Values.identity.authentik.url "http://identity:9000" (eq .Values.identity.kind "authentik") }}
HOLDFAST_APP_DATABASE: {{ include "holdfast.databasePlace" (dict "root" . "name" "app") }}
HOLDFAST_CORE_DATABASE: {{ include "holdfast.databasePlace" (dict "root" . "name" "core") }}
{{- range $name, $value := .Values.settings }}
{{ $name }}: {{ include "holdfast.text" $value | quote }}
{{- end }}
{{- end }}

{{/* A value as text. Large numbers would be written with an exponent. */}}
{{- define "holdfast.text" -}}
{{- if kindIs "float64" . }}{{ eq (floor .) . | ternary (int64 .) . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* HOST:PORT of a database. A dict of `root` and `name`. */}}
{{- define "holdfast.databasePlace" -}}
{{- $values := .root.Values }}
{{- if and (eq .name "core") (eq $values.core.kind "release") }}core-database:5432
{{- else if $values.databases.cloudNativePG }}{{ .name }}-database-rw:5432
{{- else }}{{ (get $values.databases .name).host }}
{{- end }}
{{- end }}

{{/* One port of every core node that always runs, the first node first: a dict of `root` and `url`. */}}
{{- define "holdfast.coreUrls" -}}
{{- $url := .url }}
{{- $urls := list (printf $url "core") }}
{{- range $number := untilStep 2 (int .root.Values.core.nodes | add1 | int) 1 }}
{{- $urls = append $urls (printf $url (printf "core-%d" $number)) }}
{{- end }}
{{- join "," $urls }}
{{- end }}

{{- define "holdfast.envFrom" -}}
envFrom:
  - configMapRef: { name: settings }
{{- end }}

{{/* Entries of `env` from the Secret of the stack: a dict of `root` and `names`. */}}
{{- define "holdfast.secrets" -}}
{{- range .names }}
- name: {{ . }}
  valueFrom: { secretKeyRef: { name: {{ $.root.Values.existingSecret }}, key: {{ . }} } }
{{- end }}
{{- end }}

{{/* The password of a database role: a dict of `root`, `name` and `role`. */}}
{{- define "holdfast.password" -}}
- name: {{ .name }}
  valueFrom: { secretKeyRef: { name: {{ get .root.Values.databases.roles .role }}, key: password } }
{{- end }}

{{/* The URL of a database. Kubernetes puts the password in its place. A dict of `root`, `name`, `role`, `password`, `database`, `place`. */}}
{{- define "holdfast.databaseUrl" -}}
{{- $release := and (eq .place "core") (eq .root.Values.core.kind "release") }}
- name: {{ .name }}
  value: postgres://{{ .role }}:$({{ .password }})@{{ include "holdfast.databasePlace" (dict "root" .root "name" .place) }}/{{ .database }}?sslmode={{ $release | ternary "disable" .root.Values.databases.sslMode }}
{{- end }}

{{/* The owner of the core's database. */}}
{{- define "holdfast.coreOwner" -}}
{{ include "holdfast.password" (dict "root" . "name" "CORE_DB_PASSWORD" "role" "martiuser") }}
{{ include "holdfast.databaseUrl" (dict "root" . "name" "CORE_DATABASE_OWNER_URL" "role" "martiuser" "password" "CORE_DB_PASSWORD" "database" "cot" "place" "core") | trim }}
{{- end }}
