/** The rules that let Citus route every statement to one machine, checked on the statements the engine sends. */
import pg from 'pg'

interface Sent {
  text: string
  values: readonly unknown[]
}

/** Statements of one transaction. */
type Transaction = Sent[]

type Statement = { text: string; values?: unknown[] } | { text: string; environmentId: string }

function statementOf(sent: Statement): { text: string; values?: unknown[] | undefined } {
  return 'environmentId' in sent ? { text: sent.text, values: [sent.environmentId] } : sent
}

/**
 * Records the statements that clients of this process send from now on. Like Citus, an INSERT … SELECT without RETURNING
 * then counts all rows that it selected, also those that it did not insert.
 */
export function recordTransactions(): Transaction[] {
  const transactions: Transaction[] = []
  const open = new WeakMap<object, Transaction>()
  const send = pg.Client.prototype.query as (this: pg.Client, ...args: unknown[]) => unknown
  const recorded = function (this: pg.Client, ...args: unknown[]): unknown {
    const [first, second] = args as [string | Statement, unknown[]?]
    const { text, values = [] } = typeof first === 'string' ? { text: first, values: second } : statementOf(first)
    if (text.startsWith('BEGIN')) {
      const begun: Transaction = []
      open.set(this, begun)
      transactions.push(begun)
    } else if (/^(COMMIT|ROLLBACK)/.test(text)) open.delete(this)
    else {
      const running = open.get(this)
      if (running) running.push({ text, values })
      else transactions.push([{ text, values }])
    }
    const sent = send.apply(this, args)
    return sent instanceof Promise && SELECTED_ROWS.test(text)
      ? sent.then((result) => countSelected(result, values))
      : sent
  }
  pg.Client.prototype.query = recorded as typeof pg.Client.prototype.query
  return transactions
}

/**
 * Makes each failed COPY of this process fail as on Citus: with an internal error and the message of the machine that has
 * the shard. The returned function undoes this.
 */
export function failCopiesAsOnCitus(): () => void {
  const send = pg.Client.prototype.query as (this: pg.Client, ...args: unknown[]) => unknown
  const sent = function (this: pg.Client, ...args: unknown[]): unknown {
    const [first] = args as [
      string | { text?: string; handleError?: (error: pg.DatabaseError, ...rest: unknown[]) => void },
    ]
    if (typeof first === 'object' && first.text?.startsWith('COPY')) {
      const handleError = first.handleError?.bind(first)
      first.handleError = (error, ...rest) => handleError?.(citusError(error), ...rest)
    }
    return send.apply(this, args)
  }
  pg.Client.prototype.query = sent as typeof pg.Client.prototype.query
  return () => {
    pg.Client.prototype.query = send as typeof pg.Client.prototype.query
  }
}

function citusError(error: pg.DatabaseError): pg.DatabaseError {
  if (error.constraint === undefined) return error
  const message = error.message.replace(error.constraint, `${error.constraint}_102008`)
  return Object.assign(error, { message, code: 'XX000', constraint: undefined })
}

const SELECTED_ROWS = /^\s*INSERT\b(?!.*\bRETURNING\b).*\bSELECT \$1,.*FROM jsonb_array_elements\(\$2::jsonb\)/s

function countSelected(result: pg.QueryResult, [, rows]: readonly unknown[]): pg.QueryResult {
  return { ...result, rowCount: (JSON.parse(String(rows)) as unknown[]).length }
}

/** The tables a statement inserts into, and those it reads, updates or deletes from. */
function tablesOf(text: string, tables: readonly string[]) {
  const named = (before: string) =>
    [...text.matchAll(new RegExp(`\\b(?:${before})\\s+(?:tacho\\.)?(\\w+)`, 'gi'))]
      .map(([, name]) => name ?? '')
      .filter((name) => tables.includes(name))
  return { into: named('INTO|COPY'), from: named('FROM|JOIN|UPDATE') }
}

/** Statements of metrics, which may cross tenants: they count a bounded number of rows, and show none. */
const OF_METRICS =
  /^SELECT COUNT\(\*\) AS [^;]*\(SELECT \* FROM (?:stops|approval_grants) WHERE \w+ IS NULL(?: AND expires_at > \$1)? LIMIT \d+\) AS counted(?: WHERE uses [^()]*)?$/

