/** Compares all rows of the configuration with their checksums. */
import { measureContent } from '../../policies/prompts.ts'
import type { StoreCheck } from '../../engine/store.ts'
import { TABLES } from '../../engine/tables.ts'
import { findConfiguration, isIntact, nameOfDamage } from '../policies/configurations.ts'
import type { Snapshot } from './damage.ts'
import { nameOf, rowSum, SUMMED_TABLES, withSum, type SummedTable } from './row-sums.ts'
import { selectList, type Sql, type SqlValue } from './sql.ts'

const CONFIGURATION_PER_PAGE = 200
const NAMED = 5

interface SettingsChecked {
  rows: number
  /** From before there were checksums. */
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
