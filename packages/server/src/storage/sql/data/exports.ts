import { changesRuns, read, write, selectList, type Sql, type SqlValue } from '../engine/sql.ts'
import type { DeployableKind } from '@tacho/contract/policies/deployment.ts'
import type { AuditEntry } from '../../people/operators.ts'
import {
  DAMAGED_ROW,
  type ExportedKey,
  type ExportedRow,
  type ImportStart,
  type RowsImported,
  columnOf,
  EXPORTED_TABLES,
  memberOf,
  type TableParts,
} from '../../data/exports.ts'
import { takeRoom } from '../../runs/scores.ts'
import { mapPage, type Page } from '../../engine/page.ts'
import type { PromptVersionRow } from '../../policies/policies.ts'
import { agentKeyOf, nextRevision } from '../approvals/approval-rows.ts'
import { insertAudit } from '../people/audit.ts'
import { keepConfiguration, lockConfiguration } from '../policies/configurations.ts'
import { isPromptIntact } from '../policies/prompts.ts'
import { deploymentFault } from '../policies/publish.ts'
import type { Target as Deploying } from '../policies/deployments.ts'
import { findEnvironment } from '../tenants/workspaces.ts'
import { erasedKey, isErased, isKeyErased, keepRemovalsWaiting } from './erased-keys.ts'
import { insertRows, replacing, columnsOfRow } from '../engine/rows.ts'
import { isSummed, takeSum } from '../engine/row-sums.ts'
import { agentKey, clientRecordKey, serviceRecordKey, requestKey, textKey, withdrawnKey } from '../engine/keys.ts'
import { growRevision } from '../engine/revision.ts'
import type { ExportedTable } from '../../engine/tables.ts'
import { holdRuns, sumHeldRuns, type HeldRun } from '../runs/scores.ts'
import { USAGE_COLUMNS } from '../runs/rollup.ts'
import { enqueueWork } from '../engine/work.ts'

export const exportsActs = {
  ...read({ readExported }),
  ...write({ beginImport, importRows }),
  importRun: changesRuns(importRun, (_, _environmentId, runId) => [runId]),
}

const AGENTS_WITH_RUNS =
  'AND EXISTS (SELECT 1 FROM runs r WHERE r.environment_id = agents.environment_id AND r.agent_id = agents.id)'

/** Prompts and policies belong to the workspace. An export contains those that its environment ever deployed. */
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
  const used = table === 'agent' ? AGENTS_WITH_RUNS : ''
  const { kind, item } = EVER_DEPLOYED.get(table) ?? {}
  const deployed =
    kind && `AND ${item} IN (SELECT item_id FROM deployment_changes WHERE environment_id = :env AND kind = '${kind}')`
  const owner = await ownerOf(sql, environmentId, parts)
  const sum = isSummed(parts.name) ? ', row_sum AS "rowSum"' : ''
  const text = `SELECT ${selectList(parts.columns)}${sum} FROM ${parts.name}
    WHERE ${parts.of}_id = :owner ${used} ${deployed ?? ''} ${further} ORDER BY ${key}`
  const page = await sql.page<ExportedRow>(text, { owner, ...(deployed && { env: environmentId }), after }, limit)
  return mapPage(page, (row) => (isIntact(sql, parts, row, String(owner)) ? row : markDamaged(parts, row)))
}

/** Removes the checksum from the row. */
function isIntact(sql: Sql, { name }: TableParts, row: ExportedRow, tenantId: string): boolean {
  if (name === 'prompt_versions') return isPromptIntact(sql, row as unknown as PromptVersionRow, tenantId)
  return !isSummed(name) || takeSum(sql, name, row, tenantId)
}

/**
 * Keeps only the key and a mark: nobody may take the content for what its author wrote, and no import may give it a
 * checksum.
 */
function markDamaged({ key }: TableParts, row: ExportedRow): ExportedRow {
  const named = Object.entries(row).filter(([member]) => key.includes(columnOf(member)))
  return { ...Object.fromEntries(named), [DAMAGED_ROW]: 1 }
}

async function ownerOf(sql: Sql, environmentId: string, { of }: TableParts): Promise<string | null> {
  if (of === 'environment') return environmentId
  const text = 'SELECT workspace_id AS "workspaceId" FROM environments WHERE id = :env'
  return (await sql.get<{ workspaceId: string }>(text, { env: environmentId }))?.workspaceId ?? null
}

/** One audit entry covers what one actor imports in this time. */
const LOGGED_FOR_MS = 3_600_000

