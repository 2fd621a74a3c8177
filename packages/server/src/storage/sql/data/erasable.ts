import type { ErasurePreview } from '@tacho/contract/data/erasure.ts'
import type { Erasable, ErasableRun, ErasureRow, ErasureSubject } from '../../data/erasures.ts'
import {
  lookup,
  read,
  countOf,
  type Sql,
  type SqlValue,
  selectList,
  type NamedParams,
  eventEnvironment,
} from '../engine/sql.ts'
import { allIn, withJson } from '../engine/rows.ts'
import { agentKey, textKey } from '../engine/keys.ts'
import { hourOf } from '../../engine/times.ts'
import { mapPage, type PageById } from '../../engine/page.ts'

export const erasableActs = {
  ...lookup({ previewErasure, countToSearch, listCountedNames }),
  ...read({ listErasable }),
}

/** Clocks of nodes differ: a run is erased if it was stored before the erasure by the clock of any node. */
const CLOCKS_MS = 10_000

export const takenUntil = (createdAt: number): number => createdAt + CLOCKS_MS

const RUN = `r.id, r.number, r.event_count AS events, r.started_at AS "startedAt", r.status,
  r.last_event_at AS "lastEventAt", CASE WHEN EXISTS (SELECT 1 FROM version_runs v
    WHERE v.environment_id = r.environment_id AND v.run = r.id) THEN 1 ELSE 0 END AS "usesPrompts"`
const STORED = 'r.received_at <= :storedBy'

const needsSearch = ({ kind, field }: Pick<ErasureSubject, 'kind' | 'field'>): boolean =>
  kind === 'client' || (kind === 'user' && field !== null)

type Found = Omit<ErasableRun, 'isFound'>

async function listErasable(sql: Sql, environmentId: string, id: string, limit: number): Promise<Erasable | null> {
  const erasure = await findErasure(sql, environmentId, id)
  return erasure && erasableOf(sql, erasure, limit)
}

export async function erasableOf(sql: Sql, erasure: ErasureRow & Searched, limit: number): Promise<Erasable> {
  const { environmentId, kind, subject, field, createdAt, searchedTo } = erasure
  const nothing = { erasure, runs: [], searchedTo, searched: 0, usageFrom: kind === 'agent' ? hourOf(createdAt) : null }
  if (erasure.status !== 'SEARCHING' || subject === null) return nothing
  const subjectRuns = await indexedRuns(sql, environmentId, { kind, subject, field }, takenUntil(createdAt), limit)
  if (subjectRuns.length > 0) return { ...nothing, runs: subjectRuns.map((run) => ({ ...run, isFound: true })) }
  return needsSearch(erasure) ? nextErasable(sql, erasure, limit, nothing) : nothing
}

/** External ids first, then names: an agent without an external id is identified by its name. */
export async function namedAgents(sql: Sql, environmentId: string, subject: string): Promise<string[]> {
  const text = 'SELECT id FROM agents WHERE environment_id = :env AND agent_key = :key'
  const keys = [agentKey(subject, ''), agentKey(null, subject)]
  const rows = await Promise.all(keys.map((key) => sql.get<{ id: string }>(text, { env: environmentId, key })))
  return rows.flatMap((row) => (row === null ? [] : [row.id]))
}

async function indexedRuns(
  sql: Sql,
  environmentId: string,
  { kind, subject }: ErasureSubject,
  storedBy: number,
  limit: number,
): Promise<Found[]> {
  const of = { env: environmentId, limit }
  const runs = (condition: string, order: string, sought: SqlValue) =>
    sql.all<Found>(
      `SELECT ${RUN} FROM runs r WHERE r.environment_id = :env AND ${condition} AND ${STORED} ORDER BY ${order} LIMIT :limit`,
      { ...of, sought, storedBy },
    )
  // Ordered as in OF_RUN_ID. Without a subquery: Citus would not look up prompts for the rows that one returns.
  if (kind === 'run') return runs('r.run_id >= :sought AND r.run_id <= :sought', 'r.run_id', subject)
  if (kind === 'agent') {
    const foundRuns: Found[] = []
    for (const agentId of await namedAgents(sql, environmentId, subject)) {
      foundRuns.push(...(await runs('r.agent_id = :sought', 'r.started_at, r.id', agentId)))
    }
    return foundRuns.slice(0, limit)
  }
  if (kind === 'client') return []
  const ownRuns: Found[] = []
  for (const key of kind === 'user' ? ['session_key', 'user_key'] : ['session_key']) {
    const further = await runs(`r.${key} = :sought`, 'r.started_at, r.id', textKey(subject))
    ownRuns.push(...further.filter(({ id }) => ownRuns.every((run) => run.id !== id)))
  }
  if (ownRuns.length > 0) return ownRuns.slice(0, limit)
  const session = `=${subject}`
  const named = sql.dialect === 'sqlite' ? 'own_session = :session' : 'md5(own_session) = md5(:session)'
  const text = `SELECT DISTINCT run FROM events WHERE environment_id = ${eventEnvironment(sql)} AND own_session > '='
    AND ${named} LIMIT :limit`
  const numbers = await sql.all<{ run: number }>(text, { ...of, session })
  const runRanges = numbers.map(({ run }) => runs('r.number >= :sought AND r.number <= :sought', 'r.number', run))
  return (await Promise.all(runRanges)).flat()
}

