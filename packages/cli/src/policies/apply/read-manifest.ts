/** Parses tacho.yaml into a manifest, or lists every fault. `readFile` reads the files that the manifest names. */
import path from 'node:path'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { POLICY_LIMITS } from '@tacho/policy/limits.ts'
import { messageOf, withMessage } from '@tacho/policy/message.ts'
import type { ToolLabels } from '@tacho/policy/history/tool-labels.ts'
import { templateFault } from '@tacho/contract/policies/call-template.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import {
  defaultOnError,
  GRANT_RULES,
  ON_ERRORS,
  POLICY_ACTIONS,
  POLICY_ID_PATTERN,
  SEVERITIES,
  VERSION_PATTERN,
} from '@tacho/contract/engine/words.ts'
import { withoutLastLineEnd, type TextRead, readSource, readText } from '../source-file.ts'
import {
  POLICY_FIELDS,
  type FileFault,
  type Manifest,
  type WantedEnvironment,
  type WantedPolicy,
  type WantedPrompt,
  type WantedVersion,
} from './manifest.ts'
import { readLabels } from './read-labels.ts'
import { YamlReader, type Entry } from './yaml-reader.ts'
import { wrongUsage, type Stop } from '../../engine/stop.ts'
import { printable } from '../../engine/output.ts'

/** Returns the text of a file, or the end of an error sentence. */
type ReadFile = (file: string) => TextRead

type ManifestRead = { ok: true; manifest: Manifest } | { ok: false; faults: FileFault[] }

export function readManifest(text: string, readFile: ReadFile): ManifestRead {
  const yaml = new YamlReader(text)
  const manifest: Manifest = {
    workspace: null,
    labels: null,
    prompts: new Map(),
    policies: new Map(),
    environments: new Map(),
  }
  if (yaml.faults.length === 0) fill(manifest, yaml, readFile)
  if (yaml.faults.length === 0) return { ok: true, manifest }
  const faults = yaml.faults.toSorted((a, b) => a.place.line - b.place.line || a.place.column - b.place.column)
  return { ok: false, faults }
}

function fill(manifest: Manifest, yaml: YamlReader, readFile: ReadFile): void {
  const fields = yaml.fields(yaml.root, ['workspace', 'labels', 'prompts', 'policies', 'environments'])
  if (fields === null) return
  if (fields.workspace) manifest.workspace = yaml.text(fields.workspace)
  if (fields.labels) manifest.labels = readLabels(yaml, fields.labels)
  const prompts = membersOf(yaml, fields.prompts)
  const policies = membersOf(yaml, fields.policies)
  for (const [name, entry] of prompts) {
    const prompt = readPrompt(yaml, name, entry, readFile)
    if (prompt) manifest.prompts.set(name, prompt)
  }
  for (const [id, entry] of policies) {
    const policy = readPolicy(yaml, id, entry, readFile)
    if (policy) manifest.policies.set(id, policy)
  }
  const named = { prompts: new Set(prompts.keys()), policies: new Set(policies.keys()) }
  for (const [name, entry] of membersOf(yaml, fields.environments)) {
    const environment = readEnvironment(yaml, entry, named)
    if (environment) manifest.environments.set(name, environment)
  }
}

/** The members of a section; empty for an empty section. */
function membersOf(yaml: YamlReader, entry: Entry | undefined): Map<string, Entry> {
  return entry === undefined || yaml.isMissing(entry) ? new Map() : (yaml.members(entry) ?? new Map())
}

// --- prompts and policies

function readPrompt(yaml: YamlReader, name: string, entry: Entry, readFile: ReadFile): WantedPrompt | null {
  if (name === '' || Array.from(name).length > LIMITS.nameChars) {
    return yaml.fault(entry, `the name must have 1 to ${LIMITS.nameChars} characters`)
  }
  const fields = yaml.fields(entry, ['content', 'file'])
  if (fields === null) return null
  const content = sourceOf(yaml, entry, fields.content, fields.file, 'content', readFile)
  if (content === null) return null
  const bytes = Buffer.byteLength(content)
  if (bytes > LIMITS.promptContentBytes) {
    return yaml.fault(entry, `must have at most ${LIMITS.promptContentBytes} bytes, but has ${bytes}`)
  }
  return { content, place: entry.place }
}

