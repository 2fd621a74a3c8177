/**
 * Compares stored payloads and rows of the configuration with their checksums, for `tacho doctor`. Reports name what is
 * damaged, without its content. An export marks damaged rows itself (sql/data/exports.ts).
 */
import type { StoreCheck } from '../../engine/store.ts'
import { PAYLOAD, withPayloads } from '../record/payloads.ts'
import { type DamagedPayload, type DamagedRow, type Sql, selectList, type SqlValue, eventEnvironment } from './sql.ts'
import { measureContent } from '../../policies/policies.ts'
import { TABLES } from '../../engine/tables.ts'
import { findConfiguration, isIntact, nameOfDamage } from '../policies/configurations.ts'
import { nameOf, rowSum, SUMMED_TABLES, withSum, type SummedTable } from './row-sums.ts'

export function damageText(damagedThing: DamagedPayload | DamagedRow): [what: string, error: Error] {
  if ('table' in damagedThing)
    return ['a stored setting is damaged', new Error(`The ${damagedThing.name} of ${damagedThing.tenantId}`)]
  const { environmentId, eventId, seq } = damagedThing
  const name = eventId === null ? `with seq ${seq}` : JSON.stringify(eventId)
  return ['a stored payload is damaged', new Error(`Event ${name} of environment ${environmentId}`)]
}

export type Snapshot = <Result>(work: (sql: Sql) => Promise<Result>) => Promise<Result>

/** Place where a check continues; null: at the beginning. */
type PayloadPlace = { environmentId: string; run: number; eventId: string } | null

export interface PayloadsChecked {
  payloads: number
  damaged: number
  first: (DamagedPayload & { runId: string | null }) | null
  /** Null: all payloads are checked. */
  next: PayloadPlace
}

export const NO_PAYLOADS: PayloadsChecked = { payloads: 0, damaged: 0, first: null, next: null }

const PAYLOADS_PER_PAGE = 100

/** Continues from `done` for about `budgetMs`. */
export async function checkPayloads(snapshot: Snapshot, done = NO_PAYLOADS, budgetMs = Infinity) {
  const until = performance.now() + budgetMs
  const checked = { ...done, next: null as PayloadPlace }
  const from = done.next
  const after = from === null ? '' : 'WHERE id >= :from'
  const text = `SELECT id FROM environments ${after} ORDER BY id`
  const environments = await snapshot((sql) => sql.all<{ id: string }>(text, { from: from?.environmentId }))
  for (const { id } of environments) {
    let place = from?.environmentId === id ? from : { environmentId: id, run: 0, eventId: '' }
    for (;;) {
      const rows: CheckedRow[] = await snapshot((sql) => readPage(sql, place))
      for (const { run, eventId, payloadDamaged } of rows) {
        checked.payloads++
        if (!payloadDamaged) continue
        checked.damaged++
        const runId = checked.first === null ? await snapshot((sql) => runIdOf(sql, id, run)) : null
        checked.first ??= { environmentId: id, eventId, seq: null, runId }
      }
      if (rows.length < PAYLOADS_PER_PAGE) break
      const { run, eventId } = rows.at(-1)!
      place = { environmentId: id, run, eventId }
      if (performance.now() > until) return { ...checked, next: place }
    }
  }
  return checked
}

async function runIdOf(sql: Sql, env: string, run: number): Promise<string | null> {
  const text = 'SELECT run_id AS "runId" FROM runs WHERE environment_id = :env AND number = :run'
  return (await sql.get<{ runId: string }>(text, { env, run }))?.runId ?? null
}

interface CheckedRow {
  run: number
  eventId: string
  payload: string
  payloadDamaged?: true
}

async function readPage(sql: Sql, { environmentId, ...after }: NonNullable<PayloadPlace>): Promise<CheckedRow[]> {
  const text = `SELECT e.run, e.event_id AS "eventId", ${PAYLOAD} FROM events e
    WHERE e.environment_id = ${eventEnvironment(sql)} AND (e.run, e.event_id) > (:run, :eventId)
    ORDER BY e.run, e.event_id LIMIT ${PAYLOADS_PER_PAGE}`
  return withPayloads(sql, environmentId, await sql.all<CheckedRow>(text, { env: environmentId, ...after }))
}

