/**
 * Failures that the service detects. Each is an issue record with the origin SERVICE, and gets its issue in the
 * transaction that stores it. A failure counts once: the service stores none that a client reported, and a report that
 * arrives later joins the service's record (review.ts). Both lock the run first.
 */
import type { StoredEvent } from '../../record/events.ts'
import type {
  NamedFailure,
  NewFailure,
  TimeSpan,
  FailureGroup,
  IssueDecision,
  IssueRecordRow,
} from '../../issues/issues.ts'
import { read, write, type Sql, countOf } from '../engine/sql.ts'
import { erasedKey, isErased } from '../data/erased-keys.ts'
import { listEventRows, listEvents } from '../record/events.ts'
import { serviceRecordKey } from '../engine/keys.ts'
import { allIn, insertRows } from '../engine/rows.ts'
import { holdFailures } from '../engine/revision.ts'
import { UNLESS_KNOWN, decideIssueRecords } from './issue-records.ts'
import { findByUuid } from '../runs/runs.ts'
import { uuidv7At } from '../../engine/uuid.ts'

export const failuresActs = {
  ...read({ readFailures }),
  ...write({ recordFailures, nameReported }),
}

/** Number of events before an outcome that are searched for the failure that the outcome repeats. */
const EVENTS_BEFORE = 100
const BYTES_BEFORE = 1_048_576
const EVENTS_READ = 2_000
const EVENTS_KEPT = 200
const BYTES_KEPT = 4 * 1_048_576
const PAGE = { limit: 100, pageBytes: 1_048_576 }

async function readFailures(sql: Sql, environmentId: string, uuid: string, span: TimeSpan | null) {
  const run = await findByUuid(sql, environmentId, uuid)
  if (run === null) return null
  const { lastEventAt } = run
  const { from, to } = span ?? { from: lastEventAt, to: lastEventAt }
  const openFailures: StoredEvent[] = []
  let after = { time: Math.min(from, await beginning(sql, environmentId, uuid, to)), seq: 0 }
  let bytes = 0
  for (
    let count = 0;
    count < EVENTS_READ && openFailures.length < EVENTS_KEPT && bytes < BYTES_KEPT;
    count += PAGE.limit
  ) {
    const { rows, more } = await listEvents(sql, environmentId, uuid, { ...PAGE, after })
    const failed = rows.filter((event) => event.time <= to && (span === null || mayFail(event)))
    openFailures.push(...failed)
    bytes += failed.reduce((sum, { payload }) => sum + payload.length, 0)
    const last = rows.at(-1)
    if (!more || last === undefined || last.time > to) break
    after = { time: last.time, seq: last.seq }
  }
  return { run, events: openFailures.slice(-EVENTS_KEPT) }
}

async function beginning(sql: Sql, environmentId: string, run: string, to: number): Promise<number> {
  const page = { limit: EVENTS_BEFORE, order: 'latest', after: { time: to + 1, seq: 0 } } as const
  const { rows } = await listEventRows(sql, environmentId, run, page)
  let bytes = 0
  const first = rows.findIndex(({ payloadBytes }) => (bytes += payloadBytes) > BYTES_BEFORE)
  return rows.at(first)?.time ?? to
}

/** Checks the text without parsing it, because most events are not failures. */
function mayFail({ eventType, payload }: StoredEvent): boolean {
  return eventType === 'ERROR' || payload.includes('"FAILED"') || /"(?:error|exception)"/.test(payload)
}

async function recordFailures(sql: Sql, environmentId: string, runId: string, failures: NewFailure[], now: number) {
  await holdFailures(sql, environmentId, [runId])
  const reported = await reportedEvents(sql, environmentId, runId, failures.map(eventIdOf))
  const stored: NewFailure[] = []
  for (const failure of failures) {
    if (failure.detectionType !== 'DECISION_DIFFERS' && reported.has(failure.eventId)) continue
    if (await insertFailure(sql, environmentId, runId, failure, now)) stored.push(failure)
  }
  const groupOf = failureGroups(sql, environmentId, now)
  const decisions: IssueDecision[] = []
  for (const failure of stored) {
    decisions.push({ ...failure.decision, ...(await groupOf(failure)), recordId: failure.id, reports: null })
  }
  await decideIssueRecords(sql, environmentId, decisions, now)
  return stored.length
}

const eventIdOf = ({ eventId }: { eventId: string | null }) => eventId

type Reported = Pick<IssueRecordRow, 'eventId' | 'detectionType' | 'fingerprint'>

async function reportedEvents(sql: Sql, environmentId: string, runId: string, eventIds: (string | null)[]) {
  const ofRun = sql.dialect === 'sqlite' ? 'run_id = :runId' : 'md5(run_id) = md5(:runId)'
  const text = `SELECT event_id AS "eventId", detection_type AS "detectionType", fingerprint FROM issue_records
    WHERE environment_id = :env AND ${ofRun} AND record_kind = 'DETECTION' AND origin = 'CLIENT'
      AND event_id IN (:eventIds)`
  const named = eventIds.filter((id) => id !== null)
  const rows = await allIn<Reported>(sql, text, { env: environmentId, runId, eventIds: named })
  return new Map(rows.map((row) => [row.eventId, row]))
}

