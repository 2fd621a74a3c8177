import type { RetentionSettings } from '@tacho/contract/data/retention.ts'
import { DAY_MS } from '../../engine/times.ts'
import type { RetainedRows, Tenant, ExpiredRuns, RetainedRuns, RetentionSlice } from '../../data/retention.ts'
import { uuidv7At } from '../../engine/uuid.ts'
import { write, type Sql, type SqlValue, changesRuns, read, selectList, eventEnvironment } from '../engine/sql.ts'
import { findEnvironment } from '../tenants/workspaces.ts'
import { addProgress, lockProgress, settingsOf } from './retention-settings.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { RunPlace, RunRow } from '../../runs/runs.ts'
import { allIn } from '../engine/rows.ts'
import { textKey } from '../engine/keys.ts'
import { lockRuns } from '../engine/revision.ts'
import { deleteEvents, removeRuns } from './removal.ts'
import type { RunState } from '../record/run-state.ts'
import { deleteBlocks, REMOVE_PAYLOAD, SAYS_SOMETHING } from '../record/payloads.ts'
import { dropComments } from '../runs/scores.ts'
import { removeFromSearch, markRuns, SEARCHED } from '../runs/search-index.ts'

export const expiredRowsActs = write({ removeExpiredRows })

interface OldRows {
  table: string
  where: string
  params: Readonly<Record<string, SqlValue>>
  time: string
}

/** Skips pending requests: they end within a day, and a later pass finds them. */
function oldApprovals(env: string, before: number): OldRows {
  const where = "environment_id = :env AND created_at < :before AND status <> 'PENDING'"
  return { table: 'approvals', where, params: { env, before }, time: 'created_at' }
}

/** Ids of entries are ordered by time. */
function oldEntries(owner: string, params: Record<string, string>, before: number): OldRows {
  return { table: 'audit_log', where: `${owner} AND id < :id`, params: { ...params, id: uuidv7At(before) }, time: 'id' }
}

/** Keeps issues that are ignored until a set time, because they reopen by themselves. */
function oldIssues(state: 'RESOLVED' | 'IGNORED', env: string, before: number): OldRows {
  const where = `environment_id = :env AND state = :state AND last_seen < :before AND state_at < :before
    AND merged_into IS NULL AND ignored_until IS NULL`
  return { table: 'issues', where, params: { env, state, before }, time: 'last_seen' }
}

/** Rows without an environment follow the settings of the workspace. */
export function oldRows(
  what: RetainedRows,
  { workspaceId, environmentId: env }: Tenant,
  settings: RetentionSettings,
  workspace: RetentionSettings | null,
  now: number,
): OldRows[] {
  const older = (days: number | null | undefined, of: (before: number) => OldRows[]) =>
    days === null || days === undefined ? [] : of(now - days * DAY_MS)
  if (what === 'approvals') return older(settings.approvalDays, (before) => [oldApprovals(env, before)])
  if (what === 'issues') {
    const states = ['RESOLVED', 'IGNORED'] as const
    return older(settings.issueDays, (before) => states.map((state) => oldIssues(state, env, before)))
  }
  const ofWorkspace = 'workspace_id = :workspaceId AND environment_id IS NULL'
  return [
    ...older(settings.auditDays, (before) => [oldEntries('environment_id = :env', { env }, before)]),
    ...older(workspace?.auditDays, (before) => [oldEntries(ofWorkspace, { workspaceId }, before)]),
  ]
}

async function removeExpiredRows(sql: Sql, environmentId: string, what: RetainedRows, now: number, most: number) {
  const progress = await lockProgress(sql, environmentId)
  const environment = await findEnvironment(sql, environmentId)
  if (environment === null) return 0
  const scope = { workspaceId: environment.workspaceId, environmentId }
  const { settings, workspace } = await settingsOf(sql, scope)
  for (const rows of oldRows(what, scope, settings, workspace?.settings ?? null, now)) {
    const { removed, counted } =
      what === 'issues' ? await removeIssue(sql, environmentId, rows, most) : await removeOldest(sql, rows, most)
    if (removed === 0) continue
    await addProgress(sql, environmentId, progress, now, { [what]: counted })
    return removed
  }
  return 0
}

interface Removed {
  removed: number
  /** Items as a person counts them: an issue counts once, with its last rows. */
  counted: number
}