export function payloadsCheck({ payloads, damaged, first, next }: PayloadsChecked): StoreCheck {
  const all = payloads.toLocaleString('en')
  const more = next === null ? '' : ` so far. The store is large: each \`tacho doctor\` checks the next ones`
  const detail =
    first === null
      ? `${next === null ? `All ${all}` : `The first ${all}`} payloads match their checksums${more}`
      : `${damaged.toLocaleString('en')} of ${all} payloads are damaged, the first of event ${JSON.stringify(first.eventId)} in run ${JSON.stringify(first.runId)} of environment ${first.environmentId}. A backup may still have them${more && `. That is${more}`}`
  return { name: 'payloads', ok: first === null, detail }
}

/** Compares all rows of the configuration with their checksums. */

const CONFIGURATION_PER_PAGE = 200
const NAMED = 5

interface SettingsChecked {
  rows: number
  /** Rows stored before checksums were introduced. */
  unsummed: number
  damaged: string[]
}

export async function checkSettings(snapshot: Snapshot): Promise<StoreCheck> {
  const checked: SettingsChecked = { rows: 0, unsummed: 0, damaged: [] }
  for (const table of SUMMED_TABLES) await checkTable(snapshot, table, checked)
  await checkConfigurations(snapshot, checked)
  const { rows, unsummed, damaged } = checked
  const before = unsummed === 0 ? '' : `; ${unsummed.toLocaleString('en')} from before have none until they change`
  const all = `All ${rows.toLocaleString('en')} policies, prompts, settings, keys and roles match their checksums${before}`
  const named =
    damaged.slice(0, NAMED).join('; ') + (damaged.length > NAMED ? `; and ${damaged.length - NAMED} more` : '')
  const detail = damaged.length === 0 ? all : `Damaged: ${named}. Set, deploy or create them again, or restore a backup`
  return { name: 'configuration', ok: damaged.length === 0, detail }
}

async function checkTable(snapshot: Snapshot, table: SummedTable, checked: SettingsChecked): Promise<void> {
  const key: readonly string[] = TABLES.find(({ name }) => name === table)?.key ?? []
  const content = table === 'prompt_versions' ? ', content' : ''
  const places = key.map((column, at) => `${column} AS "key${at}"`).join(', ')
  for (let after: SqlValue[] | undefined; ;) {
    const text = `SELECT ${withSum(table)}, ${places}${content} FROM ${table}
      ${after === undefined ? '' : `WHERE (${key.join(', ')}) > (:after)`} ORDER BY ${key.join(', ')} LIMIT :limit`
    const rows = await snapshot((sql) =>
      sql.all<Record<string, SqlValue>>(text, { after, limit: CONFIGURATION_PER_PAGE }),
    )
    for (const row of rows) checkRow(table, row, checked)
    const last = rows.at(-1)
    if (last === undefined || rows.length < CONFIGURATION_PER_PAGE) return
    after = key.map((_, at) => last[`key${at}`] ?? null)
  }
}

function checkRow(table: SummedTable, row: Record<string, SqlValue>, checked: SettingsChecked): void {
  const { rowSum: sum = null, content = null, contentHash, key0 } = row
  checked.rows++
  if (sum === null) checked.unsummed++
  const isSame = sum === null || sum === rowSum(table, row)
  const isWhole = content === null || measureContent(String(content)).contentHash === contentHash
  if (!isSame || !isWhole) checked.damaged.push(`${nameOf(table, row)} (${String(key0)})`)
}

async function checkConfigurations(snapshot: Snapshot, checked: SettingsChecked): Promise<void> {
  const text = `SELECT ${selectList('environment_id')} FROM configurations ORDER BY environment_id`
  const environments = await snapshot((sql) => sql.all<{ environmentId: string }>(text))
  for (const { environmentId } of environments) {
    checked.rows++
    const name = await snapshot((sql) => damageOf(sql, environmentId))
    if (name !== null) checked.damaged.push(`${name} (${environmentId})`)
  }
}

async function damageOf(sql: Sql, environmentId: string): Promise<string | null> {
  const stored = await findConfiguration(sql, environmentId)
  return stored === null || isIntact(stored) ? null : nameOfDamage(sql, environmentId, stored.text)
}
