import { hash } from 'node:crypto'
import { ImportedLines } from '@tacho/contract/data/export.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import {
  DAMAGED_ROW,
  type ExportedRow,
  columnsIn,
  EXPORTED_TABLES,
  memberOf,
  type Columns,
} from '../../storage/data/exports.ts'
import type { NewEvent, ImportedRun } from '../../storage/record/events.ts'
import { measureContent } from '../../storage/policies/policies.ts'
import { hasGaps, readRecorders, recordersText, type Recorder } from '../../storage/record/completeness.ts'
import { type RunRow, NO_TRAITS, readTraits, TRAITS_CHARS } from '../../storage/runs/runs.ts'
import { scoreId, type ScoreRow } from '../../storage/runs/scores.ts'
import type { ExportedTable } from '../../storage/engine/tables.ts'
import { isFailureText } from '../../storage/record/failure.ts'
import { isUncosted } from '../../storage/runs/usage.ts'
import { attempt, isStorableText, parsedJson } from '../web/text.ts'
import { areRecorders } from '../record/completeness.ts'
import { validateItems } from '../record/event.ts'
import { EXPORT_VERSION, readLine, type ReadLine } from './export-lines.ts'
import { readJsonBody, type BodyFault } from '../web/json-body.ts'
import { payloadSlices } from '../record/json-slices.ts'
import { valueFault } from './imported-values.ts'

export type ImportPart =
  | { kind: 'rows'; table: ExportedTable; rows: ExportedRow[]; lines: number[] }
  | { kind: 'run'; run: RunLine; events: { event: NewEvent; receivedAt: number }[]; line: number }

export interface RunLine extends ImportedRun {
  runId: string
  /** Facts that must result from the run's events. */
  facts: ExportedRow
}

/** Notation: see storage/engine/tables.ts. */
const RUN_COLUMNS = `status agent_id started_at# last_event_at# received_at# prompt_tokens# completion_tokens#
  total_tokens# cost_nanos# event_count# differing_retries# payloads_removed# error_count# session_id? user_id? ended_at#?
  pinned_at#? rule_closed_at#?`
export const RUN_FACTS = columnsIn(RUN_COLUMNS).columns.map(memberOf) as (keyof RunRow)[]

export interface ImportFault {
  line: number
  message: string
}

export interface Import {
  source: string
  parts: ImportPart[]
}

export type ReadImport = (Import & { resume: boolean }) | ImportFault | BodyFault

export function readImportBody(body: Uint8Array, workspaceId: string): ReadImport {
  const read = readJsonBody(ImportedLines, body)
  if (!read.ok) return read
  const { lines, resume = false } = read.body
  return { resume, ...readImport(lines, workspaceId) }
}

export function readImport(lines: readonly string[], workspaceId: string): Import | ImportFault {
  const parts: ImportPart[] = []
  for (const [index, text] of lines.entries()) {
    const line = readLine(text)
    const fault =
      line === null
        ? 'is not a line of an export'
        : index === 0
          ? headFault(line)
          : addLine(parts, line, index, workspaceId)
    if (fault !== null) return { line: index, message: fault }
  }
  return { source: hash('sha256', lines[0] ?? ''), parts }
}

function headFault({ type, members }: ReadLine): string | null {
  if (type !== 'export') return 'must be the first line of the export, of type export: each request begins with it'
  return members['version'] === EXPORT_VERSION ? null : `has another version than ${EXPORT_VERSION}`
}

function addLine(parts: ImportPart[], line: ReadLine, index: number, workspaceId: string): string | null {
  const { type } = line
  if (type === 'mark' || type === 'end') return null
  if (type === 'run') return addRun(parts, line, index)
  if (type === 'event') return addEvent(parts, line, workspaceId)
  return Object.hasOwn(EXPORTED_TABLES, type)
    ? addRow(parts, line, type as ExportedTable, index)
    : 'has an unknown type'
}

function copyMembers(
  row: ExportedRow,
  line: ReadLine,
  table: ExportedTable | 'run',
  { columns, numbers, nullable, json }: Columns,
): string | null {
  for (const column of columns) {
    const member = memberOf(column)
    const isJson = json.includes(column)
    const value = (isJson ? line.json(member) : line.members[member]) ?? null
    if (value === null && !nullable.includes(column)) return `has no ${member}`
    const isOfType = value === null || typeof value === (numbers.includes(column) ? 'number' : 'string')
    if (!isOfType) return `has an invalid ${member}`
    const check = isJson && value !== null ? jsonFault : valueFault
    const fault = check(table, member, value as string)
    if (fault !== null) return fault
    row[member] = value as string | number | null
  }
  return null
}

function addRow(parts: ImportPart[], line: ReadLine, table: ExportedTable, index: number): string | null {
  if (line.members[DAMAGED_ROW] !== undefined) return 'is a row that was damaged where it was exported'
  const row: ExportedRow = {}
  const fault = copyMembers(row, line, table, EXPORTED_TABLES[table]) ?? rowFault(table, row)
  if (fault !== null) return fault
  const last = parts.at(-1)
  if (last?.kind === 'rows' && last.table === table) {
    last.rows.push(row)
    last.lines.push(index)
  } else parts.push({ kind: 'rows', table, rows: [row], lines: [index] })
  return null
}

