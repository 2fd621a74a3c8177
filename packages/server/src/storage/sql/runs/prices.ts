import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { AuditEntry } from '../../people/audit.ts'
import type { PriceRow, UncostedWindow } from '../../runs/prices.ts'
import type { UncostedSum } from '../../runs/uncosted.ts'
import { read, write } from '../engine/act.ts'
import { insertAudit } from '../people/audit.ts'
import { insertRows, replacing, withJson } from '../engine/insert-rows.ts'
import { assertSum, takeSum, withSum } from '../engine/row-sums.ts'
import { countOf, type Sql } from '../engine/sql.ts'
import { readUncostedSums } from './uncosted-sums.ts'
import { lockWorkspace } from '../tenants/workspaces.ts'

export const pricesActs = {
  ...read({ listPrices, sumUncosted }),
  ...write({ setPrice, removePrice }),
}

const COLUMNS = `${withSum('prices')}, changed_at AS "changedAt"`

const toRow = withJson<PriceRow>('rates')

async function listPrices(sql: Sql, workspaceId: string): Promise<PriceRow[]> {
  const text = `SELECT ${COLUMNS} FROM prices WHERE workspace_id = :workspaceId ORDER BY model LIMIT :limit`
  const rows = await sql.all<object>(text, { workspaceId, limit: LIMITS.prices })
  for (const row of rows) assertSum(sql, 'prices', row, workspaceId, 'Set the price again, or remove it')
  return rows.map(toRow)
}

async function setPrice(
  sql: Sql,
  workspaceId: string,
  { model, rates, changedAt }: PriceRow,
  audit: AuditEntry[],
): Promise<'set' | 'too_many'> {
  await lockWorkspace(sql, workspaceId)
  const others = 'SELECT COUNT(*) AS count FROM prices WHERE workspace_id = :workspaceId AND model <> :model'
  if ((await countOf(sql, others, { workspaceId, model })) >= LIMITS.prices) return 'too_many'
  const replaced = `ON CONFLICT (workspace_id, model) ${replacing(['rates', 'changed_at', 'row_sum'])}`
  await insertRows(sql, 'prices', [{ workspaceId, model, rates, changedAt }], replaced)
  await insertAudit(sql, audit)
  return 'set'
}

async function removePrice(sql: Sql, workspaceId: string, model: string, audit: AuditEntry[]) {
  const text = `DELETE FROM prices WHERE workspace_id = :workspaceId AND model = :model RETURNING ${COLUMNS}`
  const row = await sql.get<object>(text, { workspaceId, model })
  if (row === null) return null
  takeSum(sql, 'prices', row, workspaceId)
  await insertAudit(sql, audit)
  return toRow(row)
}

function sumUncosted(sql: Sql, environmentId: string, { from, to, agentId }: UncostedWindow): Promise<UncostedSum[]> {
  const window = { from, to, start: from, stepMs: to - from }
  return readUncostedSums(sql, environmentId, { key: null, only: agentId ?? undefined, ...window })
}
