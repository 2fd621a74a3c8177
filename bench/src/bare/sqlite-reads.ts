/** The limit of reading: the server's SQL through better-sqlite3, on the same file, without threads and HTTP. */
import { openDatabase } from '@tacho/server/storage/sqlite/database.ts'
import { sqliteSql } from '@tacho/server/storage/sqlite/sql.ts'
import { answer } from '../child.ts'
import type { WalkTimes } from '../load/read-load.ts'
import type { Times } from '../stats.ts'
import { readsOf, type BareReads, type BareWalk } from './reads.ts'

export type SqliteReads = { file: string } & (BareReads | BareWalk)

answer<SqliteReads, Times | WalkTimes>(async ({ file, ...task }) => {
  const db = openDatabase(file, { readonly: true })
  try {
    const environmentId = db.prepare<[], string>('SELECT environment_id FROM runs LIMIT 1').pluck().get() ?? ''
    const reads = readsOf(sqliteSql(db), environmentId)
    return 'walk' in task ? await reads.walk(task) : await reads.pages(task)
  } finally {
    db.close()
  }
})
