/** Checks lines of an export that an import sends, and says what to write. Pure. */
import { LIMITS } from '@tacho/contract/limits.ts'
import {
  APPROVAL_STATUSES,
  DEPLOYABLE_KINDS,
  ISSUE_STATES,
  POLICY_ACTIONS,
  RECORD_KINDS,
  RECORD_STATUSES,
  RUN_STATUSES,
  SEVERITIES,
} from '@tacho/contract/words.ts'
import { EXPORTED_AFTER_RUNS, EXPORTED_BEFORE_RUNS, type ExportedRow, type ExportedTable } from '../storage/exports.ts'
import type { NewEvent, RestoredRun } from '../storage/events.ts'
import { EXPORTED_TABLES, memberOf } from '../storage/exported-tables.ts'
import { readTraits } from '../storage/traits.ts'
import { isUncosted } from '../storage/uncosted.ts'
import { judgeItems } from './event.ts'
import { EXPORT_VERSION, readLine, type ReadLine } from './export-lines.ts'
import { payloadSlices } from './json-slices.ts'
import { isStorableText } from './text.ts'

/** Rows of one table, or the events of one run, in the order of their lines. */
export type RestorePart =
  | { kind: 'head' }
  | { kind: 'rows'; table: ExportedTable; rows: ExportedRow[]; lines: number[] }
  | { kind: 'run'; run: RunLine; events: { event: NewEvent; receivedAt: number }[]; line: number }

export interface RunLine extends RestoredRun {
  runId: string
  /** What its events must add up to. */
  facts: ExportedRow
}

const REQUIRED_TEXTS = ['status', 'agentId'] as const
const REQUIRED_NUMBERS = [
  'startedAt',
  'lastEventAt',
  'receivedAt',
  'promptTokens',
  'completionTokens',
  'totalTokens',
  'costNanos',
  'eventCount',
  'differingRetries',
  'payloadsRemoved',
] as const
export const RUN_FACTS = [
  ...REQUIRED_TEXTS,
  ...REQUIRED_NUMBERS,
  'sessionId',
  'endedAt',
  'errorCount',
  'pinnedAt',
  'ruleClosedAt',
] as const

/** Members that are one of some words. */
const WORDS: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ['run.status', RUN_STATUSES],
  ['approval.status', APPROVAL_STATUSES],
  ['issueRecord.status', RECORD_STATUSES],
  ['issueRecord.recordKind', RECORD_KINDS],
  ['issue.state', ISSUE_STATES],
  ['policyVersion.severity', SEVERITIES],
  ['policyVersion.action', POLICY_ACTIONS],
  ['deployment.kind', DEPLOYABLE_KINDS],
  ['deploymentChange.kind', DEPLOYABLE_KINDS],
])

/** `line`: its index among the lines. */
export interface RestoreFault {
  line: number
  message: string
}

const TABLES: ReadonlySet<string> = new Set([...EXPORTED_BEFORE_RUNS, ...EXPORTED_AFTER_RUNS])

export function readRestore(lines: readonly string[], workspaceId: string): RestorePart[] | RestoreFault {
  const parts: RestorePart[] = []
  for (const [index, text] of lines.entries()) {
    const line = readLine(text)
    const fault = line === null ? 'is not a line of an export' : addLine(parts, line, index, workspaceId)
    if (fault !== null) return { line: index, message: fault }
  }
  return parts
}

/** What is wrong with the line; null if it was added. */
function addLine(parts: RestorePart[], line: ReadLine, index: number, workspaceId: string): string | null {
  const { type } = line
  if (type === 'export') {
    if (line.members['version'] !== EXPORT_VERSION) return `has another version than ${EXPORT_VERSION}`
    parts.push({ kind: 'head' })
    return null
  }
  if (type === 'mark' || type === 'end') return null
  if (type === 'run') return addRun(parts, line, index)
  if (type === 'event') return addEvent(parts, line, workspaceId)
  return TABLES.has(type) ? addRow(parts, line, type as ExportedTable, index) : 'has an unknown type'
}

