/**
 * Checksums of stored configuration and of what gives access, as for payloads: CRC-32 of a row's key and contents. Rows
 * stored before checksums existed have none, and count as intact until they are written again.
 */
import { crc32 } from 'node:zlib'
import { memberOf } from '../../data/exports.ts'
import { StorageError } from '../../engine/store.ts'
import { selectList, type Sql, type SqlValue } from './sql.ts'

const SUMMED = {
  policy_versions: 'policy_id number name description condition severity action on_error approvers grants template',
  prompt_versions: 'prompt_id number id content_hash',
  deployments: 'kind item_id version',
  prompt_shares: 'prompt_id version percent salt',
  retention_settings: 'environment_id run_days payload_days issue_days approval_days audit_days keep_open_issue_runs',
  stalled_rules: 'environment_id idle_minutes close_as',
  prices: 'model rates',
  alerts: 'id rule',
  webhooks: 'id url format events shows_input',
  // Omits the times of ends and rotations, because nodes of an earlier version may change them while both versions run.
  api_keys: 'id environment_id hash family scopes allowed_addresses',
  operator_tokens: 'id hash workspace_id role allowed_addresses',
  operator_roles: 'scope operator_id role from_groups hand_role',
} as const

/**
 * Columns that were added after their table's checksum. They count only when set, so that older checksums stay valid.
 */
const LATER = new Set(['allowed_addresses', 'approvers', 'grants', 'template'])

export type SummedTable = keyof typeof SUMMED

export const SUMMED_TABLES = Object.keys(SUMMED) as SummedTable[]

export const isSummed = (table: string): table is SummedTable => Object.hasOwn(SUMMED, table)

/** Names every column that a checksum covers, and the checksum. */
export const withSum = (table: SummedTable, prefix = ''): string => selectList(`${SUMMED[table]} row_sum`, prefix)

/** `row`: with the stored values. */
export function rowSum(table: SummedTable, row: object): number {
  const values = SUMMED[table].split(' ').flatMap((column) => {
    const value = (row as Record<string, SqlValue>)[memberOf(column)] ?? null
    return value === null && LATER.has(column) ? [] : [value]
  })
  return crc32(JSON.stringify([table, ...values])) | 0
}

/** Removes the checksum from the row. False: it is damaged, which is logged and counted. */
export function takeSum(sql: Sql, table: SummedTable, row: object, tenantId: string): boolean {
  const read = row as { rowSum?: number | null }
  const { rowSum: sum = null } = read
  delete read.rowSum
  if (sum === null || rowSum(table, row) === sum) return true
  sql.onDamage({ table, name: nameOf(table, row), tenantId })
  return false
}

/** Throws if a row is damaged that readers cannot do without. */
export function assertSum(sql: Sql, table: SummedTable, row: object, tenantId: string, remedy: string): void {
  if (!takeSum(sql, table, row, tenantId)) throw damagedError(nameOf(table, row), remedy)
}

/** The message is for operators and clients, so it names the damaged row but never its content. */
export function damagedError(name: string, remedy: string): StorageError {
  return new StorageError('configuration_damaged', `The stored ${name} is damaged. ${remedy}`)
}

export const DELETE_IT = 'Delete it and create it again, or restore a backup'

const NAMES: Record<SummedTable, (row: Record<string, string>) => string> = {
  policy_versions: ({ policyId, number }) => `version ${number} of policy ${JSON.stringify(policyId)}`,
  prompt_versions: ({ promptId, number }) => `version ${number} of prompt ${promptId}`,
  deployments: ({ kind, itemId }) => `deployment of ${kind} ${JSON.stringify(itemId)}`,
  prompt_shares: ({ promptId }) => `share of prompt ${promptId}`,
  retention_settings: () => 'retention setting',
  stalled_rules: () => 'stalled rule',
  prices: ({ model }) => `price of ${JSON.stringify(model)}`,
  alerts: ({ id }) => `rule of alert ${id}`,
  webhooks: ({ id }) => `webhook ${id}`,
  api_keys: ({ id }) => `API key ${id}`,
  operator_tokens: ({ id }) => `operator token ${id}`,
  operator_roles: ({ operatorId }) => `role of the person ${operatorId}`,
}

export const nameOf = (table: SummedTable, row: object): string => NAMES[table](row as Record<string, string>)
