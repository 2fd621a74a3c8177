/**
 * The limit of the embedded engine: one process writes the same events to its tables through better-sqlite3, with the
 * server's durability and checkpoints, and does nothing else.
 */
import type { NewEvent } from '@tacho/server/storage/record/events.ts'
import { writeCounts } from '@tacho/server/storage/sql/runs/usage-counts.ts'
import { rowWriter } from '@tacho/server/storage/sqlite/append.ts'
import { checkpointer } from '@tacho/server/storage/sqlite/checkpoint.ts'
import { openDatabase, sqliteSql } from '@tacho/server/storage/sqlite/database.ts'
import { migrate } from '@tacho/server/storage/sqlite/migrate.ts'
import type { Plot } from '../load/shapes.ts'
import { count, ENVIRONMENT, newChanges, rowMaker, type Lane } from './recording.ts'

/** Opens a lane that writes to a new store. */
export function openSqliteLane(file: string, plot: Plot): Lane {
  const db = openDatabase(file)
  migrate(db)
  const sql = sqliteSql(db)
  const checkpoint = checkpointer(db)
  const rowsOf = rowMaker(plot)
  const { insertEvent, writeRun } = rowWriter(db)
  const renameAgent = db.prepare(`INSERT INTO agents (environment_id, id, agent_key, external_id, name, name_time)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (environment_id, id) DO UPDATE SET name_time = excluded.name_time`)
  let requests = 0

  return {
    nextRows: () => rowsOf(requests++),
    async commit(rows) {
      db.exec('BEGIN IMMEDIATE')
      const changes = newChanges()
      const agents = new Map<string, NewEvent>()
      for (const row of rows) {
        count(changes, row, insertEvent(ENVIRONMENT, row) ?? 0)
        agents.set(row.run.agentId, row.event)
      }
      for (const run of changes.runs) writeRun(ENVIRONMENT, run)
      for (const [id, { agentId, agentName, time }] of agents) {
        renameAgent.run(ENVIRONMENT, id, `key of ${agentId}`, agentId, agentName, time)
      }
      await Promise.all(writeCounts(sql, ENVIRONMENT, changes.counts, changes.buckets, 0))
      db.exec('COMMIT')
      checkpoint.whenGrown()
    },
  }
}
