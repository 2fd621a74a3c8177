/**
 * The lines of an export, as docs/export.md describes them. Pure.
 *
 *   export, rows before the runs, each run followed by its events, rows after the runs, end; marks anywhere between
 *
 * A mark says where a stopped export continues, and the checksum so far. The checksum is a chain: each line is hashed
 * with the hash of the lines before it. So an export that continues needs no line again.
 */
import { hash } from 'node:crypto'
import { isObject, parsed } from '@tacho/contract/record/payload-reader.ts'
import type { StoredEvent } from '../../storage/record/events.ts'
import {
  DAMAGED_ROW,
  type ExportedKey,
  type ExportedRow,
  EXPORTED_TABLES,
  memberOf,
} from '../../storage/data/exports.ts'
import { readMetadata, readTraits, type RunRow } from '../../storage/runs/runs.ts'
import type { ExportedTable } from '../../storage/engine/tables.ts'
import { memberSlices } from '../record/json-slices.ts'

export const EXPORT_VERSION = 1

export interface ExportPlace {
  section: ExportedTable | 'run'
  /** Null: continue at the first row. For a run: its start and internal id. */
  after: ExportedKey | null
  /** The last exported event of that run. Absent: all its events are exported. */
  event?: string
  /** How many events of that run are left. */
  left?: number
}

export interface ExportState {
  lines: number
  counts: Record<string, number>
  sha256: string
}

export interface Mark extends ExportState {
  place: ExportPlace
}

export function newExportState(): ExportState {
  return { lines: 0, counts: {}, sha256: '' }
}

export function countLine(state: ExportState, type: string, line: string): void {
  state.lines++
  state.counts[type] = (Object.hasOwn(state.counts, type) ? (state.counts[type] ?? 0) : 0) + 1
  state.sha256 = hash('sha256', `${state.sha256}${line}\n`)
}

export function headLine(workspace: string, environment: string, filter: object): string {
  return JSON.stringify({ type: 'export', version: EXPORT_VERSION, workspace, environment, filter })
}

export function rowLine(table: ExportedTable, row: ExportedRow): string {
  const json = EXPORTED_TABLES[table].json.map(memberOf)
  const known = Object.entries(row).filter(([name, value]) => value !== null && !json.includes(name))
  const plain = known.map(([name, value]) => [name, name === DAMAGED_ROW ? true : value])
  const members = json.flatMap((name) => {
    const text = row[name]
    return typeof text === 'string' ? [jsonMember(name, text)] : []
  })
  return withMembers({ type: table, ...Object.fromEntries(plain) }, members)
}

export function runLine(run: RunRow): string {
  const {
    traits,
    uncosted,
    failure,
    failureMessage: _message,
    said: _said,
    agentExternalId: _id,
    agentName: _name,
    agentDisplayName: _display,
    ...facts
  } = run
  const read = readTraits(traits)
  const metadata = readMetadata(read)
  // Labels are only for readers: an import takes them from the events, or from the traits.
  const labels = {
    tags: read.tag.length === 0 ? null : read.tag,
    metadata: Object.keys(metadata).length === 0 ? null : metadata,
  }
  // An import takes these from the events, unless their payloads were removed.
  const lost = run.payloadsRemoved > 0 && { traits, uncosted, failure }
  const known = Object.entries({ ...facts, ...labels, ...lost }).filter(([, value]) => value !== null)
  return JSON.stringify({ type: 'run', ...Object.fromEntries(known) })
}

export function eventLine(run: RunRow, event: StoredEvent): string {
  const { eventId, clientId, sessionId, agentId, agentName, eventType, label, time, receivedAt } = event
  const { spanId, parentSpanId, schemaVersion } = event
  const sent = { runId: run.runId, eventId, clientId, sessionId, agentId, agentName, eventType, label }
  const members = { ...sent, timestamp: time, receivedAt, spanId, parentSpanId, schemaVersion }
  const known = Object.entries(members).filter(([, value]) => value !== null)
  const damaged = event.payloadDamaged ? { payloadDamaged: true } : {}
  const line = { type: 'event', ...Object.fromEntries(known), ...damaged }
  return withMembers(line, [jsonMember('payload', event.payload)])
}

export function markLine(state: ExportState, place: ExportPlace): string {
  const mark: Mark = { ...state, place }
  const after = Buffer.from(JSON.stringify(mark)).toString('base64url')
  return JSON.stringify({ type: 'mark', lines: state.lines, sha256: state.sha256, after })
}

export function endLine({ lines, counts, sha256 }: ExportState): string {
  return JSON.stringify({ type: 'end', lines, counts, sha256 })
}

function withMembers(object: object, members: readonly string[]): string {
  return `${[JSON.stringify(object).slice(0, -1), ...members].join(',')}}`
}

/** A member with its text as it was sent. A line break would end the line, so a text with one is quoted. */
function jsonMember(name: string, text: string): string {
  return /[\n\r]/.test(text) ? `"${name}Text":${JSON.stringify(text)}` : `"${name}":${text}`
}

export interface ReadLine {
  type: string
  members: Readonly<Record<string, unknown>>
  json: (name: string) => string | null
}

export function readLine(text: string): ReadLine | null {
  const members = objectOf(text)
  const type = members?.['type']
  if (members === null || typeof type !== 'string') return null
  const json = (name: string): string | null => {
    const asText = members[`${name}Text`]
    if (typeof asText === 'string') return asText
    const [slice] = memberSlices(text, [name])
    return slice ? text.slice(slice.start, slice.end) : null
  }
  return { type, members, json }
}

export function readMark(after: string): Mark | null {
  const mark = objectOf(Buffer.from(after, 'base64url').toString())
  if (mark === null) return null
  const { lines, counts, sha256, place } = mark
  if (!isCount(lines) || !isObject(counts) || typeof sha256 !== 'string' || !isObject(place)) return null
  if (!/^[0-9a-f]{64}$/.test(sha256) || !Object.values(counts).every(isCount)) return null
  const { section, after: key, event, left } = place
  if (typeof section !== 'string' || (section !== 'run' && !Object.hasOwn(EXPORTED_TABLES, section))) return null
  if (event !== undefined && (typeof event !== 'string' || !isCount(left))) return null
  const parts = section === 'run' ? 2 : EXPORTED_TABLES[section as ExportedTable].key.length
  if (!Array.isArray(key) || key.length !== parts || !key.every(isKeyPart)) return null
  return mark as unknown as Mark
}

function objectOf(text: string): Readonly<Record<string, unknown>> | null {
  const value = parsed(text)
  return isObject(value) ? value : null
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const isKeyPart = (value: unknown): boolean => typeof value === 'string' || Number.isSafeInteger(value)
