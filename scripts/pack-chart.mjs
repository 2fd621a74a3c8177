// Makes the Helm chart from examples/kubernetes, so that objects have one source: replaces values by variables of the
// chart.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { versionOfBuild } from './build-program.mjs'
import { root } from './build.mjs'

const SOURCE = path.join(root, 'examples/kubernetes')

/** Texts of the examples, and their replacements in the chart. Each text must occur in one of the files. */
const VALUES = [
  [
    /registry\.example\.com\/tacho:[\w.-]+/g,
    '{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}',
  ],
  [/https:\/\/tacho\.example\.com/g, '{{ .Values.publicUrl }}'],
  [/tacho\.example\.com/g, '{{ (urlParse .Values.publicUrl).host }}'],
  [/secretName: tacho-database/g, 'secretName: {{ .Values.secrets.database }}'],
  [/secretName: tacho-first-credentials/g, 'secretName: {{ .Values.secrets.firstCredentials }}'],
  [/secretName: tacho-tls/g, 'secretName: {{ .Values.ingress.tlsSecret }}'],
  [/replicas: 3$/gm, 'replicas: {{ .Values.replicas }}'],
  [/ingressClassName: nginx/g, 'ingressClassName: {{ .Values.ingress.className }}'],
  [/metadata\.name: ingress-nginx/g, 'metadata.name: {{ .Values.networkPolicy.ingressNamespace }}'],
  [/metadata\.name: monitoring/g, 'metadata.name: {{ .Values.networkPolicy.monitoringNamespace }}'],
  [/requests: \{ cpu: '1', memory: 512Mi \}/g, 'requests: {{ toJson .Values.resources.requests }}'],
  [/limits: \{ memory: 1Gi \}/g, 'limits: {{ toJson .Values.resources.limits }}'],
  // Names and labels come last, because the texts above contain the same word.
  [/\bname: tacho(-nothing|-migrate)?(?=$|[ ,])/gm, 'name: {{ .Release.Name }}$1'],
]

/** Lines to insert before a matching line. */
const ADDED = [
  [
    /^ {10}ports:$/m,
    '{{- range $name, $value := .Values.env }}\n            - { name: {{ $name }}, value: {{ quote $value }} }\n            {{- end }}',
  ],
  [
    /^ {6}containers:$/gm,
    '{{- with .Values.image.pullSecrets }}\n      imagePullSecrets: {{ toJson . }}\n      {{- end }}',
  ],
  [
    /^ {4}nginx\.ingress\.kubernetes\.io\/proxy-body-size:/m,
    '{{- with .Values.ingress.annotations }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}',
  ],
]

/** The condition under which an object is part of a release, by kind. */
const CONDITIONS = { Ingress: 'ingress.enabled', NetworkPolicy: 'networkPolicy.enabled', Job: 'migrate.enabled' }
const HOOK = `  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
`

/** The templates, by their file names. */
export function templates() {
  const unused = new Set([...VALUES, ...ADDED])
  const files = ['tacho.yaml', 'migrate.yaml'].map((name) => {
    let text = readFileSync(path.join(SOURCE, name), 'utf8')
    const put = (rule, [form, into]) => {
      const filled = text.replace(form, into)
      if (filled !== text) unused.delete(rule)
      text = filled
    }
    for (const rule of VALUES) put(rule, rule)
    for (const rule of ADDED) put(rule, [rule[0], (line) => `${/^ */.exec(line)[0]}${rule[1]}\n${line}`])
    return [
      name,
      text
        .split(/^---\n/m)
        .map(underCondition)
        .join('---\n'),
    ]
  })
  if (unused.size > 0) throw new Error(`examples/kubernetes has no ${[...unused].map(([form]) => form).join(', ')}`)
  return Object.fromEntries(files)
}

function underCondition(text) {
  const [, kind] = /^kind: (\w+)$/m.exec(text)
  const whole = kind === 'Job' ? text.replace(/^metadata:\n/m, `metadata:\n${HOOK}`) : text
  return kind in CONDITIONS ? `{{- if .Values.${CONDITIONS[kind]} }}\n${whole}{{- end }}\n` : whole
}

/** Writes the chart into `folder`, and returns the path of its archive. */
export function packChart(folder) {
  const version = versionOfBuild()
  const staged = mkdtempSync(path.join(tmpdir(), 'tacho-chart-'))
  const chart = path.join(staged, 'tacho')
  try {
    mkdirSync(path.join(chart, 'templates'), { recursive: true })
    cpSync(path.join(SOURCE, 'chart'), chart, { recursive: true })
    cpSync(path.join(root, 'LICENSE'), path.join(chart, 'LICENSE'))
    const described = readFileSync(path.join(SOURCE, 'chart/Chart.yaml'), 'utf8')
    // The tag of an image must not contain `+`.
    writeFileSync(
      path.join(chart, 'Chart.yaml'),
      described
        .replace(/^version: .*/m, `version: ${version}`)
        .replace(/^appVersion: .*/m, `appVersion: ${version.replace('+', '-')}`),
    )
    for (const [name, text] of Object.entries(templates())) writeFileSync(path.join(chart, 'templates', name), text)
    // npm names its own package tacho-<version>.tgz, so the chart has another name.
    const file = path.join(folder, `tacho-chart-${version}.tgz`)
    execFileSync('tar', ['-czf', file, '-C', staged, 'tacho'])
    return file
  } finally {
    rmSync(staged, { recursive: true })
  }
}