/** The rule that a statement breaks, or null. `tables` are the data tables. */
export function faultOf({ text }: Sent, tables: readonly string[]): string | null {
  // Statements that create the tables do not count.
  if (!/^\s*(WITH|SELECT|INSERT|COPY|UPDATE|DELETE)\b/.test(text) || OF_METRICS.test(text)) return null
  const { into, from } = tablesOf(text, tables)
  if (into.length > 0 && insertedTenant(text) === null) return `inserts into ${into.join(', ')} without an environment`
  const bound = [...text.matchAll(/\benvironment_id\s*=\s*(?:\$\d+|\w+\.environment_id\b)/g)].length
  if (bound < from.length) return `names ${from.join(', ')} without the environment of each`
  const through = [...text.matchAll(/=\s*(\w+)\.environment_id\b/g)].find(([, alias]) =>
    new RegExp(`GROUP BY[^()]*\\)\\s+(?:AS\\s+)?${alias}\\b`, 'i').test(text),
  )
  if (through) return `takes an environment from the grouped subquery ${through[1]}, which Citus cannot see through`
  return null
}

/** A migration moves the rows of all tenants. */
export function isMigration(transaction: Transaction): boolean {
  return transaction.some(({ text }) => /\b(CREATE|ALTER)\s+TABLE\b/.test(text))
}

/** Control tables whose rows belong to one workspace or environment. */
const TENANTS_TABLES = [
  'run_views',
  'webhooks',
  'webhook_deliveries',
  'simulations',
  'deployments',
  'deployment_changes',
  'configurations',
  'prompts',
  'prompt_versions',
  'policies',
  'policy_versions',
]

/** Statements of `tacho doctor`, which may cross tenants: they compare checksums, and show no row (checksum-checks.ts). */
const OF_DOCTOR = /^SELECT [^;]* AS "key0"|^SELECT environment_id AS "environmentId" FROM configurations ORDER BY/

/** The rule that a statement on those tables breaks, or null. */
export function tenantFaultOf({ text }: Sent): string | null {
  if (!/^\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b/.test(text) || OF_DOCTOR.test(text)) return null
  const { from } = tablesOf(text, TENANTS_TABLES)
  const isBound = /\b(environment_id|workspace_id)\s*=\s*\$\d+/.test(text)
  return from.length === 0 || isBound ? null : `names ${from.join(', ')} without workspace or environment`
}

/** Whether a hot statement reads what it inserts from another table. */
export function insertsFromTable({ text }: Sent, tables: readonly string[]): boolean {
  const { into, from } = tablesOf(text, tables)
  return into.length > 0 && from.length > 0
}

/** The environments whose data a transaction touches. */
export function tenantsOf(transaction: Transaction, tables: readonly string[]): Set<unknown> {
  const tenants = new Set<unknown>()
  for (const { text, values } of transaction) {
    const { into, from } = tablesOf(text, tables)
    if (into.length + from.length === 0) continue
    const places = [...text.matchAll(/\benvironment_id\s*=\s*\$(\d+)/g)].map(([, place]) => Number(place))
    const inserted = into.length > 0 ? insertedTenant(text) : null
    if (inserted !== null) places.push(inserted)
    for (const place of places) tenants.add(values[place - 1])
  }
  return tenants
}

/**
 * The parameter that gives the environment of all rows of an INSERT; null if there is not one for all. In copied rows
 * the environment comes first.
 */
function insertedTenant(text: string): number | null {
  if (/^COPY \w+ \(environment_id,/.test(text)) return 1
  const [, columns = '', values = ''] = /\(([\w\s,]+)\)\s*(?:VALUES\s*\(|SELECT\s)([^]*)/i.exec(text) ?? []
  const place = columns.split(',').findIndex((column) => column.trim() === 'environment_id')
  const [, parameter] = /^\s*\$(\d+)\b/.exec(place < 0 ? '' : (values.split(',')[place] ?? '')) ?? []
  return parameter === undefined ? null : Number(parameter)
}