async function removeOldest(sql: Sql, { table, where, params, time }: OldRows, most: number): Promise<Removed> {
  const oldest = `SELECT id FROM ${table} WHERE ${where} ORDER BY ${time}, id LIMIT :most`
  // Without the first condition, Citus would search for the ids on every machine.
  const tenantCondition = table === 'audit_log' ? '' : 'environment_id = :env AND '
  const text = `DELETE FROM ${table} WHERE ${tenantCondition}id IN (${oldest})`
  const removed = await sql.run(text, { ...params, most })
  return { removed, counted: removed }
}

/** Removes rows of the oldest issue. The issue itself goes with its last rows. */
async function removeIssue(sql: Sql, environmentId: string, rows: OldRows, most: number): Promise<Removed> {
  const lock = sql.dialect === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''
  const text = `SELECT id FROM issues WHERE ${rows.where} ORDER BY last_seen, id LIMIT 1 ${lock}`
  const issue = await sql.get<{ id: string }>(text, rows.params)
  if (issue === null) return { removed: 0, counted: 0 }
  const { id } = issue
  const prints = `(SELECT fingerprint FROM issue_fingerprints WHERE environment_id = :env AND issue_id = :id)`
  const merged = `(SELECT id FROM issues WHERE environment_id = :env AND (id = :id OR merged_into = :id))`
  let left = most
  const rowKey = { env: environmentId, id }
  for (const [table, key, condition] of [
    ['issue_records', 'id', `fingerprint IN ${prints}`],
    ['issue_affected', 'fingerprint, kind, subject_key', `fingerprint IN ${prints}`],
    ['issue_activity', 'issue_id, at, id', `issue_id IN ${merged}`],
  ]) {
    if (left <= 0) break
    const some = `SELECT ${key} FROM ${table} WHERE environment_id = :env AND ${condition} LIMIT :left`
    const remove = `DELETE FROM ${table} WHERE environment_id = :env AND (${key}) IN (${some})`
    left -= await sql.run(remove, { ...rowKey, left })
  }
  if (left <= 0) return { removed: most, counted: 0 }
  const removed = most - left
  const ofIssue = 'DELETE FROM issue_fingerprints WHERE environment_id = :env AND issue_id = :id'
  const fingerprints = await sql.run(ofIssue, rowKey)
  const targets = await sql.run('DELETE FROM issues WHERE environment_id = :env AND merged_into = :id', rowKey)
  await sql.run('DELETE FROM issues WHERE environment_id = :env AND id = :id', rowKey)
  return { removed: removed + fingerprints + targets + 1, counted: 1 }
}

/**
 * The age of a run counts from its latest event time, or from when its first event arrived if that is later. Events may
 * carry a time of up to 30 days ago, so a client with a slow clock, or an import, cannot make a run old on arrival. No
 * event is more than five minutes ahead of its arrival, so a fast clock cannot keep a run for long.
 */
export const expiredRunsActs = {
  ...read({ listExpiredRuns }),
  ...write({ deleteExpiredEvents }),
  removeExpiredRuns: changesRuns(removeExpiredRuns, ({ changedRunIds }) => changedRunIds),
  removeExpiredPayloads: changesRuns(removeExpiredPayloads, ({ changedRunIds }) => changedRunIds),
}

const EXAMINED = 1_000

type Examined = 'runId' | 'eventCount' | 'payloadsRemoved' | 'lastEventAt' | 'receivedAt' | 'pinnedAt'
export type ExaminedRun = RunPlace & Pick<RunRow, Examined> & { number: number }

const COLUMNS = selectList(
  'id number run_id started_at event_count payloads_removed last_event_at received_at pinned_at',
)

export function cutoffOf({ runDays, payloadDays }: RetentionSettings, what: RetainedRuns, now: number): number | null {
  const days = what === 'runs' ? runDays : payloadDays
  return days === null ? null : now - days * DAY_MS
}

/** Returns the oldest runs. No run that starts later than `before` can be older than that. */
export function oldestRuns(
  sql: Sql,
  environmentId: string,
  { before, after, limit }: { before: number; after: RunPlace | null; limit: number },
): Promise<ExaminedRun[]> {
  const later = after === null ? '' : 'AND (started_at, id) > (:startedAt, :id)'
  const text = `SELECT ${COLUMNS} FROM runs WHERE environment_id = :env AND started_at < :before ${later}
    ORDER BY started_at, id LIMIT :limit`
  const { startedAt, id } = after ?? {}
  return sql.all<ExaminedRun>(text, { env: environmentId, before, startedAt, id, limit })
}