function readPolicy(yaml: YamlReader, id: string, entry: Entry, readFile: ReadFile): WantedPolicy | null {
  if (!new RegExp(POLICY_ID_PATTERN).test(id)) {
    const form = 'lower-case letters, digits, dots, dashes and underscores, and begin with a letter or digit'
    return yaml.fault(entry, `the id of a policy must have 1 to ${LIMITS.policyIdChars} ${form}`)
  }
  const fields = yaml.fields(entry, [...POLICY_FIELDS, 'message', 'file'])
  if (fields === null) return null
  const name = fields.name ? shortText(yaml, fields.name, LIMITS.nameChars) : id
  const purpose = fields.description ? shortText(yaml, fields.description, LIMITS.descriptionChars) : null
  const message = fields.message ? shortText(yaml, fields.message, POLICY_LIMITS.messageChars) : null
  if (message !== null && messageOf(purpose) !== null) {
    return yaml.fault(entry, 'give the message in `message` or in `description`, not in both')
  }
  const description = message === null ? purpose : withMessage(purpose, message)
  const severity = oneOf(yaml, entry, fields.severity, 'severity', SEVERITIES)
  const action = oneOf(yaml, entry, fields.action, 'action', POLICY_ACTIONS)
  const givenOnError = fields.onError ? oneOf(yaml, entry, fields.onError, 'onError', ON_ERRORS) : null
  const approvers = fields.approvers ? oneOf(yaml, entry, fields.approvers, 'approvers', [1, 2] as const) : 1
  const grantRule = fields.grants ? oneOf(yaml, entry, fields.grants, 'grants', GRANT_RULES) : null
  const grants = grantRule ?? (severity === 'CRITICAL' ? 'never' : 'allow')
  if (approvers === 2 && action !== null && action !== 'REQUIRE_APPROVAL') {
    return yaml.fault(fields.approvers ?? entry, 'two approvers need the action REQUIRE_APPROVAL')
  }
  const template = fields.template ? yaml.text(fields.template) : null
  const fault = template === null ? null : templateFault(template)
  if (fault !== null) return yaml.fault(fields.template ?? entry, `template: ${fault}`)
  const source = sourceOf(yaml, entry, fields.condition, fields.file, 'condition', readFile)
  if (source === null) return null
  const condition = withoutLastLineEnd(source)
  if (!checkCondition(yaml, fields.condition ?? fields.file ?? entry, condition)) return null
  if (name === null || severity === null || action === null || approvers === null) return null
  const onError = givenOnError ?? defaultOnError({ action, severity })
  const saysOnError = givenOnError !== null
  return {
    name,
    description,
    condition,
    severity,
    action,
    onError,
    saysOnError,
    approvers,
    grants,
    template,
    place: entry.place,
  }
}

function checkCondition(yaml: YamlReader, entry: Entry, condition: string): boolean {
  const compiled = compileCondition(condition)
  if (compiled.ok) return true
  for (const { message, position } of compiled.faults) {
    yaml.fault(entry, `line ${position.line}, column ${position.column} of the condition: ${message}`)
  }
  return false
}

/** A text from the manifest, or from a file that it names. */
function sourceOf(
  yaml: YamlReader,
  entry: Entry,
  inline: Entry | undefined,
  file: Entry | undefined,
  name: string,
  readFile: ReadFile,
): string | null {
  if (inline && file) return yaml.fault(entry, `must not have both ${name} and file`)
  const text = inline ? yaml.text(inline) : file ? fileText(yaml, file, readFile) : null
  if (!inline && !file) return yaml.fault(entry, `must have ${name} or file`)
  if (text === null) return null
  if (text === '') return yaml.fault(inline ?? file ?? entry, 'must not be empty')
  if (text.includes('\0') || !text.isWellFormed()) {
    return yaml.fault(inline ?? file ?? entry, 'must be well-formed Unicode without NUL')
  }
  return text
}

function fileText(yaml: YamlReader, entry: Entry, readFile: ReadFile): string | null {
  const file = yaml.text(entry)
  if (file === null) return null
  const read = readFile(file)
  return read.ok ? read.text : yaml.fault(entry, `${JSON.stringify(file)} ${read.reason}`)
}

function shortText(yaml: YamlReader, entry: Entry, maxChars: number): string | null {
  const text = yaml.text(entry)
  if (text === null) return null
  const chars = Array.from(text).length
  if (chars >= 1 && chars <= maxChars && !text.includes('\0')) return text
  return yaml.fault(entry, `must have 1 to ${maxChars} characters`)
}

