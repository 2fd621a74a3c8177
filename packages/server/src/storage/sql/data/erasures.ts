/**
 *   (none) --created--> SEARCHING --every run is removed--> REMOVING --every event is deleted--> DONE
 *                        |      ^
 *                        +------+ a slice of runs
 *
 * Late retries are refused as soon as the erasure exists. From REMOVING on, it is effective: readers find none of its
 * data.
 */
import { hash } from 'node:crypto'
import type { RunFilter } from '@tacho/contract/runs/operator-run.ts'
import { readScoreFilter } from '@tacho/contract/runs/score-filter.ts'
import { entryBy, type AuditEntry } from '../../people/operators.ts'
import type { ErasureRow, ErasureSlice, NewErasure } from '../../data/erasures.ts'
import { hourOf, isoTime } from '../../engine/times.ts'
import { lookup, read, write, contains, type Sql } from '../engine/sql.ts'
import { eraseDetails, eraseQuotes, insertAudit } from '../people/audit.ts'
import {
  erasableActs,
  erasableOf,
  namedAgents,
  takenUntil,
  changeErasure,
  findErasure,
  listErasures,
} from './erasable.ts'
import { addErasedKeys, erasedKey, FOR_EVER, holdEnvironment, type NamedKind } from './erased-keys.ts'
import { RECORDS_AT_ONCE, removeRecords, type NamedBy } from './erased-records.ts'
import { agentKey } from '../engine/keys.ts'
import { deleteEvents, removeRuns } from './removal.ts'
import { insertRows } from '../engine/rows.ts'
import { enqueueWork, removeWork } from '../engine/work.ts'

export const erasuresActs = {
  ...erasableActs,
  ...lookup({ findErasure }),
  ...read({ listErasures }),
  ...write({ createErasure, removeErased, concludeErasure, deleteErased, deferErasure }),
}

/** The job takes over if the request that created it has not finished by then. */
const REQUEST_MS = 30_000

async function createErasure(sql: Sql, erasure: NewErasure, audit: AuditEntry[]): Promise<ErasureRow> {
  const { id, environmentId, kind, subject, createdAt } = erasure
  await holdEnvironment(sql, environmentId)
  const none = {
    searched: 0,
    runs: 0,
    runningRuns: 0,
    events: 0,
    eventsDeleted: 0,
    approvals: 0,
    issueRecords: 0,
    issues: 0,
  }
  const begun = { ...none, status: 'SEARCHING' as const, effectiveAt: null, finishedAt: null, checksum: '' }
  await insertRows(sql, 'erasures', [{ ...erasure, ...begun, searchedTo: -1 }])
  await addErasedKeys(sql, environmentId, keysOf(erasure, kind === 'run' ? FOR_EVER : createdAt))
  if (kind === 'agent' || kind === 'client') await renewEnvelopes(sql, environmentId, kind, subject)
  await enqueueWork(sql, [{ kind: 'erase', environmentId, subjectId: id, dueAt: createdAt + REQUEST_MS }])
  await insertAudit(sql, audit)
  return { ...erasure, ...begun }
}

/** A user adds only the key of a session here. Runs of a user id in a payload get their keys when they are removed. */
function keysOf({ kind, subject }: Pick<NewErasure, 'kind' | 'subject'>, until: number) {
  const key = (of: NamedKind, id: string) => ({ key: erasedKey(of, id), until })
  if (kind === 'agent') return [key('agent', agentKey(subject, '')), key('agent', agentKey(null, subject))]
  return [key(kind === 'user' ? 'session' : kind, subject)]
}

const ENVELOPES = {
  agent: '(agent_id = :subject OR (agent_id IS NULL AND agent_name = :subject))',
  client: 'client_id = :subject',
}

/** Later events get new envelopes, so only the erased events use the present ones. */
async function renewEnvelopes(sql: Sql, environmentId: string, kind: 'agent' | 'client', subject: string) {
  const text = `UPDATE envelopes SET envelope_key = 'erased:' || CAST(number AS TEXT)
    WHERE environment_id = :env AND ${ENVELOPES[kind]}`
  await sql.run(text, { env: environmentId, subject })
}

