/** The facts must not depend on arrival time or on other records; otherwise one failure would become several issues. */
import { hash } from 'node:crypto'
import type {
  Facts,
  AffectedAgent,
  AffectedRun,
  Issue,
  IssueActivity,
  IssueGroup,
  IssueSummary,
} from '@tacho/contract/issues/issue.ts'
import { IssueRecordInput } from '@tacho/contract/issues/issue-record.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { IssueRecord } from '@tacho/contract/issues/operator-issue-record.ts'
import { isObject, textAt } from '@tacho/contract/record/payload-reader.ts'
import type {
  RecordInReview,
  NewIssueRecord,
  IssueRecordRow,
  IssueRecordWhole,
  AffectedAgentRow,
  AffectedRunRow,
  IssueActivityRow,
  IssueGroupRow,
  IssueRow,
  IssueWhole,
} from '../../storage/issues/issues.ts'
import { isUuid, uuidv5 } from '../../storage/engine/uuid.ts'
import { memberSlices, type JsonSlice } from '../record/json-slices.ts'
import { orNull, pick, isoOf } from '../web/shown.ts'
import { UNSTORABLE, unstorableField } from '../web/text.ts'
import { isoTime } from '../../storage/engine/times.ts'
import type { Payload } from '../../storage/record/events.ts'

/** Increase this when the hash input changes, so that old fingerprints stay valid. */
const VERSION = 'v1'
const FACT_CHARS = 200
const TOOLS = 100

export interface Grouping {
  fingerprint: string
  facts: Facts
}

export function groupingOf(record: Pick<RecordInReview, 'detectionType' | 'policyId' | 'payload'>): Grouping {
  const facts = factsOf(record.detectionType, record.policyId, JSON.parse(record.payload) as Record<string, unknown>)
  return { facts, fingerprint: `${VERSION}:${hash('sha256', canonicalFacts(facts))}` }
}

/** docs/issues.md lists these facts. No other field affects grouping. */
function factsOf(detectionType: string, policyId: string | null, payload: Record<string, unknown>): Facts {
  const facts = {
    detectionType: fact(detectionType),
    model: fact(payload['model']),
    policyId: fact(policyId),
    reasonCode: fact(payload['reasonCode']),
    toolName: fact(payload['toolName']),
    tools: toolSet(payload['tools']),
  }
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined))
}

/** RFC 8785, for sorted facts that are only texts and lists of texts. */
export function canonicalFacts(facts: Facts): string {
  const names = Object.keys(facts).toSorted() as (keyof Facts)[]
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, facts[name]])))
}

export function normalised(text: string): string {
  const plain = text.toWellFormed().toLowerCase().trim().replaceAll(/\s+/g, ' ')
  if (plain.length <= FACT_CHARS) return plain
  const digest = `sha256:${hash('sha256', plain)}`
  return `${plain
    .slice(0, FACT_CHARS - digest.length - 1)
    .toWellFormed()
    .trimEnd()} ${digest}`
}

/** A number counts as text, because reason codes are often numbers. */
function fact(value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : value
  return (typeof text === 'string' && normalised(text)) || undefined
}

function toolSet(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined
  const tools = [...new Set(value.map(fact).filter((tool) => tool !== undefined))].toSorted()
  if (tools.length === 0) return undefined
  if (tools.length <= TOOLS) return tools
  const otherTools = `sha256:${hash('sha256', JSON.stringify(tools.slice(TOOLS - 1)))}`
  return [...tools.slice(0, TOOLS - 1), otherTools].toSorted()
}

const TITLE_CHARS = 200

type Reported = Pick<RecordInReview, 'detectionType' | 'policyId' | 'payload'>

/** Made from the payload of the first detection, because the facts are in lower case. */
export function issueTitle({ detectionType, policyId, payload }: Reported): string {
  const { toolName, tools, reasonCode, model } = JSON.parse(payload) as Record<string, unknown>
  const reason = statedText(typeof reasonCode === 'number' ? String(reasonCode) : reasonCode)
  const several = Array.isArray(tools) ? tools.flatMap((one) => statedText(one) ?? []).join(', ') : ''
  const tool = statedText(toolName) ?? (several === '' ? null : several)
  const known = KNOWN.get(detectionType.trim().toUpperCase())
  const of = { tool, reason, policy: policyId !== null && !isUuid(policyId) ? statedText(policyId) : null }
  const title =
    WITHOUT_TOOL.get(detectionType) ||
    (known && tool !== null && known({ ...of, tool })) ||
    otherTitle(spoken(detectionType), { ...of, model: statedText(model) })
  return title.length <= TITLE_CHARS ? title : `${title.slice(0, TITLE_CHARS - 1).toWellFormed()}…`
}