export async function expiredOf(
  sql: Sql,
  environmentId: string,
  runs: ExaminedRun[],
  what: RetainedRuns,
  { cutoff, keepOpenIssueRuns }: { cutoff: number; keepOpenIssueRuns: boolean },
): Promise<ExaminedRun[]> {
  const old = runs.filter(
    ({ lastEventAt, receivedAt, pinnedAt, eventCount, payloadsRemoved }) =>
      Math.max(lastEventAt, receivedAt) < cutoff &&
      pinnedAt === null &&
      (what === 'runs' || payloadsRemoved < eventCount),
  )
  if (!keepOpenIssueRuns || old.length === 0) return old
  const keys = old.map(({ runId }) => textKey(runId))
  const heldKeys = await ofOpenIssues(sql, environmentId, keys)
  return old.filter(({ runId }) => !heldKeys.has(textKey(runId)))
}

/**
 * Finds runs to keep for open issues: only the newest runs of the issues seen last. Failures open issues, so otherwise every
 * failed run would stay.
 */
async function ofOpenIssues(sql: Sql, environmentId: string, keys: string[]): Promise<Set<string>> {
  const last = `SELECT last_seen AS "lastSeen", id FROM issues WHERE environment_id = :env AND state = 'OPEN'
    AND merged_into IS NULL ORDER BY last_seen DESC, id DESC LIMIT 1 OFFSET :past`
  const past = LIMITS.issuesWithKeptRuns - 1
  const from = await sql.get<{ lastSeen: number; id: string }>(last, { env: environmentId, past })
  const lately = from === null ? '' : 'AND (i.last_seen, i.id) >= (:lastSeen, :id)'
  const newer = `SELECT 1 FROM issue_affected n WHERE n.environment_id = :env AND n.fingerprint = a.fingerprint
    AND n.kind = 'run' AND (n.last_seen, n.subject_key) > (seen.last_seen, seen.subject_key) LIMIT :kept`
  // SQLite keeps the order of a cross join; otherwise it would scan every open issue. The last table is joined only for the
  // time: if `a.last_seen` were read, SQLite would scan another index, which has all columns.
  const text = `SELECT a.subject_key AS "key" FROM issue_affected a
    CROSS JOIN issue_fingerprints f CROSS JOIN issues i CROSS JOIN issue_affected seen
    WHERE a.environment_id = :env AND a.kind = 'run' AND a.subject_key IN (:keys)
      AND f.environment_id = a.environment_id AND f.fingerprint = a.fingerprint
      AND i.environment_id = f.environment_id AND i.id = f.issue_id AND i.state = 'OPEN' ${lately}
      AND seen.environment_id = a.environment_id AND seen.fingerprint = a.fingerprint AND seen.kind = a.kind
      AND seen.subject_key = a.subject_key
      AND (SELECT COUNT(*) FROM (${newer}) page) < :kept`
  const params = { env: environmentId, ...from, kept: LIMITS.keptRunsOfIssue }
  const heldRows = await allIn<{ key: string }>(sql, text, { ...params, keys })
  return new Set(heldRows.map(({ key }) => key))
}

async function listExpiredRuns(
  sql: Sql,
  environmentId: string,
  what: RetainedRuns,
  now: number,
  after: RunPlace | null,
): Promise<ExpiredRuns> {
  const settings = await currentSettings(sql, environmentId)
  const cutoff = cutoffOf(settings, what, now)
  if (cutoff === null) return { runs: [], after: null }
  const examined = await oldestRuns(sql, environmentId, { before: cutoff, after, limit: EXAMINED })
  const expired = await expiredOf(sql, environmentId, examined, what, { ...settings, cutoff })
  const last = examined.length < EXAMINED ? undefined : examined.at(-1)
  return {
    runs: expired.map(({ id, eventCount, startedAt }) => ({ id, events: eventCount, startedAt })),
    after: last ? { startedAt: last.startedAt, id: last.id } : null,
  }
}

/** Removes expired runs, and deletes about `most` of their events; `deleteExpiredEvents` deletes the rest. */
async function removeExpiredRuns(sql: Sql, environmentId: string, now: number, slice: RetentionSlice) {
  const { ids, most, reachedAt } = slice
  const progress = await lockProgress(sql, environmentId)
  const { expired } = await lockRunsOf(sql, environmentId, 'runs', now, ids)
  const removal = { environmentId, erasureId: null, now, counted: new Map() }
  const numbers = expired.map(({ number }) => number)
  await removeRuns(sql, removal, numbers)
  const deleted = await deleteEvents(sql, environmentId, { erasureId: null }, most)
  const counts = { runs: expired.length, events: deleted.events }
  await addProgress(sql, environmentId, progress, now, counts, reachedAt)
  return { ...deleted, runs: expired.length, changedRunIds: expired.map(({ runId }) => runId) }
}

