import { read, write } from './act.ts'
import type { DeployableKind } from '@tacho/contract/operator/deployment.ts'
import type { AuditEntry } from '../audit.ts'
import type { ItemVersion } from '../deployments.ts'
import type { ExportedKey, ExportedRow, ImportStart, RowsImported } from '../exports.ts'
import { EXPORTED_TABLES, memberOf, type TableParts } from '../exported-tables.ts'
import { takeRoom } from '../scores.ts'
import type { Page } from '../page.ts'
import { agentKeyOf } from './approvals/approval-rows.ts'
import { nextRevision } from './approvals/approvals.ts'
import { insertAudit } from './audit.ts'
import { keepConfiguration, lockConfiguration } from './configuration/configurations.ts'
import { deploymentFault } from './configuration/publish.ts'
import { findEnvironment } from './environments.ts'
import { erasedKey, isErased, isKeyErased, keepRemovalsWaiting } from './erasure/erased-keys.ts'
import { insertRows } from './rows/insert-rows.ts'
import { columnsOfRow } from './rows/row-names.ts'
import { agentKey, clientRecordKey, serviceRecordKey, requestKey, textKey } from './keys.ts'
import { growRevision } from './revision.ts'
import { selectList, type Sql, type SqlValue } from './sql.ts'
import type { ExportedTable } from '../tables.ts'
import { holdRuns, sumHeldRuns, type HeldRun } from './scores.ts'
import { SUM_COLUMNS } from './usage/sums.ts'
import { enqueueWork } from './work.ts'

export const exportsActs = {
  ...read({ readExported }),
  ...write({ beginImport, importRows, importRun }),
}

/** Without those whose runs were all erased. */
const USED_AGENTS =
  'AND EXISTS (SELECT 1 FROM runs r WHERE r.environment_id = agents.environment_id AND r.agent_id = agents.id)'

/** Prompts and policies belong to the workspace. An export has those that its environment deploys or deployed. */
const EVER_DEPLOYED: ReadonlyMap<ExportedTable, { kind: DeployableKind; item: string }> = new Map([
  ['prompt', { kind: 'prompt', item: 'id' }],
  ['promptVersion', { kind: 'prompt', item: 'prompt_id' }],
  ['policy', { kind: 'policy', item: 'id' }],
  ['policyVersion', { kind: 'policy', item: 'policy_id' }],
])

async function readExported(
  sql: Sql,
  environmentId: string,
  table: ExportedTable,
  after: ExportedKey | null,
  limit: number,
): Promise<Page<ExportedRow>> {
  const parts = EXPORTED_TABLES[table]
  const key = parts.key.join(', ')
  const further = after === null ? '' : `AND (${key}) > (:after)`
  const used = table === 'agent' ? USED_AGENTS : ''
  const { kind, item } = EVER_DEPLOYED.get(table) ?? {}
  const deployed =
    kind && `AND ${item} IN (SELECT item_id FROM deployment_changes WHERE environment_id = :env AND kind = '${kind}')`
  const owner = await ownerOf(sql, environmentId, parts)
  const text = `SELECT ${selectList(parts.columns)} FROM ${parts.name}
    WHERE ${parts.of}_id = :owner ${used} ${deployed ?? ''} ${further} ORDER BY ${key}`
  return sql.page(text, { owner, ...(deployed && { env: environmentId }), after }, limit)
}

async function ownerOf(sql: Sql, environmentId: string, { of }: TableParts): Promise<string | null> {
  if (of === 'environment') return environmentId
  const text = 'SELECT workspace_id AS "workspaceId" FROM environments WHERE id = :env'
  return (await sql.get<{ workspaceId: string }>(text, { env: environmentId }))?.workspaceId ?? null
}

const LOGGED_FOR_MS = 3_600_000

/**
 * Every request of an import begins with this. An import begins in an empty environment; its later requests name the
 * same source. An audit entry is stored when it begins, and when another actor or a later hour continues it.
 */