function addRow(parts: RestorePart[], line: ReadLine, table: ExportedTable, index: number): string | null {
  const { columns, numbers, nullable, json } = EXPORTED_TABLES[table]
  const row: ExportedRow = {}
  for (const column of columns) {
    const member = memberOf(column)
    const isJson = json.includes(column)
    const value = isJson ? line.json(member) : (line.members[member] ?? null)
    const isOfType =
      value === null ? nullable.includes(column) : (typeof value === 'number') === numbers.includes(column)
    if (!isOfType || !isValueOf(table, member, value) || (isJson && value !== null && parsed(value) === undefined)) {
      return `has an invalid ${member}`
    }
    row[member] = value
  }
  const last = parts.at(-1)
  if (last?.kind === 'rows' && last.table === table) {
    last.rows.push(row)
    last.lines.push(index)
  } else parts.push({ kind: 'rows', table, rows: [row], lines: [index] })
  return null
}

function isValueOf(type: string, member: string, value: unknown): value is string | number | null {
  const words = WORDS.get(`${type}.${member}`)
  if (words !== undefined) return typeof value === 'string' && words.includes(value)
  if (typeof value === 'number') return TIMES.test(member) ? isTime(value) : Number.isSafeInteger(value)
  return value === null || (typeof value === 'string' && isStorableText(value))
}

function areTraits(value: string | number | null): boolean {
  try {
    return value === null || (typeof value === 'string' && Object.values(readTraits(value)).flat().every(isText))
  } catch {
    return false
  }
}

const isText = (value: unknown): boolean => typeof value === 'string'

/** Members that are times. */
const TIMES = /(At|Time|Seen|Until)$/

/** No date can be written for another number. */
const isTime = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= LIMITS.detectedAtMaxMs

/** Undefined: not JSON. */
function parsed(text: unknown): unknown {
  try {
    return JSON.parse(String(text))
  } catch {
    return undefined
  }
}

function addRun(parts: RestorePart[], { members }: ReadLine, line: number): string | null {
  const { id, runId, differingRetries } = members
  if (typeof id !== 'string' || typeof runId !== 'string' || typeof differingRetries !== 'number') {
    return 'has no id, runId or differingRetries'
  }
  const facts: ExportedRow = {}
  for (const name of [...RUN_FACTS, 'traits', 'uncosted']) {
    const value = members[name] ?? null
    if (!isValueOf('run', name, value)) return `has an invalid ${name}`
    facts[name] = value
  }
  if (!areTraits(facts['traits'] ?? null)) return 'has invalid traits'
  if (!isUncosted(facts['uncosted'] ?? null)) return 'has an invalid uncosted'
  const isWhole =
    REQUIRED_TEXTS.every((name) => typeof facts[name] === 'string') &&
    REQUIRED_NUMBERS.every((name) => typeof facts[name] === 'number')
  if (!isWhole) return `must have ${REQUIRED_TEXTS.join(', ')}, ${REQUIRED_NUMBERS.join(', ')}`
  const countsErrors = facts['errorCount'] !== null
  parts.push({ kind: 'run', run: { id, runId, differingRetries, countsErrors, facts }, events: [], line })
  return null
}

function addEvent(parts: RestorePart[], line: ReadLine, workspaceId: string): string | null {
  const part = parts.at(-1)
  const { members } = line
  if (part?.kind !== 'run' || part.run.runId !== members['runId'])
    return 'is an event without the line of its run before it'
  const { receivedAt, timestamp } = members
  const payload = line.json('payload')
  const data = payload === null ? undefined : parsed(payload)
  if (!isTime(receivedAt) || !isTime(timestamp)) return 'has an invalid receivedAt or timestamp'
  if (payload === null || data === undefined) return 'has an invalid payload'
  const item = { ...members, payload: data }
  // It was young enough when it was recorded.
  const context = { workspaceId, now: timestamp }
  const levels = payloadSlices(`[{"payload":${payload}}]`)[0]?.levels ?? 1
  const judged = judgeItems([item], () => ({ json: payload, levels }), context)
  const [event] = judged.events
  if (event === undefined) return `is not a valid event: ${judged.rejections[0]?.message ?? 'rejected'}`
  const span = (name: string): string | null => (typeof members[name] === 'string' ? members[name] : null)
  part.events.push({
    event: { ...event, spanId: span('spanId'), parentSpanId: span('parentSpanId') },
    receivedAt,
  })
  return null
}