/**
 * Client reports of failed tools have no message, so their issues get the title of the failure that the service
 * detected, once per issue. The group keeps the title of its report, so a recount after an erasure removes the message
 * from the title again.
 */
async function nameReported(sql: Sql, environmentId: string, runId: string, failures: readonly NamedFailure[]) {
  const reported = await reportedEvents(sql, environmentId, runId, failures.map(eventIdOf))
  const titles = new Map<string, string>()
  for (const { eventId, title } of failures) {
    const { detectionType, fingerprint = null } = reported.get(eventId) ?? {}
    if (detectionType === 'TOOL_FAILED' && fingerprint !== null && !titles.has(fingerprint))
      titles.set(fingerprint, title)
  }
  const find = `SELECT i.id FROM issue_fingerprints f JOIN issues i ON i.environment_id = f.environment_id AND i.id = f.issue_id
    WHERE f.environment_id = :env AND f.fingerprint = :fingerprint AND i.title = f.title`
  const named = new Map<string, string>()
  for (const [fingerprint, title] of titles) {
    const issue = await sql.get<{ id: string }>(find, { env: environmentId, fingerprint })
    if (issue !== null) named.set(issue.id, title)
  }
  const text = 'UPDATE issues SET title = :title WHERE environment_id = :env AND id = :id'
  for (const [id, title] of [...named].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    await sql.run(text, { title, env: environmentId, id })
  }
}

async function insertFailure(sql: Sql, environmentId: string, runId: string, failure: NewFailure, now: number) {
  const { id, eventId, clientId, sessionId, agentId, promptVersionId, time, detectionType, payload } = failure
  const recordKey = serviceRecordKey(runId, eventId, detectionType)
  const named = { runId, sessionId, agentId, clientId, time }
  if (await isErased(sql, environmentId, erasedKey('record', recordKey), named)) return false
  const detected = { runId, sessionId, eventId, agentId, promptVersionId, detectionType, payload, evidence: '{}' }
  const times = { detectedAt: time, seenAt: Math.min(time, now), receivedAt: now, statusAt: now }
  const kinds = { origin: 'SERVICE', recordKind: 'DETECTION', status: 'EVALUATING' }
  const names = { id, recordKey, sdkInstanceId: clientId, clientRecordId: eventId ?? 'stalled' }
  const record = { environmentId, ...names, ...kinds, ...detected, ...times }
  return (await insertRows(sql, 'issue_records', [record], UNLESS_KNOWN)) === 1
}

/**
 * Limits how many issues failures can open, however much their messages, classes and tools vary. A failure without an issue
 * opens one while the environment has room (OPENED). If its place in the code has too many messages (MESSAGES), it joins the
 * issue of the place instead. Without room, it joins the issue of its place if there is one, else that of its kind. Nodes that
 * decide at the same time can open a few more.
 */

/** Maximum number of messages of one place, seen within MESSAGES_MS, that have separate issues. */
const MESSAGES = 50
const MESSAGES_MS = 7 * 86_400_000
/** Maximum number of issues that an environment opens within OPENED_MS. Issues opened by reports count too. */
const OPENED = 200
const OPENED_MS = 3_600_000

type Grouped = Pick<NewFailure, 'decision' | 'broader'>

function failureGroups(sql: Sql, environmentId: string, now: number) {
  const added = new Set<string>()
  let opened: number | undefined

  async function isKnown({ fingerprint }: FailureGroup): Promise<boolean> {
    if (added.has(fingerprint)) return true
    const text = 'SELECT 1 FROM issue_fingerprints WHERE environment_id = :env AND fingerprint = :fingerprint'
    return (await sql.get(text, { env: environmentId, fingerprint })) !== null
  }

  async function hasRoom(): Promise<boolean> {
    const text = `SELECT COUNT(*) AS count FROM
      (SELECT 1 FROM issues WHERE environment_id = :env AND id >= :first LIMIT ${OPENED}) AS opened`
    opened ??= await countOf(sql, text, { env: environmentId, first: uuidv7At(now - OPENED_MS) })
    return opened + added.size < OPENED
  }

  async function hasRoomIn(family: string): Promise<boolean> {
    const text = `SELECT COUNT(*) AS count FROM (SELECT 1 FROM issue_fingerprints
      WHERE environment_id = :env AND fingerprint >= :family AND fingerprint < :end AND last_seen > :since LIMIT ${MESSAGES}) AS seen`
    const range = { env: environmentId, family, end: `${family}~`, since: now - MESSAGES_MS }
    const seen = await countOf(sql, text, range)
    return seen + [...added].filter((fingerprint) => fingerprint.startsWith(family)).length < MESSAGES
  }

  async function groupOf({ decision, broader: { family, place, kind } }: Grouped): Promise<FailureGroup> {
    if (await isKnown(decision)) return decision
    if (await hasRoom()) return (await hasRoomIn(family)) ? decision : place
    return (await isKnown(place)) ? place : kind
  }

  return async (failure: Grouped): Promise<FailureGroup> => {
    const group = await groupOf(failure)
    if (!(await isKnown(group))) added.add(group.fingerprint)
    return group
  }
}