async function beginImport(
  sql: Sql,
  { environmentId, source, resume, actorId, now }: ImportStart,
  audit: AuditEntry[],
): Promise<'begun' | 'not_empty' | 'other_source'> {
  if (!resume) {
    if (!(await isEnvironmentEmpty(sql, environmentId))) return 'not_empty'
    const begin = `INSERT INTO imports (environment_id, source, started_at, logged_at, logged_by)
      VALUES (:env, :source, :now, :now, :actorId)
      ON CONFLICT (environment_id) DO UPDATE SET source = excluded.source, started_at = excluded.started_at,
        logged_at = excluded.logged_at, logged_by = excluded.logged_by`
    await sql.run(begin, { env: environmentId, source, now, actorId })
    await insertAudit(sql, audit)
    return 'begun'
  }
  const find = 'SELECT environment_id FROM imports WHERE environment_id = :env AND source = :source'
  if ((await sql.get(find, { env: environmentId, source })) === null) return 'other_source'
  const log = `UPDATE imports SET logged_at = :now, logged_by = :actorId
    WHERE environment_id = :env AND (logged_by <> :actorId OR logged_at <= :before OR logged_at > :now)`
  const isDue = (await sql.run(log, { now, actorId, env: environmentId, before: now - LOGGED_FOR_MS })) > 0
  if (isDue) await insertAudit(sql, audit)
  return 'begun'
}

async function isEnvironmentEmpty(sql: Sql, environmentId: string): Promise<boolean> {
  for (const { name, of } of [...Object.values(EXPORTED_TABLES), { name: 'runs', of: 'environment' }]) {
    if (of !== 'environment') continue
    const text = `SELECT 1 AS found FROM ${name} WHERE environment_id = :env LIMIT 1`
    if ((await sql.get(text, { env: environmentId })) !== null) return false
  }
  return true
}

/**
 * Writes rows that are not there; an equal row stays. A different row, one that names a prompt of another workspace, or
 * an erased one ends the act; the rows before it stay. Deployments make a new configuration.
 */
async function importRows(
  sql: Sql,
  environmentId: string,
  table: ExportedTable,
  rows: ExportedRow[],
  now: number,
): Promise<RowsImported> {
  const environment = await findEnvironment(sql, environmentId)
  if (environment === null) throw new Error('The environment does not exist')
  const { workspaceId } = environment
  const added = await addedColumns(sql, environmentId, workspaceId, table, rows, now)
  if (table === 'deployment') {
    const refused = await deploymentFault(sql, workspaceId, environmentId, rows.map(deploymentOf))
    if (refused !== null) return refused
  }
  const runs = rows.map(({ run }) => String(run))
  // An export of some runs has the scores of all.
  const held = table === 'score' ? await holdRuns(sql, environmentId, runs) : null
  const { written, fault } = await insertNew(sql, environmentId, workspaceId, table, added, rows, held)
  if (held !== null) await sumHeldRuns(sql, environmentId, held)
  if (written > 0 && DEPLOYS.has(table)) {
    await keepConfiguration(sql, environmentId, await lastPublication(sql, environmentId))
    await growRevision(sql)
  }
  return fault ?? { outcome: 'imported', written }
}

const DEPLOYS: ReadonlySet<ExportedTable> = new Set(['deployment', 'deploymentChange'])

const deploymentOf = ({ kind, itemId, version }: ExportedRow): ItemVersion => {
  return { kind: kind as ItemVersion['kind'], id: String(itemId), version: Number(version) }
}

async function lastPublication(sql: Sql, environmentId: string): Promise<number> {
  const text = `SELECT MAX(publication) AS last FROM (
      SELECT publication FROM configurations WHERE environment_id = :env
      UNION ALL SELECT MAX(publication) FROM deployments WHERE environment_id = :env
      UNION ALL SELECT MAX(publication) FROM deployment_changes WHERE environment_id = :env) AS known`
  const row = await sql.get<{ last: number }>(text, { env: environmentId })
  return row?.last ?? 0
}

