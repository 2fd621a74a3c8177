/** Administration of a database server for tests: run statements, and find out what it is. */
import pg from 'pg'

/** Runs the statements in order on a new connection. Returns the rows of the last one. */
export async function administer<Row extends object = Record<string, unknown>>(
  url: string,
  ...statements: string[]
): Promise<Row[]> {
  const client = new pg.Client(url)
  await client.connect().catch((error: unknown) => {
    const { host } = new URL(url)
    const hint = 'start one, for example with `docker run -p 5432:5432 -e POSTGRES_PASSWORD=tacho postgres:18`'
    throw new Error(`The test PostgreSQL at ${host} does not answer; ${hint}.`, { cause: error })
  })
  try {
    let rows: Row[] = []
    for (const statement of statements) rows = (await client.query<Row>(statement)).rows
    return rows
  } finally {
    await client.end()
  }
}

export async function isCitus(url: string): Promise<boolean> {
  return (await administer(url, "SELECT 1 FROM pg_extension WHERE extname = 'citus'")).length > 0
}

export function withDatabase(given: string, name: string): string {
  const url = new URL(given)
  url.pathname = `/${name}`
  return url.href
}
