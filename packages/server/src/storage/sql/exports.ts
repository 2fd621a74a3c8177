import { look, write, type Acts } from './act.ts'
import type { EventsRead, StoredEvent } from '../events.ts'
import {
  EXPORTED_AFTER_RUNS,
  EXPORTED_BEFORE_RUNS,
  type ArrivedPage,
  type ExportedKey,
  type ExportedRow,
  type ExportedTable,
  type ExportStore,
  type RowsRestored,
} from '../exports.ts'
import { EXPORTED_TABLES, memberOf, type TableParts } from '../exported-tables.ts'
import type { Page } from '../page.ts'
import { agentKeyOf } from './approvals/approval-rows.ts'
import { nextRevision } from './approvals/approvals.ts'
import { lockConfiguration } from './configuration/configurations.ts'
import { findEnvironment } from './environments.ts'
import { erasedKey, isErased, isKeyErased, keepRemovalsWaiting } from './erasure/erased-keys.ts'
import { arrivedEvents } from './events.ts'
import { insertRows } from './rows/insert-rows.ts'
import { agentKey, requestKey, textKey } from './keys.ts'
import { growRevision } from './revision.ts'
import type { Sql, SqlValue } from './sql.ts'
import { SUM_COLUMNS } from './usage/sums.ts'
import { enqueueWork } from './work.ts'

export const exportsActs = {
  readExported: look(readExported),
  readArrived: look(readArrived),
  isEnvironmentEmpty: look(isEnvironmentEmpty),
  restoreRows: write(restoreRows),
  restoreRun: write(restoreRun),
} satisfies Partial<Acts<ExportStore>>

const OWNERS = {
  environment: 'environment_id = ?',
  workspace: 'workspace_id = (SELECT workspace_id FROM environments WHERE id = ?)',
  prompts: `prompt_id IN (SELECT id FROM prompts
    WHERE workspace_id = (SELECT workspace_id FROM environments WHERE id = ?))`,
} as const

/** Without those whose runs were all erased. */
const USED_AGENTS =
  'AND EXISTS (SELECT 1 FROM runs r WHERE r.environment_id = agents.environment_id AND r.agent_id = agents.id)'

const columnsOf = ({ columns }: TableParts): string =>
  columns.map((column) => `${column} AS "${memberOf(column)}"`).join(', ')

function readExported(
  sql: Sql,
  environmentId: string,
  table: ExportedTable,
  after: ExportedKey | null,
  limit: number,
): Promise<Page<ExportedRow>> {
  const parts = EXPORTED_TABLES[table]
  const key = parts.key.join(', ')
  const further = after === null ? '' : `AND (${key}) > (${parts.key.map(() => '?').join(', ')})`
  const used = table === 'agent' ? USED_AGENTS : ''
  const text = `SELECT ${columnsOf(parts)} FROM ${parts.name} WHERE ${OWNERS[parts.of]} ${used} ${further} ORDER BY ${key}`
  return sql.page(text, [environmentId, ...(after ?? [])], limit)
}

function readArrived(
  sql: Sql,
  environmentId: string,
  run: string,
  page: ArrivedPage,
): Promise<EventsRead<StoredEvent>> {
  return arrivedEvents(sql, environmentId, run, page)
}

async function isEnvironmentEmpty(sql: Sql, environmentId: string): Promise<boolean> {
  const tables = [...EXPORTED_BEFORE_RUNS, ...EXPORTED_AFTER_RUNS].map((table) => EXPORTED_TABLES[table])
  for (const { name, of } of [...tables, { name: 'runs', of: 'environment' }]) {
    if (of !== 'environment') continue
    // The first publication locks a row without content.
    const published = name === 'configurations' ? 'AND publication > 0' : ''
    const text = `SELECT 1 AS found FROM ${name} WHERE environment_id = ? ${published} LIMIT 1`
    if ((await sql.get(text, [environmentId])) !== null) return false
  }
  return true
}

async function restoreRows(
  sql: Sql,
  environmentId: string,
  table: ExportedTable,
  rows: ExportedRow[],
): Promise<RowsRestored> {
  const parts = EXPORTED_TABLES[table]
  const environment = await findEnvironment(sql, environmentId)
  if (environment === null) throw new Error('The environment does not exist')
  const added = await addedColumns(sql, environmentId, environment.workspaceId, table, rows)
  let written = 0
  for (const [index, row] of rows.entries()) {
    const known = await findRow(sql, environmentId, parts, row)
    if (known === null) {
      if (!(await isOwnPrompt(sql, environment.workspaceId, table, row))) return { outcome: 'foreign', index }
      if (await wasErased(sql, environmentId, table, row)) return { outcome: 'erased', index }
      const stored = Object.fromEntries(parts.columns.map((column) => [column, row[memberOf(column)] ?? null]))
      await insertRows(
        sql,
        parts.name,
        [{ ...added, ...stored, ...computed(table, row) }],
        table === 'configuration' ? REPLACE_UNPUBLISHED : 'ON CONFLICT DO NOTHING',
      )
      written++
    }
    const stored = known ?? (await findRow(sql, environmentId, parts, row))
    // Null: another row has its name or one of its other keys.
    if (stored === null || !isSame(parts, stored, row)) return { outcome: 'differs', index }
    if (known === null) await afterRow(sql, environmentId, table, row)
  }
  if (written > 0 && (table === 'deployment' || table === 'configuration')) await growRevision(sql)
  return { outcome: 'restored', written }
}