function oneOf<Value extends string | number>(
  yaml: YamlReader,
  entry: Entry,
  field: Entry | undefined,
  name: string,
  values: readonly Value[],
): Value | null {
  if (field === undefined) return yaml.fault(entry, `needs ${name}: ${values.join(', ')}`)
  const value = values.find((known) => known === yaml.scalar(field))
  return value ?? yaml.fault(field, `must be one of ${values.join(', ')}`)
}

// --- environments

type Named = Record<'prompts' | 'policies', Set<string>>

function readEnvironment(yaml: YamlReader, entry: Entry, named: Named): WantedEnvironment | null {
  const fields = yaml.fields(entry, ['prompts', 'policies'])
  if (fields === null) return null
  return {
    place: entry.place,
    prompts: fields.prompts ? readVersions(yaml, fields.prompts, 'prompts', named) : null,
    policies: fields.policies ? readVersions(yaml, fields.policies, 'policies', named) : null,
  }
}

/** Reads a list of names, or a mapping from names to versions. */
function readVersions(
  yaml: YamlReader,
  entry: Entry,
  section: 'prompts' | 'policies',
  named: Named,
): Map<string, WantedVersion> {
  const wanted = new Map<string, WantedVersion>()
  const take = (name: string | null, version: Omit<WantedVersion, 'place'>, at: Entry) => {
    if (name === null) return
    if (!named[section].has(name)) yaml.fault(at, `${JSON.stringify(name)} is not under ${section}`)
    else if (wanted.has(name)) yaml.fault(at, `${JSON.stringify(name)} is named twice`)
    else wanted.set(name, { ...version, place: at.place })
  }
  if (yaml.isMissing(entry)) {
    yaml.fault(entry, 'is empty: write [] to deploy nothing, or remove it')
  } else if (yaml.isList(entry)) {
    for (const item of yaml.items(entry) ?? []) take(yaml.text(item), { version: null }, item)
  } else {
    for (const [name, item] of membersOf(yaml, entry)) {
      const isShared = section === 'prompts' && yaml.isMapping(item)
      take(name, isShared ? readShared(yaml, item) : { version: readVersion(yaml, item) }, item)
    }
  }
  return wanted
}

/** Reads `{ version: 4, share: { version: 5, percent: 10 } }`. */
function readShared(yaml: YamlReader, entry: Entry): Omit<WantedVersion, 'place'> {
  const { version, share } = yaml.fields(entry, ['version', 'share']) ?? {}
  if (version === undefined) return { version: yaml.fault(entry, 'needs version: the one in force') }
  const inForce = readVersion(yaml, version)
  const fields = share && yaml.fields(share, ['version', 'percent'])
  if (!fields) return { version: inForce }
  const percent = fields.percent && yaml.scalar(fields.percent)
  if (typeof percent !== 'number' || !Number.isInteger(percent) || percent < 0 || percent > 99) {
    yaml.fault(fields.percent ?? entry, 'needs percent: a whole number from 0 to 99')
    return { version: inForce }
  }
  return {
    version: inForce,
    share: { version: fields.version ? readVersion(yaml, fields.version) : null, percent },
  }
}

function readVersion(yaml: YamlReader, entry: Entry): string | null {
  const value = yaml.scalar(entry)
  if (value === 'newest') return null
  if (new RegExp(VERSION_PATTERN).test(String(value))) return String(value)
  return yaml.fault(entry, 'must be a version number or newest')
}

/** Reads a manifest; `-` is standard input. Paths in it are relative to its folder. */
export async function manifestOf(file: string): Promise<Manifest> {
  const directory = file === '-' ? process.cwd() : path.dirname(path.resolve(file))
  const read = readManifest(await readSource(file), (name) => readText(path.resolve(directory, name)))
  if (!read.ok) throw faultyFile(file, read.faults)
  return read.manifest
}

/** The labels in a file. Refuses a file without labels, because it would remove all rules. */
export async function labelsOf(file: string): Promise<readonly ToolLabels[]> {
  const { labels } = await manifestOf(file)
  if (labels === null) throw wrongUsage(`${printable(file)} has no labels.`)
  return labels
}

export function faultyFile(file: string, faults: FileFault[]): Stop {
  const lines = faults.map(({ place, message }) => `${printable(file)}:${place.line}:${place.column}: ${message}`)
  return wrongUsage(`The file is invalid; nothing was changed.\n${lines.join('\n')}`)
}