async function insertNew(
  sql: Sql,
  environmentId: string,
  workspaceId: string,
  table: ExportedTable,
  added: Record<string, SqlValue>,
  rows: ExportedRow[],
  runs: ReadonlyMap<string, HeldRun> | null,
): Promise<{ written: number; fault: RowsImported | null }> {
  const parts = EXPORTED_TABLES[table]
  let written = 0
  for (const [index, row] of rows.entries()) {
    const run = runs?.get(String(row['run']))
    if (runs !== null && run === undefined) continue
    const known = await findRow(sql, environmentId, parts, row)
    if (known === null) {
      if (!(await isOwn(sql, workspaceId, table, row))) return { written, fault: { outcome: 'foreign', index } }
      if (await wasErased(sql, environmentId, table, row)) return { written, fault: { outcome: 'erased', index } }
      if (run && !takeRoom(run.room, String(row['name']))) continue
      const stored = Object.fromEntries(parts.columns.map((column) => [column, row[memberOf(column)] ?? null]))
      const columns = { ...added, ...stored, ...computed(table, row) }
      await insertRows(sql, parts.name, [columns], 'ON CONFLICT DO NOTHING')
      run?.written.add(String(row['name']))
      written++
    }
    const stored = known ?? (await findRow(sql, environmentId, parts, row))
    // Null: another row has its name or one of its other keys.
    if (stored === null || !isSame(parts, stored, row)) return { written, fault: { outcome: 'differs', index } }
    if (known === null) await afterRow(sql, environmentId, table, row)
  }
  return { written, fault: null }
}

async function isOwn(
  sql: Sql,
  workspaceId: string,
  table: ExportedTable,
  { promptId, policyId, kind, itemId }: ExportedRow,
): Promise<boolean> {
  const isOfPrompt = table === 'promptVersion' || (DEPLOYS.has(table) && kind === 'prompt')
  const isOfPolicy = table === 'policyVersion' || (DEPLOYS.has(table) && kind === 'policy')
  if (!isOfPrompt && !isOfPolicy) return true
  const id = DEPLOYS.has(table) ? itemId : isOfPrompt ? promptId : policyId
  const text = `SELECT id FROM ${isOfPrompt ? 'prompts' : 'policies'} WHERE workspace_id = :workspaceId AND id = :id`
  return (await sql.get(text, { workspaceId, id: id ?? null })) !== null
}

async function wasErased(sql: Sql, environmentId: string, table: ExportedTable, row: ExportedRow): Promise<boolean> {
  if (table === 'issue') return isKeyErased(sql, environmentId, erasedKey('issue', String(row['id'])), 0)
  if (table === 'agent') {
    if (await isKeyErased(sql, environmentId, erasedKey('agentRow', String(row['id'])), 0)) return true
    const key = erasedKey('agent', String(computed(table, row)['agent_key']))
    return isKeyErased(sql, environmentId, key, Number(row['nameTime']))
  }
  if (table !== 'approval' && table !== 'issueRecord') return false
  const { request_key: request, record_key: record } = computed(table, row)
  const textOrNull = (member: string) => row[member]?.toString() ?? null
  const isApproval = table === 'approval'
  return isErased(sql, environmentId, erasedKey(isApproval ? 'approval' : 'record', String(request ?? record)), {
    runId: textOrNull('runId'),
    sessionId: textOrNull('sessionId'),
    agentId: textOrNull('agentId'),
    clientId: String(row[isApproval ? 'clientId' : 'sdkInstanceId']),
    time: Number(row[isApproval ? 'createdAt' : 'detectedAt']),
  })
}

const KEPT_FACTS = ['pinned_at', 'payloads_removed', 'rule_closed_at', 'recorders', 'has_gaps']
const CLOSED_FACTS = ['status', 'ended_at']
const LOST_FACTS = [
  ...CLOSED_FACTS,
  'error_count',
  'traits',
  'uncosted',
  'failure',
  'failure_message',
  'said',
  ...SUM_COLUMNS.map(([column]) => column),
]