async function deleteExpiredEvents(sql: Sql, environmentId: string, now: number, most: number) {
  const deleted = await deleteEvents(sql, environmentId, { erasureId: null }, most)
  if (deleted.events === 0) return deleted
  const progress = await lockProgress(sql, environmentId)
  await addProgress(sql, environmentId, progress, now, { events: deleted.events })
  return deleted
}

/** `rest`: runs of the slice that still have rows to remove. */
async function removeExpiredPayloads(sql: Sql, environmentId: string, now: number, slice: RetentionSlice) {
  const { ids, most, reachedAt } = slice
  const progress = await lockProgress(sql, environmentId)
  const changed: ExaminedRun[] = []
  const otherKeys: string[] = []
  let events = 0
  const { expired, kept } = await lockRunsOf(sql, environmentId, 'payloads', now, ids)
  for (const run of kept) {
    // A slice may have removed its words from the search before an event arrived.
    if (events >= most || !(await indexAgain(sql, environmentId, run, most, now))) otherKeys.push(run.id)
  }
  for (const run of expired) {
    if (events >= most) otherKeys.push(run.id)
    else {
      const taken = await dropPayloads(sql, environmentId, run, most - events, now)
      events += taken.events
      if (!taken.isWhole) otherKeys.push(run.id)
      changed.push(run)
    }
  }
  await addProgress(sql, environmentId, progress, now, { payloads: events }, reachedAt)
  return { events, rest: otherKeys, changedRunIds: changed.map(({ runId }) => runId) }
}

/** `kept`: runs that are no longer expired by the current settings. */
async function lockRunsOf(sql: Sql, environmentId: string, what: RetainedRuns, now: number, ids: string[]) {
  const settings = await currentSettings(sql, environmentId)
  const cutoff = cutoffOf(settings, what, now)
  const lockedRuns = await lockRuns<ExaminedRun>(sql, environmentId, ids, COLUMNS)
  if (cutoff === null) return { expired: [], kept: lockedRuns }
  const expired = await expiredOf(sql, environmentId, lockedRuns, what, { ...settings, cutoff })
  const numbers = new Set(expired.map(({ number }) => number))
  return { expired, kept: lockedRuns.filter(({ number }) => !numbers.has(number)) }
}

async function currentSettings(sql: Sql, environmentId: string): Promise<RetentionSettings> {
  const environment = await findEnvironment(sql, environmentId)
  const workspaceId = environment?.workspaceId ?? ''
  return (await settingsOf(sql, { workspaceId, environmentId })).settings
}

type Target = Pick<RunState, 'id' | 'number'>

/** Removes a run from the search index and marks it. False: entries are left. */
async function indexAgain(sql: Sql, environmentId: string, run: Target, most: number, now: number) {
  if ((await removeFromSearch(sql, environmentId, run.number, most)) === most) return false
  await markIfSearched(sql, environmentId, run, now)
  return true
}

async function markIfSearched(sql: Sql, environmentId: string, run: Target, now: number): Promise<void> {
  if ((await sql.get(SEARCHED, { env: environmentId })) !== null) await markRuns(sql, environmentId, [run], now)
}

/** Drops payloads of at most `most` events. The words of their labels are indexed again afterwards. */
async function dropPayloads(sql: Sql, environmentId: string, { id, number }: Target, most: number, now: number) {
  const entries = await removeFromSearch(sql, environmentId, number, most)
  const key = sql.dialect === 'sqlite' ? 'seq' : 'event_id'
  const due = `SELECT ${key} FROM events e WHERE environment_id = ${eventEnvironment(sql)} AND run = :number
    AND ${SAYS_SOMETHING} ORDER BY time, seq LIMIT :most`
  const text = `UPDATE events SET ${REMOVE_PAYLOAD[sql.dialect]}
    WHERE environment_id = ${eventEnvironment(sql)} AND run = :number AND ${key} IN (${due})`
  const events = await sql.run(text, { env: environmentId, number, most })
  const isWhole = events < most && entries < most && (await deleteBlocks(sql, environmentId, number))
  // The new number of blocks stops a process that is packing the removed payloads.
  const removed = isWhole ? ', payloads_removed = event_count' : ''
  const changed = `UPDATE runs SET blocks = blocks + 1, failure_message = NULL, said = NULL${removed}
    WHERE environment_id = :env AND id = :id`
  await sql.run(changed, { env: environmentId, id })
  if (isWhole) await dropComments(sql, environmentId, id)
  if (isWhole) await markIfSearched(sql, environmentId, { id, number }, now)
  return { events, isWhole }
}
