import type { ClientBase } from 'pg'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { positional, type NamedParams, type Sql } from '../sql/engine/sql.ts'

export function postgresSql(client: ClientBase, onDamage: Sql['onDamage'] = () => undefined): Sql {
  const query = (text: string, params: NamedParams) => {
    const [statement, values] = positional(text, params)
    return client.query<Record<string, unknown>>({ ...portableStatement(statement), values: [...values] })
  }
  return {
    dialect: 'postgres',
    onDamage,
    all: async <Row>(text: string, params: NamedParams = {}) => (await query(text, params)).rows as Row[],
    get: async <Row>(text: string, params: NamedParams = {}) =>
      ((await query(text, params)).rows[0] as Row | undefined) ?? null,
    page: async <Row extends object>(text: string, params: NamedParams, limit: number) => {
      const page = { ...params, mostRows: limit + 1, mostBytes: LIMITS.listBytes }
      const rows = (await query(pageText(text), page)).rows as PageRow[]
      const more = rows.length < (rows[0]?.pageRows ?? 0) || rows.length > limit
      return {
        rows: rows.slice(0, limit).map(({ pageRow: _, pageRows: __, pageBytes: ___, ...row }) => row as unknown as Row),
        more,
      }
    },
    run: async (text, params = {}) => (await query(text, params)).rowCount ?? 0,
  }
}

interface PageRow extends Record<string, unknown> {
  pageRow: number
  pageRows: number
  pageBytes: number
}

/** The database sums the sizes, so that it does not send rows that do not fit. */
function pageText(text: string): string {
  return `SELECT * FROM (
      SELECT found.*, ROW_NUMBER() OVER () AS "pageRow", COUNT(*) OVER () AS "pageRows",
        CAST(SUM(octet_length(CAST(found AS TEXT))) OVER (ROWS UNBOUNDED PRECEDING) AS BIGINT) AS "pageBytes"
      FROM (${text} LIMIT :mostRows) AS found) AS page
    WHERE "pageBytes" <= :mostBytes OR "pageRow" = 1 ORDER BY "pageRow"`
}

/** Statements are prepared once per connection, under a name from a counter. */

interface Statement {
  name: string
  text: string
}

/** Unbounded, because the program has a bounded number of texts. */
const portable = new Map<string, Statement>()
let count = 0

/** For a text that numbers its parameters itself: `$1`. Call this once per text. */
export function statement(text: string): Statement {
  return { name: `tacho_${++count}`, text }
}

function portableStatement(text: string): Statement {
  let known = portable.get(text)
  if (known === undefined) {
    let parameters = 0
    known = statement(text.replaceAll('?', () => `$${++parameters}`))
    portable.set(text, known)
  }
  return known
}
