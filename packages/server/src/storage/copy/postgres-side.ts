import pg from 'pg'
import { checkApplied, COPYING } from '../sql/engine/migrations.ts'
import { parseAddress, clientConfig, inTransaction, SCHEMA } from '../postgres/connections.ts'
import { appliedMigrations, knownMigrations, prepareStore, unusable } from '../postgres/migrate.ts'
import { aliveNodes } from '../postgres/nodes.ts'
import { postgresSql } from '../postgres/sql.ts'
import { StoreRefused } from '../engine/store.ts'
import { valueText, readsOf, writesOf, type Row, type SeqSpan, type Side, type Source, type Target } from './side.ts'

const WAIT_MS = 10_000
/** `TACI` in ASCII. Prevents two copies into one store, which would mix their rows. */
const LOCK = 0x54414349
const UNHURRIED = { connectMs: 10_000, statementMs: 0, lockMs: 0, idleInTransactionMs: 0 }
const BYTES_PER_STATEMENT = 8 * 1_048_576

export async function openPostgresSource(url: string, whileRunning: boolean): Promise<Source> {
  const { client, shown } = await connect(url)
  try {
    const applied = await appliedMigrations(client)
    checkApplied(applied, knownMigrations())
    if (applied.length === 0) throw new StoreRefused(`There is no store in ${shown}.`)
    if (applied.length < knownMigrations().length) {
      throw new StoreRefused(`The store in ${shown} has an older version. Run tacho migrate on it first.`)
    }
    const source: Source = {
      ...sideOf(client, shown),
      async checkUnused() {
        if (whileRunning) return
        // Queried outside the snapshot, which would not show nodes that start later.
        const alive = await once(url, aliveNodes)
        if (alive === 0) return
        throw new StoreRefused(
          `${alive} processes of Tacho serve from ${shown}. Stop them, because the copy would miss what they store.`,
        )
      },
    }
    await source.checkUnused()
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    return source
  } catch (error) {
    await client.end()
    throw error
  }
}

export async function openPostgresTarget(url: string): Promise<Target> {
  const isBegun = await once(url, async (client) => (await appliedMigrations(client)).at(-1)?.name === COPYING)
  if (!isBegun) await prepareStore(parseAddress(url), WAIT_MS)
  const { client, shown } = await connect(url)
  try {
    const { rows } = await client.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [LOCK])
    if (!rows[0]?.taken) throw new StoreRefused(`Another copy into ${shown} is already running.`)
    const alive = await aliveNodes(client)
    if (alive > 0) throw new StoreRefused(`${alive} processes of Tacho serve from ${shown}. Stop them first.`)
    // Off is safe: a database crash loses the last rows together with the state that counts them.
    await client.query('SET synchronous_commit = off')
    const side = sideOf(client, shown)
    return { ...side, ...targetOf(client, side) }
  } catch (error) {
    await client.end()
    throw error
  }
}

async function connect(url: string): Promise<{ client: pg.Client; shown: string }> {
  const { config, shown } = parseAddress(url)
  const client = new pg.Client(clientConfig({ ...config, application_name: 'tacho copy' }, UNHURRIED))
  // The running statement reports the error.
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query(
      `SET search_path = ${SCHEMA}; SET enable_seqscan = off; SET jit = off; SET plan_cache_mode = force_custom_plan`,
    )
  } catch (error) {
    throw unusable(shown, error)
  }
  return { client, shown: `the database ${shown}` }
}

async function once<Result>(url: string, ask: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const { client } = await connect(url)
  try {
    return await ask(client)
  } finally {
    await client.end()
  }
}

function sideOf(client: pg.Client, shown: string): Omit<Source, 'checkUnused'> {
  const types = new Map<string, Map<string, string>>()
  async function columns(table: string): Promise<Map<string, string>> {
    let known = types.get(table)
    if (known === undefined) {
      const { rows } = await client.query<{ name: string; type: string }>(COLUMNS, [`${SCHEMA}.${table}`])
      types.set(table, (known = new Map(rows.map(({ name, type }) => [name, type]))))
    }
    return known
  }
  return {
    engine: 'postgres',
    place: shown,
    columns,
    ...readsOf(postgresSql(client)),
    async seqSpans(runs) {
      const spans = new Map<number, SeqSpan>()
      // One query per environment, like the index and, on Citus, the machine of its rows.
      for (const [environment, ids] of Map.groupBy(runs.keys(), (run) => runs.get(run))) {
        const { rows } = await client.query<SeqSpan & { run: number }>(SEQ_SPANS, [environment, ids])
        for (const { run, min, max } of rows) spans.set(run, { min, max })
      }
      return spans
    },
    close: () => client.end(),
  }
}

const SEQ_SPANS = `SELECT run, min(seq) AS min, max(seq) AS max FROM events
  WHERE environment_id = $1 AND run = ANY($2::bigint[]) GROUP BY run`

/** Continues after the numbers of the copied rows, which another store assigned. */
const TAKE_NUMBERS = `SELECT setval('numbers', GREATEST((SELECT COALESCE(max(number), 0) FROM runs),
  (SELECT COALESCE(max(number), 0) FROM removed_runs), (SELECT COALESCE(max(number), 0) FROM envelopes)) + 1, false)`

const COLUMNS = `SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
  WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`

function targetOf(
  client: pg.Client,
  { columns: columnsOf }: Side,
): Pick<Target, 'state' | 'begin' | 'write' | 'finish'> {
  async function insert(table: string, columns: readonly string[], rows: readonly Row[]): Promise<void> {
    const typeOf = await columnsOf(table)
    const field = (column: string, place: number) =>
      typeOf.get(column) === 'bytea' ? `decode(x->>${place}, 'base64')` : `(x->>${place})::${typeOf.get(column)}`
    const fields = columns.map(field).join(', ')
    const text = `INSERT INTO ${table} (${columns.join(', ')}) SELECT ${fields} FROM jsonb_array_elements($1::jsonb) AS x`
    for (const some of chunks(rows, columns)) await client.query(text, [`[${some.join(',')}]`])
  }
  const writes = writesOf(postgresSql(client), columnsOf, (work) => inTransaction(client, work), insert)
  return {
    ...writes,
    async finish(last) {
      await client.query('SET synchronous_commit = on')
      await client.query(TAKE_NUMBERS)
      await writes.finish(last)
      await client.query('ANALYZE')
    },
  }
}

function* chunks(rows: readonly Row[], columns: readonly string[]): Generator<string[]> {
  let some: string[] = []
  let bytes = 0
  for (const row of rows) {
    // Sends numbers as texts, because the database would parse them as numerics.
    const values = columns.map((column) => valueText(row[column]))
    const text = JSON.stringify(values)
    if (some.length > 0 && bytes + text.length > BYTES_PER_STATEMENT) {
      yield some
      some = []
      bytes = 0
    }
    some.push(text)
    bytes += text.length
  }
  if (some.length > 0) yield some
}