/** The first request of an import needs an empty environment. Its later requests name the same source. */
async function beginImport(
  sql: Sql,
  { environmentId, source, resume, actorId, now }: ImportStart,
  audit: AuditEntry[],
): Promise<'begun' | 'not_empty' | 'other_source'> {
  if (!resume) {
    if (!(await isEnvironmentEmpty(sql, environmentId))) return 'not_empty'
    const begun = { environmentId, source, startedAt: now, loggedAt: now, loggedBy: actorId }
    const replaced = `ON CONFLICT (environment_id) ${replacing(['source', 'started_at', 'logged_at', 'logged_by'])}`
    await insertRows(sql, 'imports', [begun], replaced)
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

/** `owner`: the id of the environment, or of its workspace. */
interface Target {
  environmentId: string
  workspaceId: string
  table: ExportedTable
  parts: TableParts
  owner: string
}

/**
 * Inserts missing rows; an equal row stays. A different row, a row that names a prompt of another workspace, or an
 * erased row stops the import there; the rows before it stay. Deployments create a new configuration.
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
  const parts = EXPORTED_TABLES[table]
  const owner = parts.of === 'environment' ? environmentId : workspaceId
  const target = { environmentId, workspaceId, table, parts, owner }
  const added = await addedMembers(sql, target, rows, now)
  if (table === 'deployment' || table === 'promptShare') {
    const targets = rows.map(table === 'deployment' ? deploymentOf : shareOf)
    const refused = await deploymentFault(sql, workspaceId, environmentId, targets)
    if (refused !== null) return refused
  }
  const runs = rows.map(({ run }) => String(run))
  // An export of some runs still contains the scores of all runs.
  const held = table === 'score' ? await holdRuns(sql, environmentId, runs) : null
  const { written, fault } = await insertNew(sql, target, added, rows, held)
  if (held !== null) await sumHeldRuns(sql, environmentId, held)
  if (written > 0 && DEPLOYS.has(table)) {
    await keepConfiguration(sql, environmentId, await lastPublication(sql, environmentId))
    await growRevision(sql)
  }
  return fault ?? { outcome: 'imported', written }
}

const DEPLOYS: ReadonlySet<ExportedTable> = new Set(['deployment', 'deploymentChange', 'promptShare'])

const deploymentOf = ({ kind, itemId, version }: ExportedRow): Deploying => {
  return { kind: kind as Deploying['kind'], id: String(itemId), version: Number(version) }
}

const shareOf = ({ promptId, version, percent }: ExportedRow): Deploying => {
  return { kind: 'prompt', id: String(promptId), version: Number(version), share: Number(percent) }
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
  target: Target,
  added: object,
  rows: ExportedRow[],
  runs: ReadonlyMap<string, HeldRun> | null,
): Promise<{ written: number; fault: RowsImported | null }> {
  const { table, parts } = target
  let written = 0
  for (const [index, row] of rows.entries()) {
    const run = runs?.get(String(row['run']))
    if (runs !== null && run === undefined) continue
    const known = await findRow(sql, target, row)
    if (known === null) {
      if (!(await isOwn(sql, target, row))) return { written, fault: { outcome: 'foreign', index } }
      if (await wasErased(sql, target, row)) return { written, fault: { outcome: 'erased', index } }
      if (run && !takeRoom(run.room, String(row['name']))) continue
      const stored = { ...added, ...membersOf(parts.columns, row), ...computed(table, row) }
      await insertRows(sql, parts.name, [stored], 'ON CONFLICT DO NOTHING')
      // Two key families may have asked with the same request id. The second request then needs a key with its family.
      if (table === 'approval' && (await findRow(sql, target, row)) === null) {
        const approvalRow = { ...stored, requestKey: requestKey(requestOf(row)) }
        await insertRows(sql, parts.name, [approvalRow], 'ON CONFLICT DO NOTHING')
      }
      run?.writtenNames.add(String(row['name']))
      written++
    }
    const stored = known ?? (await findRow(sql, target, row))
    // Null: another row already has its name or one of its other keys.
    if (stored === null || !isSame(parts, stored, row)) return { written, fault: { outcome: 'differs', index } }
    if (known === null) await afterRow(sql, target, row)
  }
  return { written, fault: null }
}

async function isOwn(sql: Sql, { workspaceId, table }: Target, row: ExportedRow): Promise<boolean> {
  const { promptId, policyId, kind, itemId } = row
  const isOfPrompt = table === 'promptVersion' || (DEPLOYS.has(table) && kind === 'prompt')
  const isOfPolicy = table === 'policyVersion' || (DEPLOYS.has(table) && kind === 'policy')
  if (!isOfPrompt && !isOfPolicy) return true
  const id = DEPLOYS.has(table) ? itemId : isOfPrompt ? promptId : policyId
  const text = `SELECT id FROM ${isOfPrompt ? 'prompts' : 'policies'} WHERE workspace_id = :workspaceId AND id = :id`
  return (await sql.get(text, { workspaceId, id: id ?? null })) !== null
}

async function wasErased(sql: Sql, { environmentId, table }: Target, row: ExportedRow): Promise<boolean> {
  if (table === 'issue') return isKeyErased(sql, environmentId, erasedKey('issue', String(row['id'])), 0)
  if (table === 'agent') {
    if (await isKeyErased(sql, environmentId, erasedKey('agentRow', String(row['id'])), 0)) return true
    const key = erasedKey('agent', String(computed(table, row)['agentKey']))
    return isKeyErased(sql, environmentId, key, Number(row['nameTime']))
  }
  if (table !== 'approval' && table !== 'issueRecord') return false
  const isApproval = table === 'approval'
  const key = isApproval ? requestKey(requestOf(row)) : String(computed(table, row)['recordKey'])
  return isErased(sql, environmentId, erasedKey(isApproval ? 'approval' : 'record', key), {
    runId: textIn(row, 'runId'),
    sessionId: textIn(row, 'sessionId'),
    agentId: textIn(row, 'agentId'),
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
  'user_id',
  'user_key',
  'uncosted',
  'failure',
  'failure_message',
  'said',
  ...USAGE_COLUMNS,
]

/** Sets what an imported run does not get from its events: also its counts, if its payloads were removed. */
async function importRun(sql: Sql, environmentId: string, runId: string, facts: ExportedRow): Promise<void> {
  const closed = facts['ruleClosedAt'] === null ? [] : CLOSED_FACTS
  const columns = [...KEPT_FACTS, ...(facts['payloadsRemoved'] === 0 ? closed : LOST_FACTS)]
  const set = columns.map((column) => `${column} = :${memberOf(column)}`).join(', ')
  const text = `UPDATE runs SET ${set} WHERE environment_id = :env AND run_id = :runId`
  const user = textIn(facts, 'userId')
  const members = membersOf(columns, { ...facts, userKey: user && textKey(user) })
  await sql.run(text, { ...members, env: environmentId, runId })
}

/** Members that all rows of the slice share. Locks what they share. */
async function addedMembers(
  sql: Sql,
  { environmentId, table, parts, owner }: Target,
  rows: ExportedRow[],
  now: number,
) {
  if (DEPLOYS.has(table)) await lockConfiguration(sql, environmentId)
  if (table === 'approval') {
    const deadlines = rows.filter(({ status }) => status === 'PENDING').map((row) => Number(row['expiresAt']))
    const deadline = deadlines.length === 0 ? null : Math.min(...deadlines)
    // Before the revision, because an erasure locks the two in this order.
    await keepRemovalsWaiting(sql, environmentId)
    const revision = await nextRevision(sql, environmentId, deadline)
    return { environmentId, revision, importedAt: now }
  }
  // Mark a row that names its author, because only the file states the author.
  const isMarked = columnsOfRow(parts.name).includes('imported_at')
  return { [`${parts.of}Id`]: owner, ...(isMarked && { importedAt: now }) }
}

const textIn = (row: ExportedRow, member: string): string | null => row[member]?.toString() ?? null

function requestOf(row: ExportedRow): Parameters<typeof requestKey>[0] {
  const [clientId, clientRequestId] = [String(row['clientId']), String(row['clientRequestId'])]
  return { clientId, clientRequestId, keyFamily: textIn(row, 'keyFamily') }
}

function computed(table: ExportedTable, row: ExportedRow): Record<string, SqlValue> {
  const text = (member: string) => String(row[member])
  const keyOrNull = (member: string) => (typeof row[member] === 'string' ? textKey(row[member]) : null)
  switch (table) {
    case 'agent':
      return { agentKey: agentKey(textIn(row, 'externalId'), text('name')) }
    case 'issueRecord':
      return {
        recordKey:
          row['origin'] === 'SERVICE'
            ? serviceRecordKey(text('runId'), textIn(row, 'eventId'))
            : clientRecordKey(text('sdkInstanceId'), text('clientRecordId')),
      }
    case 'approval': {
      const request = requestOf(row)
      return {
        // The request's family has no API key in this installation, so use a key that clients of any family find.
        requestKey: row['withdrawnAt']
          ? withdrawnKey(request, text('id'))
          : requestKey({ ...request, keyFamily: null }),
        toolKey: textKey(text('toolName')),
        agentKey: agentKeyOf({ agentId: textIn(row, 'agentId'), clientId: text('clientId') }),
        policyKey: keyOrNull('policyId'),
        runKey: keyOrNull('runId'),
      }
    }
    default:
      return {}
  }
}

async function findRow(sql: Sql, { parts, owner }: Target, row: ExportedRow): Promise<ExportedRow | null> {
  const key = parts.key.map((column) => `${column} = :${memberOf(column)}`).join(' AND ')
  const text = `SELECT ${selectList(parts.columns)} FROM ${parts.name} WHERE ${parts.of}_id = :owner AND ${key}`
  return sql.get<ExportedRow>(text, { ...membersOf(parts.key, row), owner })
}

function membersOf(columns: readonly string[], row: ExportedRow): Record<string, SqlValue> {
  return Object.fromEntries(columns.map(memberOf).map((member) => [member, row[member] ?? null]))
}

function isSame({ columns }: TableParts, one: ExportedRow, other: ExportedRow): boolean {
  return columns.map(memberOf).every((member) => (one[member] ?? null) === (other[member] ?? null))
}

async function afterRow(sql: Sql, { environmentId, table }: Target, row: ExportedRow): Promise<void> {
  if (table !== 'issueRecord' || (row['status'] !== 'RECEIVED' && row['status'] !== 'EVALUATING')) return
  const work = { kind: 'review_issue_record', environmentId, subjectId: String(row['id']) } as const
  await enqueueWork(sql, [{ ...work, dueAt: Number(row['receivedAt']) }])
}