async function nextErasable(
  sql: Sql,
  erasure: ErasureRow & Searched,
  limit: number,
  nothing: Erasable,
): Promise<Erasable> {
  const { environmentId, kind, subject, createdAt, searchedTo } = erasure
  const storedBy = takenUntil(createdAt)
  const text = `SELECT ${RUN} FROM runs r WHERE r.environment_id = :env AND r.number > :searchedTo AND ${STORED}
    ORDER BY r.number LIMIT :limit`
  const next = await sql.all<Found>(text, { env: environmentId, searchedTo, storedBy, limit })
  const last = next.at(-1)
  if (last === undefined) return nothing
  const slice = { ...nothing, searchedTo: last.number, searched: next.length }
  if (kind !== 'client') return { ...slice, runs: next.map((run) => ({ ...run, isFound: false })) }
  const bySender = `SELECT DISTINCT run FROM events WHERE environment_id = ${eventEnvironment(sql)} AND run IN (:runs)
    AND envelope IN (SELECT number FROM envelopes WHERE environment_id = :env AND client_id = :subject)`
  const runs = next.map(({ number }) => number)
  const sent = await allIn<{ run: number }>(sql, bySender, { env: environmentId, runs, subject })
  const numbers = new Set(sent.map(({ run }) => run))
  return { ...slice, runs: next.filter(({ number }) => numbers.has(number)).map((run) => ({ ...run, isFound: true })) }
}

async function countToSearch(sql: Sql, environmentId: string, subject: Pick<ErasureSubject, 'kind' | 'field'>) {
  if (!needsSearch(subject)) return 0
  const text = 'SELECT COUNT(*) AS count FROM runs WHERE environment_id = :env'
  return countOf(sql, text, { env: environmentId })
}

/** Names by which usage is counted separately; usage of all other names is one sum. */
async function listCountedNames(sql: Sql, environmentId: string): Promise<string[]> {
  const text = `SELECT model AS name FROM models WHERE environment_id = :env
    UNION SELECT tool AS name FROM tools WHERE environment_id = :env`
  return (await sql.all<{ name: string }>(text, { env: environmentId })).map(({ name }) => name)
}

async function previewErasure(
  sql: Sql,
  environmentId: string,
  subject: ErasureSubject,
  most: number,
): Promise<ErasurePreview> {
  const subjectRuns = await indexedRuns(sql, environmentId, subject, Number.MAX_SAFE_INTEGER, most + 1)
  const counted = subjectRuns.slice(0, most)
  const events = counted.reduce((sum, run) => sum + run.events, 0)
  const text = 'SELECT COUNT(*) AS count FROM (SELECT 1 FROM runs WHERE environment_id = :env LIMIT :most) AS searched'
  const toSearch = needsSearch(subject) ? await countOf(sql, text, { env: environmentId, most }) : 0
  const runningRuns = counted.filter(({ status }) => status === 'RUNNING').length
  return { runs: counted.length, events, runningRuns, more: subjectRuns.length > most, toSearch }
}

const COLUMNS = selectList(`id environment_id kind subject subject_hash field status requested_by reason created_at
  effective_at finished_at searched to_search runs running_runs events events_deleted approvals issue_records issues checksum searched_to`)
const ONE = 'environment_id = :env AND id = :id'

interface Searched {
  searchedTo: number
}

const toRow = withJson<ErasureRow & Searched>('field', 'requestedBy')

export async function findErasure(sql: Sql, environmentId: string, id: string) {
  const row = await sql.get<object>(`SELECT ${COLUMNS} FROM erasures WHERE ${ONE}`, { env: environmentId, id })
  return row && toRow(row)
}

export async function changeErasure(sql: Sql, { environmentId, id }: ErasureRow, set: string, values: NamedParams) {
  const text = `UPDATE erasures SET ${set} WHERE ${ONE} RETURNING ${COLUMNS}`
  const row = await sql.get<object>(text, { ...values, env: environmentId, id })
  if (row === null) throw new Error('A found erasure is missing')
  return toRow(row)
}

export async function listErasures(sql: Sql, environmentId: string, { limit, after }: PageById) {
  const older = after === null ? '' : 'AND id < :after'
  const text = `SELECT ${COLUMNS} FROM erasures WHERE environment_id = :env ${older} ORDER BY id DESC`
  return mapPage(await sql.page(text, { env: environmentId, after }, limit), toRow)
}
