import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { DAY_MS } from '../../engine/times.ts'
import { readUncosted, type UncostedSum, TOKEN_PARTS, type PriceRow, type UncostedWindow } from '../../runs/usage.ts'
import { type SqlFragment, type Sql, countOf, read, write } from '../engine/sql.ts'
import { saturating, sum } from './rollup.ts'
import type { AuditEntry } from '../../people/operators.ts'
import { insertAudit } from '../people/audit.ts'
import { insertRows, replacing, withJson } from '../engine/rows.ts'
import { takeSum, withSum } from '../engine/row-sums.ts'
import { lockWorkspace } from '../tenants/workspaces.ts'
import { PART_COLUMNS } from './usage-counts.ts'
import { partParams, readPartHours, rowsInHours, type PartHours } from './part-hours.ts'

export interface UncostedSums {
  key: 'agent_id' | 'model_key' | null
  only?: string | undefined
  /** Inclusive. */
  from: number
  /** Exclusive. */
  to: number
  start: number
  stepMs: number
  part: PartHours
}

const PARTS = [sum('calls', 'calls'), ...TOKEN_PARTS.map((tokenPart) => sum(PART_COLUMNS[tokenPart], tokenPart))].join(
  ', ',
)

/** Prices depend on the time, so a step longer than a day is divided into days (UTC). */
export function readUncostedSums(sql: Sql, environmentId: string, { key, only, part, ...window }: UncostedSums) {
  const periodMs = Math.min(window.stepMs, DAY_MS)
  const keyed = key ?? "''"
  const one = only === undefined ? '' : ' AND agent_id = :only'
  const named = `SELECT *, CAST((hour - :start) / :stepMs AS BIGINT) AS step, hour - hour % :periodMs AS at
    FROM ${rowsInHours(sql, 'uncosted', part)}${one}`
  const sums = `SELECT step, ${keyed} AS key, model_key, context, at, ${PARTS} FROM (${named}) named
    GROUP BY step, ${key === null ? '' : `${keyed}, `}model_key, context, at HAVING SUM(calls) > 0`
  const text = `SELECT u.step, u.key, u.context, u.at, u.calls, COALESCE(m.model, '') AS model,
      ${TOKEN_PARTS.map((tokenPart) => `u."${tokenPart}"`).join(', ')}
    FROM (${sums}) u LEFT JOIN models m ON m.environment_id = :env AND m.model_key = u.model_key`
  const params = { env: environmentId, ...window, periodMs, only, ...partParams(sql, part, 'uncosted') }
  return sql.all<UncostedSum & { step: number; key: string }>(text, params)
}

/** `keyIs`: the keys are sessions or users, with all calls of their runs, or prompt versions, with the calls that name them. */
export async function readUncostedRuns(
  sql: Sql,
  runs: SqlFragment,
  { start, stepMs }: Pick<UncostedSums, 'start' | 'stepMs'>,
  keys: ReadonlySet<string>,
  keyIs: 'session' | 'user' | 'promptVersion',
): Promise<Map<string, UncostedSum[]>> {
  const text = `SELECT key, at, uncosted FROM (${runs.text}) named WHERE uncosted IS NOT NULL`
  const rows = await sql.all<{ key: string; at: number; uncosted: string }>(text, runs.params)
  const periodMs = Math.min(stepMs, DAY_MS)
  const sums = new Map<string, Map<string, UncostedSum>>()
  for (const { key, at, uncosted } of rows) {
    if (!keys.has(key)) continue
    const place = `${Math.floor((at - start) / stepMs)} ${key}`
    let ofPlace = sums.get(place)
    if (ofPlace === undefined) sums.set(place, (ofPlace = new Map()))
    const period = at - (at % periodMs)
    for (const { versionId, ...calls } of readUncosted(uncosted)) {
      if (keyIs === 'promptVersion' && versionId !== key) continue
      addCalls(ofPlace, { ...calls, at: period })
    }
  }
  return new Map(Array.from(sums, ([place, ofPlace]) => [place, [...ofPlace.values()]]))
}

/** Adds calls to the sum of their model, context length and period. */
export function addCalls(sums: Map<string, UncostedSum>, calls: UncostedSum): void {
  const sort = `${calls.at} ${calls.context} ${calls.model}`
  const same = sums.get(sort)
  if (same === undefined) sums.set(sort, { ...calls })
  else
    for (const tokenPart of ['calls', ...TOKEN_PARTS] as const)
      same[tokenPart] = saturating(same[tokenPart], calls[tokenPart])
}

export const pricesActs = {
  ...read({ listPrices, sumUncosted }),
  ...write({ setPrice, removePrice }),
}

const COLUMNS = `${withSum('prices')}, changed_at AS "changedAt"`

const parsed = withJson<PriceRow>('rates')

function toRow(sql: Sql, workspaceId: string, row: object): PriceRow {
  if (takeSum(sql, 'prices', row, workspaceId)) return parsed(row)
  return { ...parsed({ ...row, rates: '{"input":0,"output":0}' }), damaged: true }
}

async function listPrices(sql: Sql, workspaceId: string): Promise<PriceRow[]> {
  const text = `SELECT ${COLUMNS} FROM prices WHERE workspace_id = :workspaceId ORDER BY model LIMIT :limit`
  const rows = await sql.all<object>(text, { workspaceId, limit: LIMITS.prices })
  return rows.map((row) => toRow(sql, workspaceId, row))
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
  await insertAudit(sql, audit)
  return toRow(sql, workspaceId, row)
}

async function sumUncosted(sql: Sql, environmentId: string, { from, to, agentId }: UncostedWindow) {
  const whole = { from, to, stepMs: Math.max(to - from, 1) }
  const window = { ...whole, start: from, part: await readPartHours(sql, environmentId, whole) }
  return readUncostedSums(sql, environmentId, { key: null, only: agentId ?? undefined, ...window })
}