async function removeErased(
  sql: Sql,
  environmentId: string,
  id: string,
  { runs, searchedTo, searched }: ErasureSlice,
  now: number,
): Promise<ErasureRow | null> {
  const counted = new Map(runs.flatMap(({ number, counted: of }) => (of === null ? [] : [[number, of]])))
  const erasure = await findErasure(sql, environmentId, id)
  if (erasure === null) return null
  const removal = { environmentId, erasureId: id, isForEver: erasure.kind === 'user', now, counted }
  const numbers = runs.map(({ number }) => number)
  const removed = await removeRuns(sql, removal, numbers)
  const lines = removed.runs.map((run) => `${run.id} ${run.events}`)
  const checksum = checksumOf(erasure.checksum, lines)
  // A run that got further events was not removed: the search finds it again.
  const isComplete = removed.runs.length === new Set(numbers).size || runs.length === 0
  const set = `runs = runs + :runs, running_runs = running_runs + :runningRuns, events = events + :events, ${ADD_RECORDS}, checksum = :checksum,
    searched = CASE WHEN searched_to < :to THEN searched + :searched ELSE searched END,
    searched_to = CASE WHEN searched_to < :to THEN :to ELSE searched_to END`
  const to = isComplete ? searchedTo : -1
  const runningRuns = removed.runs.filter(({ status }) => status === 'RUNNING').length
  return changeErasure(sql, erasure, set, {
    ...removed,
    runs: removed.runs.length,
    runningRuns,
    checksum,
    to,
    searched,
  })
}

const ADD_RECORDS = `approvals = approvals + :approvals, issue_records = issue_records + :issueRecords,
    issues = issues + :issues`

/** Checksum of the removed runs: a chain of hashes, with the runs of each slice sorted. */
function checksumOf(before: string, lines: readonly string[]): string {
  return lines.length === 0 ? before : hash('sha256', [before, ...lines.toSorted()].join('\n'))
}

/** If the result has no `effectiveAt`, call this or the two functions above again. */
async function concludeErasure(sql: Sql, environmentId: string, id: string, now: number): Promise<ErasureRow | null> {
  await holdEnvironment(sql, environmentId)
  const erasure = await findErasure(sql, environmentId, id)
  if (erasure?.status !== 'SEARCHING' || erasure.subject === null) return erasure
  const left = await erasableOf(sql, erasure, 1)
  if (left.runs.length > 0 || left.searched > 0) return erasure
  const { kind, subject } = erasure
  const by: NamedBy = kind === 'user' ? 'session' : kind
  const records = await removeRecords(sql, environmentId, by, [subject])
  const isLast = records.approvals < RECORDS_AT_ONCE && records.issueRecords < RECORDS_AT_ONCE
  if (!isLast) return changeErasure(sql, erasure, ADD_RECORDS, { ...records })
  if (kind === 'agent') await forgetAgent(sql, environmentId, subject, erasure.createdAt)
  if (kind === 'client') await forgetClient(sql, environmentId, subject)
  await stopSimulations(sql, environmentId, now)
  await removeRunViews(sql, environmentId, subject)
  await eraseQuotes(sql, environmentId, subject)
  await forgetReplies(sql, environmentId, subject)
  // Only data up to this time is removed and refused, not what arrived while many runs were searched.
  const newest = kind === 'run' ? FOR_EVER : Math.min(now, takenUntil(erasure.createdAt))
  await addErasedKeys(sql, environmentId, keysOf({ kind, subject }, newest))
  const due = `UPDATE work SET due_at = :now
    WHERE environment_id = :env AND kind = 'erase' AND subject_id = :id AND lease_owner IS NULL`
  await sql.run(due, { now, env: environmentId, id })
  return changeErasure(sql, erasure, `${ADD_RECORDS}, status = 'REMOVING', effective_at = :now`, { ...records, now })
}

const ERASED = 'erased'

async function forgetAgent(sql: Sql, environmentId: string, subject: string, createdAt: number): Promise<void> {
  const hour = hourOf(createdAt)
  for (const agentId of await namedAgents(sql, environmentId, subject)) {
    const of = { env: environmentId, agentId }
    for (const counted of ['usage_hours', 'latency_hours', 'tool_hours', 'uncosted_hours']) {
      const past = `DELETE FROM ${counted} WHERE environment_id = :env AND agent_id = :agentId AND hour < :hour`
      await sql.run(past, { ...of, hour })
    }
    await eraseDetails(sql, environmentId, 'agent', [agentId])
    const unnamed = `UPDATE agents SET display_name = NULL
      WHERE environment_id = :env AND id = :agentId AND display_name IS NOT NULL`
    await sql.run(unnamed, of)
    const used = `SELECT id FROM runs WHERE environment_id = :env AND agent_id = :agentId
      ORDER BY started_at DESC, id DESC LIMIT 1`
    if ((await sql.get(used, of)) !== null) continue
    await sql.run('DELETE FROM agents WHERE environment_id = :env AND id = :agentId', of)
    await addErasedKeys(sql, environmentId, [{ key: erasedKey('agentRow', agentId), until: FOR_EVER }])
  }
  const text = `UPDATE envelopes SET agent_id = CASE WHEN agent_id IS NULL THEN NULL ELSE '${ERASED}' END,
      agent_name = '${ERASED}' WHERE environment_id = :env AND ${ENVELOPES.agent} AND envelope_key LIKE 'erased:%'`
  await sql.run(text, { env: environmentId, subject })
}