/** Whether the prompt that the row belongs to, or deploys, is one of the workspace. */
async function isOwnPrompt(
  sql: Sql,
  workspaceId: string,
  table: ExportedTable,
  { promptId, kind, itemId }: ExportedRow,
): Promise<boolean> {
  const deploys = (table === 'deployment' || table === 'deploymentChange') && kind === 'prompt'
  const id = table === 'promptVersion' ? promptId : deploys ? itemId : undefined
  if (id === undefined) return true
  return (await sql.get('SELECT id FROM prompts WHERE workspace_id = ? AND id = ?', [workspaceId, id])) !== null
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

const KEPT_FACTS = ['pinned_at', 'payloads_removed', 'rule_closed_at']
/** Restored too if the stalled rule closed the run. */
const CLOSED_FACTS = ['status', 'ended_at']
const LOST_FACTS = [...CLOSED_FACTS, 'error_count', 'traits', 'uncosted', ...SUM_COLUMNS.map(([column]) => column)]

async function restoreRun(sql: Sql, environmentId: string, runId: string, facts: ExportedRow): Promise<void> {
  const closed = facts['ruleClosedAt'] === null ? [] : CLOSED_FACTS
  const columns = [...KEPT_FACTS, ...(facts['payloadsRemoved'] === 0 ? closed : LOST_FACTS)]
  const text = `UPDATE runs SET ${columns.map((column) => `${column} = ?`).join(', ')} WHERE environment_id = ? AND run_id = ?`
  await sql.run(text, [...columns.map((column) => facts[memberOf(column)] ?? null), environmentId, runId])
}

const REPLACE_UNPUBLISHED = `ON CONFLICT (environment_id) DO UPDATE SET publication = excluded.publication,
  revision = excluded.revision, body = excluded.body WHERE configurations.publication = 0`

/** Columns that no export has, with the same value for all rows. Locks what the rows share. */
async function addedColumns(
  sql: Sql,
  environmentId: string,
  workspaceId: string,
  table: ExportedTable,
  rows: readonly ExportedRow[],
): Promise<Record<string, SqlValue>> {
  const { of } = EXPORTED_TABLES[table]
  if (table === 'configuration') await lockConfiguration(sql, environmentId)
  if (table === 'approval') {
    const deadlines = rows.filter(({ status }) => status === 'PENDING').map((row) => Number(row['expiresAt']))
    const deadline = deadlines.length === 0 ? null : Math.min(...deadlines)
    // Before the revision, in the order in which an erasure locks the two.
    if (sql.dialect === 'postgres') await sql.get(keepRemovalsWaiting('?'), [environmentId])
    return { environment_id: environmentId, revision: await nextRevision(sql, environmentId, deadline) }
  }
  return of === 'environment'
    ? { environment_id: environmentId }
    : of === 'workspace'
      ? { workspace_id: workspaceId }
      : {}
}

/** Columns that no export has, because they follow from the others. */
function computed(table: ExportedTable, row: ExportedRow): Record<string, SqlValue> {
  const text = (member: string) => String(row[member])
  const textOrNull = (member: string) => row[member]?.toString() ?? null
  const keyOrNull = (member: string) => (typeof row[member] === 'string' ? textKey(row[member]) : null)
  switch (table) {
    case 'agent':
      return { agent_key: agentKey(textOrNull('externalId'), text('name')) }
    case 'issueRecord':
      return { record_key: textKey(`${text('sdkInstanceId')}\0${text('clientRecordId')}`) }
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

function findRow(sql: Sql, environmentId: string, parts: TableParts, row: ExportedRow): Promise<ExportedRow | null> {
  const key = parts.key.map((column) => `${column} = ?`).join(' AND ')
  const text = `SELECT ${columnsOf(parts)} FROM ${parts.name} WHERE ${OWNERS[parts.of]} AND ${key}`
  return sql.get(text, [environmentId, ...parts.key.map((column) => row[memberOf(column)] ?? null)])
}

function isSame({ columns }: TableParts, one: ExportedRow, other: ExportedRow): boolean {
  return columns.map(memberOf).every((member) => (one[member] ?? null) === (other[member] ?? null))
}

/** A record that awaits its review is reviewed here. */
async function afterRow(sql: Sql, environmentId: string, table: ExportedTable, row: ExportedRow): Promise<void> {
  if (table !== 'issueRecord' || (row['status'] !== 'RECEIVED' && row['status'] !== 'EVALUATING')) return
  const work = { kind: 'review_issue_record', environmentId, subjectId: String(row['id']) } as const
  await enqueueWork(sql, [{ ...work, dueAt: Number(row['receivedAt']) }])
}