interface TitleFacts {
  tool: string
  reason: string | null
  policy: string | null
}

const because = (reason: string | null): string => (reason === null ? '' : `: ${spoken(reason)}`)
const by = (policy: string | null): string => (policy === null ? '' : ` by ${policy}`)

const WITHOUT_TOOL = new Map([['REPOSITORY_STARTS', 'A repository starts or sets what no policy sees']])

const KNOWN = new Map<string, (facts: TitleFacts) => string>([
  [
    'TOOL_FAILED',
    ({ tool, reason }) => (isClass(reason) ? `${reason} in ${tool}` : `${tool} failed${because(toolReason(reason))}`),
  ],
  [
    'TOOL_BLOCKED',
    ({ tool, reason, policy }) =>
      `${tool} was blocked${by(policy ?? (reason === 'policy' ? 'a policy' : null))}${because(blockReason(reason))}`,
  ],
  ['LOOP_DETECTED', ({ tool }) => `${tool} is called again and again with the same input`],
  ['BUDGET_EXCEEDED', ({ tool, reason }) => `${tool} is over the budget of the run${because(reason)}`],
  ['INPUT_CHANGED', ({ tool }) => `${tool} ran with another input than was judged`],
  ['TOOL_NOT_JUDGED', ({ tool }) => `${tool} ran without a decision`],
  ['TOOL_RAN_REFUSED', ({ tool }) => `${tool} ran although it was refused`],
  ['TOOL_ADDED', ({ tool }) => `The tool ${tool} was added`],
  ['TOOL_CHANGED', ({ tool }) => `The definition of ${tool} changed`],
])

function otherTitle(
  what: string,
  { tool, reason, policy, model }: Omit<TitleFacts, 'tool'> & { tool: string | null; model: string | null },
): string {
  const subject = what === '' ? 'Detection' : `${what.slice(0, 1).toUpperCase()}${what.slice(1)}`
  const place = tool === null ? '' : ` in ${tool}`
  return `${subject}${place}${model === null ? '' : ` with ${model}`}${by(policy)}${because(reason)}`
}

function statedText(value: unknown): string | null {
  if (typeof value !== 'string') return null
  return value.toWellFormed().trim().replaceAll(/\s+/g, ' ') || null
}

/** `TimeoutError`, not `ECONNREFUSED` or `tool_error`. */
const isClass = (reason: string | null): reason is string =>
  reason !== null && /^[A-Z][a-z]\w*$|^[A-Z]+[a-z]\w*$/.test(reason)

const toolReason = (reason: string | null) => (reason === 'tool_error' ? null : reason)
const blockReason = (reason: string | null) => (reason === 'blocked' || reason === 'policy' ? null : reason)

/** Turns `PROMPT_INJECTION` and `toolCalls` into words. Codes without a separator, such as `ECONNREFUSED`, stay. */
function spoken(code: string): string {
  const words = code
    .trim()
    .replaceAll(/[_\s]+/g, ' ')
    .trim()
  if (/^[A-Z0-9 ]+$/.test(words)) return words.includes(' ') ? words.toLowerCase() : words
  return /^[a-z]+(?:[A-Z][a-z]+)+$/.test(words)
    ? words.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    : words
}

interface FieldFault {
  field: string
  message: string
}

type Receipt = Pick<NewIssueRecord, 'id' | 'environmentId' | 'receivedAt'>

const FIELDS = Object.keys(IssueRecordInput.properties) as (keyof IssueRecordInput)[]
const OBJECTS = ['payload', 'evidence'] as const

/** `text` is the JSON source of `input`: payload and evidence are stored exactly as sent. */
export function toNewIssueRecord(input: IssueRecordInput, text: string, receipt: Receipt): NewIssueRecord | FieldFault {
  const badText = unstorableField(input, FIELDS)
  if (badText !== null) return { field: badText, message: UNSTORABLE }
  const [payload, evidence] = memberSlices(text, OBJECTS)
  for (const [index, slice] of [payload, evidence].entries()) {
    if (slice && slice.levels > LIMITS.payloadDepthLevels) {
      const message = `is nested more than ${LIMITS.payloadDepthLevels} levels deep`
      return { field: OBJECTS[index] ?? '', message }
    }
  }
  return {
    ...receipt,
    ...pick(input, 'sdkInstanceId', 'clientRecordId', 'recordKind', 'detectionType', 'agentId'),
    ...orNull(input, 'runId', 'sessionId', 'eventId', 'policyId'),
    promptVersionId: input.promptVersionId?.toLowerCase() ?? null,
    // -0 is in range but must not be stored as -0.
    detectedAt: input.detectedAt + 0,
    payload: sliceText(text, input.payload, payload),
    evidence: sliceText(text, input.evidence, evidence),
  }
}