async function forgetClient(sql: Sql, environmentId: string, subject: string): Promise<void> {
  const text = `UPDATE envelopes SET client_id = '${ERASED}'
    WHERE environment_id = :env AND ${ENVELOPES.client} AND envelope_key LIKE 'erased:%'`
  const of = { env: environmentId, subject }
  await sql.run(text, of)
  const seen = `DELETE FROM configuration_clients
    WHERE environment_id = :env AND identified_by = 'client' AND client_id = :subject`
  await sql.run(seen, of)
}

/** A running simulation may have read what is erased now. */
async function stopSimulations(sql: Sql, environmentId: string, now: number): Promise<void> {
  const text = `UPDATE simulations SET status = 'CANCELLED', ended_at = :now
    WHERE environment_id = :env AND status = 'RUNNING' RETURNING id`
  for (const { id } of await sql.all<{ id: string }>(text, { now, env: environmentId })) {
    await removeWork(sql, { kind: 'simulate', environmentId, subjectId: id })
  }
}

async function removeRunViews(sql: Sql, environmentId: string, subject: string): Promise<void> {
  const text = 'SELECT id, query FROM run_views WHERE environment_id = :env'
  for (const { id, query } of await sql.all<{ id: string; query: string }>(text, { env: environmentId })) {
    const filters = JSON.parse(query) as RunFilter
    const score = filters.score === undefined ? null : readScoreFilter(filters.score)
    const value = filters.metadata?.slice(filters.metadata.indexOf('=') + 1)
    if (![...Object.values(filters), value, score?.name, score?.value].includes(subject)) continue
    await sql.run('DELETE FROM run_views WHERE environment_id = :env AND id = :id', { env: environmentId, id })
    await eraseDetails(sql, environmentId, 'run_view', [id])
  }
}

/** A scan is cheap, because the table holds only one day. */
async function forgetReplies(sql: Sql, environmentId: string, subject: string): Promise<void> {
  const text = `DELETE FROM idempotency_keys
    WHERE state = 'answered' AND ${contains(sql, 'reply', ':env')} AND ${contains(sql, 'reply', ':subject')}`
  await sql.run(text, { env: JSON.stringify(environmentId), subject: JSON.stringify(subject) })
}

async function deleteErased(sql: Sql, environmentId: string, id: string, limit: number, now: number) {
  const erasure = await findErasure(sql, environmentId, id)
  if (erasure?.status !== 'REMOVING') return erasure
  const { events, runsLeft } = await deleteEvents(sql, environmentId, { erasureId: id }, limit)
  const changed = await changeErasure(sql, erasure, 'events_deleted = events_deleted + :events', { events })
  // Another process may have finished the erasure since it was read.
  if (runsLeft || changed.status !== 'REMOVING') return changed
  const done = await changeErasure(sql, erasure, `status = 'DONE', finished_at = :now, subject = NULL`, { now })
  await insertAudit(sql, [receiptOf(done, now)])
  await removeWork(sql, { kind: 'erase', environmentId, subjectId: id })
  return done
}

/** Restarts the work at `dueAt`, because it keeps failing. */
async function deferErasure(sql: Sql, environmentId: string, id: string, dueAt: number, error: string): Promise<void> {
  const text = `UPDATE work SET due_at = :dueAt, attempts = 0, lease_owner = NULL, last_error = :error
    WHERE environment_id = :env AND kind = 'erase' AND subject_id = :id`
  await sql.run(text, { dueAt, error, env: environmentId, id })
}

function receiptOf(row: ErasureRow, now: number): AuditEntry {
  const { id, environmentId, requestedBy, kind, subjectHash, runs, runningRuns, events, approvals, issueRecords } = row
  const counts = {
    runs,
    runningRuns,
    events,
    eventsDeleted: row.eventsDeleted,
    approvals,
    issueRecords,
    issues: row.issues,
  }
  const times = { requestedAt: isoTime(row.createdAt), effectiveAt: isoTime(row.effectiveAt) }
  const detail = { kind, subjectHash, field: row.field, ...times, ...counts, checksum: row.checksum }
  const act = { action: 'erasure.finish', targetKind: 'erasure', targetId: id, detail }
  // Erasures that an earlier version began have no address.
  const { workspaceId, requestId, address } = requestedBy
  return entryBy(requestedBy, { at: now, workspaceId, environmentId }, act, { id: requestId, ip: address })
}