/** Facts that an imported run does not get from its events: also its counts, if its payloads were removed. */
async function importRun(sql: Sql, environmentId: string, runId: string, facts: ExportedRow): Promise<void> {
  const closed = facts['ruleClosedAt'] === null ? [] : CLOSED_FACTS
  const columns = [...KEPT_FACTS, ...(facts['payloadsRemoved'] === 0 ? closed : LOST_FACTS)]
  const set = columns.map((column) => `${column} = :${memberOf(column)}`).join(', ')
  const text = `UPDATE runs SET ${set} WHERE environment_id = :env AND run_id = :runId`
  await sql.run(text, { ...membersOf(columns, facts), env: environmentId, runId })
}

/** The same for all rows. Locks what the rows share. */
async function addedColumns(
  sql: Sql,
  environmentId: string,
  workspaceId: string,
  table: ExportedTable,
  rows: readonly ExportedRow[],
  now: number,
): Promise<Record<string, SqlValue>> {
  const { name, of } = EXPORTED_TABLES[table]
  if (DEPLOYS.has(table)) await lockConfiguration(sql, environmentId)
  if (table === 'approval') {
    const deadlines = rows.filter(({ status }) => status === 'PENDING').map((row) => Number(row['expiresAt']))
    const deadline = deadlines.length === 0 ? null : Math.min(...deadlines)
    // Before the revision, in the order in which an erasure locks the two.
    await keepRemovalsWaiting(sql, environmentId)
    const revision = await nextRevision(sql, environmentId, deadline)
    return { environment_id: environmentId, revision, imported_at: now }
  }
  const owner = of === 'environment' ? { environment_id: environmentId } : { workspace_id: workspaceId }
  // A row that names its author is marked, because only the file says who made it.
  return columnsOfRow(name).includes('imported_at') ? { ...owner, imported_at: now } : owner
}

function computed(table: ExportedTable, row: ExportedRow): Record<string, SqlValue> {
  const text = (member: string) => String(row[member])
  const textOrNull = (member: string) => row[member]?.toString() ?? null
  const keyOrNull = (member: string) => (typeof row[member] === 'string' ? textKey(row[member]) : null)
  switch (table) {
    case 'agent':
      return { agent_key: agentKey(textOrNull('externalId'), text('name')) }
    case 'issueRecord':
      return {
        record_key:
          row['origin'] === 'SERVICE'
            ? serviceRecordKey(text('runId'), textOrNull('eventId'))
            : clientRecordKey(text('sdkInstanceId'), text('clientRecordId')),
      }
    case 'approval':
      return {
        request_key: requestKey(text('clientId'), text('clientRequestId')),
        tool_key: textKey(text('toolName')),
        agent_key: agentKeyOf({ agentId: textOrNull('agentId'), clientId: text('clientId') }),
        policy_key: keyOrNull('policyId'),
        run_key: keyOrNull('runId'),
      }
    default:
      return {}
  }
}

async function findRow(sql: Sql, environmentId: string, parts: TableParts, row: ExportedRow) {
  const key = parts.key.map((column) => `${column} = :${memberOf(column)}`).join(' AND ')
  const text = `SELECT ${selectList(parts.columns)} FROM ${parts.name} WHERE ${parts.of}_id = :owner AND ${key}`
  return sql.get<ExportedRow>(text, { ...membersOf(parts.key, row), owner: await ownerOf(sql, environmentId, parts) })
}

function membersOf(columns: readonly string[], row: ExportedRow): Record<string, SqlValue> {
  return Object.fromEntries(columns.map(memberOf).map((member) => [member, row[member] ?? null]))
}

function isSame({ columns }: TableParts, one: ExportedRow, other: ExportedRow): boolean {
  return columns.map(memberOf).every((member) => (one[member] ?? null) === (other[member] ?? null))
}

async function afterRow(sql: Sql, environmentId: string, table: ExportedTable, row: ExportedRow): Promise<void> {
  if (table !== 'issueRecord' || (row['status'] !== 'RECEIVED' && row['status'] !== 'EVALUATING')) return
  const work = { kind: 'review_issue_record', environmentId, subjectId: String(row['id']) } as const
  await enqueueWork(sql, [{ ...work, dueAt: Number(row['receivedAt']) }])
}