export function isFieldFault(value: object): value is FieldFault {
  return 'field' in value
}

function sliceText(text: string, value: object | null | undefined, slice: JsonSlice | null | undefined): string {
  return value && slice ? text.slice(slice.start, slice.end) : '{}'
}

export function toIssueSummary(row: IssueRow): IssueSummary {
  return {
    ...pick(row, 'id', 'title', 'detectionType', 'state', 'occurrences', 'recoveries', 'regressions'),
    ...pick(row, 'assignee', 'mergedInto'),
    ...isoOf(row, 'ignoredUntil', 'openedAt', 'lastRegressionAt'),
    stateChangedAt: isoTime(row.stateAt),
    stateChangedBy: row.stateBy,
    ...seenOf(row),
    ...affectedOf(row),
  }
}

export function toIssue(row: IssueWhole): Issue {
  const release = (payload: string | null) => (payload === null ? null : releaseIn(payload))
  return {
    ...toIssueSummary(row),
    groups: row.groups.map((group) => toGroup(row, group)),
    mergedFrom: row.mergedFrom,
    firstRelease: release(row.firstPayload),
    lastRelease: release(row.lastPayload),
  }
}

function toGroup(issue: IssueRow, row: IssueGroupRow): IssueGroup {
  return {
    ...pick(row, 'fingerprint', 'occurrences', 'recoveries'),
    facts: JSON.parse(row.facts) as Facts,
    ...seenOf(row),
    ...affectedOf(row),
    mergedFrom: row.homeIssueId === issue.id ? null : row.homeIssueId,
  }
}

export function toIssueRecord(row: IssueRecordRow): IssueRecord {
  return {
    ...pick(row, 'id', 'origin', 'sdkInstanceId', 'clientRecordId', 'recordKind', 'detectionType', 'runId'),
    ...pick(row, 'sessionId', 'eventId', 'agentId', 'policyId', 'promptVersionId'),
    ...pick(row, 'status', 'failure', 'fingerprint', 'sameAs', 'issueId'),
    ...isoOf(row, 'detectedAt', 'receivedAt'),
    statusChangedAt: isoTime(row.statusAt),
    internalRunId: row.run,
    internalEventId: row.run && row.storedEventId !== null ? uuidv5(row.run, row.storedEventId) : null,
  }
}

/** Splices in the original texts, because encoding them again would change them. */
export function issueRecordJson(row: IssueRecordWhole): string {
  const head = JSON.stringify(toIssueRecord(row)).slice(0, -1)
  return `${head},"payload":${row.payload},"evidence":${row.evidence}}`
}

export function toAffectedRun(row: AffectedRunRow): AffectedRun {
  return { ...pick(row, 'runId', 'internalRunId', 'status', 'occurrences'), ...seenOf(row) }
}

export function toAffectedAgent(row: AffectedAgentRow): AffectedAgent {
  return { ...pick(row, 'agentId', 'internalAgentId', 'name', 'occurrences'), ...seenOf(row) }
}

const seenOf = (row: { firstSeen: number; lastSeen: number }) => ({
  firstSeenAt: isoTime(row.firstSeen),
  lastSeenAt: isoTime(row.lastSeen),
})

const affectedOf = ({ runs, agents }: { runs: number; agents: number }) => ({
  affectedRuns: runs,
  affectedAgents: agents,
})

export function toActivity(row: IssueActivityRow): IssueActivity {
  const detail = JSON.parse(row.detail) as Record<string, unknown>
  return { ...pick(row, 'id', 'kind', 'actor', 'text'), ...isoOf(row, 'at', 'importedAt'), detail }
}

const RELEASES = ['release', 'agentVersion', 'appVersion', 'serviceVersion']

/** Empty: retention removed the payload. */
export function releaseIn(payload: string): string | null {
  return payload === '' ? null : releaseOf(JSON.parse(payload) as Payload)
}

export function releaseOf(payload: Payload): string | null {
  const resource = payload['resource']
  const ofService = isObject(resource) ? textAt(resource, 'service.version') : null
  const releaseName = [...RELEASES.map((name) => textAt(payload, name)), ofService].find((text) => text?.trim())
  return releaseName ? releaseName.trim().slice(0, LIMITS.releaseChars).toWellFormed() : null
}