/** NO_JSON also stands for the value null, which none of these columns can have. */
function jsonFault(table: ExportedTable | 'run', member: string, text: string): string | null {
  return isStorableText(text) ? valueFault(table, member, parsedJson(text) ?? NO_JSON) : `has an invalid ${member}`
}

const NO_JSON = Symbol('not JSON')

function rowFault(table: ExportedTable, row: ExportedRow): string | null {
  switch (table) {
    case 'agent':
      return row['displayName'] !== null && row['externalId'] === null ? 'has a displayName, but no externalId' : null
    case 'promptVersion': {
      const measured = measureContent(String(row['content']))
      const wrong = (['contentHash', 'contentBytes'] as const).find((name) => measured[name] !== row[name])
      return wrong === undefined ? null : `has an invalid ${wrong}: it is not that of its content`
    }
    case 'policyVersion': {
      const compiled = compileCondition(String(row['condition']))
      return compiled.ok ? null : `has an invalid condition: ${compiled.faults[0]?.message ?? 'it cannot be compiled'}`
    }
    case 'score':
      return scoreFault(row as unknown as ScoreRow)
    default:
      return null
  }
}

function scoreFault(row: ScoreRow): string | null {
  const { kind, number, category, authorKind, sentAs } = row
  const isOfKind =
    kind === 'CATEGORY'
      ? number === null && category !== null
      : category === null && (kind === 'NUMBER' ? number !== null : number === 0 || number === 1)
  if (!isOfKind) return `has no value of the kind ${kind}`
  if ((authorKind === 'client') !== (sentAs !== null))
    return 'has an invalid sentAs: clients send scores, operators do not'
  return row.id === scoreId(row) ? null : 'has an invalid id: it is not that of its run, step, name and author'
}

function areTraits(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > TRAITS_CHARS || !isStorableText(value)) return false
  const traits = attempt(() => Object.values(readTraits(value)).flat())
  return traits?.every((name: unknown) => typeof name === 'string') ?? false
}

function addRun(parts: ImportPart[], line: ReadLine, index: number): string | null {
  const facts: ExportedRow = {}
  const fault = copyMembers(facts, line, 'run', columnsIn(`id run_id ${RUN_COLUMNS}`))
  if (fault !== null) return fault
  const { traits = NO_TRAITS, uncosted = null, failure = null, recorders = null } = line.members
  if (!areTraits(traits)) return 'has invalid traits'
  if (!isUncosted(uncosted) || !isStorableText(String(uncosted))) return 'has an invalid uncosted'
  if (!isFailureText(failure) || !isStorableText(String(failure))) return 'has an invalid failure'
  const { id, runId, differingRetries, eventCount } = facts as Record<'id' | 'runId', string> &
    Record<'differingRetries' | 'eventCount', number>
  const known = recordersIn(recorders)
  if (known === null || !areRecorders(known, eventCount)) return 'has invalid recorders'
  const counted = { recorders: recordersText(known), hasGaps: hasGaps(known) ? 1 : 0 }
  const run = {
    id,
    runId,
    differingRetries,
    facts: { ...facts, traits, uncosted, failure, ...counted } as ExportedRow,
  }
  parts.push({ kind: 'run', run, events: [], line: index })
  return null
}

const NOT_COUNTED = { number: null, drops: null }

function recordersIn(text: unknown): Recorder[] | null {
  if (typeof text !== 'string') return text === null ? [] : null
  const recorders = attempt(() => readRecorders(text))
  const isWritten = attempt(() => recorders && recordersText(recorders)) === text
  return recorders !== undefined && isWritten && isStorableText(text) ? recorders : null
}

function addEvent(parts: ImportPart[], line: ReadLine, workspaceId: string): string | null {
  const lastPart = parts.at(-1)
  const { members } = line
  if (lastPart?.kind !== 'run' || lastPart.run.runId !== members['runId'])
    return 'is an event without the line of its run before it'
  const { receivedAt, timestamp } = members
  if (typeof receivedAt !== 'number' || typeof timestamp !== 'number') return 'has no receivedAt or timestamp'
  const payload = line.json('payload')
  const data = payload === null ? undefined : parsedJson(payload)
  const span = (name: string): string | null => (typeof members[name] === 'string' ? members[name] : null)
  const eventFields = { receivedAt, timestamp, spanId: span('spanId'), parentSpanId: span('parentSpanId') }
  for (const [name, value] of Object.entries(eventFields)) {
    const fault = valueFault('event', name, value)
    if (fault !== null) return fault
  }
  if (members['payloadDamaged'] === true) return 'is an event whose payload was damaged where it was exported'
  if (payload === null || data === undefined || !isStorableText(payload)) return 'has an invalid payload'
  const item = { ...members, payload: data }
  // `now` is the event's own time, because events were checked for their age when they were recorded.
  const context = { workspaceId, now: timestamp }
  const levels = payloadSlices(`[{"payload":${payload}}]`)[0]?.levels ?? 1
  const validated = validateItems([item], () => ({ json: payload, levels }), context)
  const [event] = validated.events
  if (event === undefined) return `is not a valid event: ${validated.rejections[0]?.message ?? 'rejected'}`
  lastPart.events.push({
    event: { ...event, ...NOT_COUNTED, spanId: eventFields.spanId, parentSpanId: eventFields.parentSpanId },
    receivedAt,
  })
  return null
}
