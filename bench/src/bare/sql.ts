/** The server's SQL on a store, through the driver alone: without threads, transactions, a pool or HTTP. */
import { postgresSql } from '@tacho/server/storage/postgres/sql.ts'
import type { Sql } from '@tacho/server/storage/sql/engine/sql.ts'
import { openDatabase, sqliteSql } from '@tacho/server/storage/sqlite/database.ts'
import { connect } from './postgres.ts'

/** The place of a store. */
export type Location = { file: string } | { url: string }

/** Opens a store to read from it. */
export async function withSql<Result>(at: Location, work: (sql: Sql) => Promise<Result>): Promise<Result> {
  if ('file' in at) {
    const db = openDatabase(at.file, { readonly: true })
    try {
      return await work(sqliteSql(db))
    } finally {
      db.close()
    }
  }
  const client = await connect(at.url)
  try {
    return await work(postgresSql(client))
  } finally {
    await client.end()
  }
}
