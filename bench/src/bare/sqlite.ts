/**
 * The limit of the embedded engine: one process that writes the same events into its tables through better-sqlite3,
 * with the server's durability, checkpoints and events per commit, and does nothing else.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { NewEvent } from '@tacho/server/storage/events.ts'
import type { PlacedEvent } from '@tacho/server/storage/sql/append/event-columns.ts'
import { writeCounts } from '@tacho/server/storage/sql/usage/counts.ts'
import { rowWriter } from '@tacho/server/storage/sqlite/append.ts'
import { checkpointer } from '@tacho/server/storage/sqlite/checkpoint.ts'
import { openDatabase } from '@tacho/server/storage/sqlite/database.ts'
import { migrate } from '@tacho/server/storage/sqlite/migrate.ts'
import { sqliteSql } from '@tacho/server/storage/sqlite/sql.ts'
import { answer } from '../child.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import type { Plot } from '../load/shapes.ts'
import { timesOf, type Times } from '../stats.ts'
import { count, ENVIRONMENT, newChanges, rowMaker, type Recorded } from './rows.ts'

export interface BareWrites {
  file: string
  plot: Plot
  seconds: number
  eventsPerCommit: number
  /** As many commits a second; as many as it takes where none is given. */
  perSecond?: number
}

export interface BareWritten extends Recorded {
  /** Of whole commits. */
  times: Times
}

const stores = new Map<string, ReturnType<typeof openStore>>()

answer<BareWrites, BareWritten>(async ({ file, plot, seconds, eventsPerCommit, perSecond }) => {
  const store = stores.get(file) ?? openStore(file, plot)
  stores.set(file, store)
  const took: number[] = []
  const begun = performance.now()
  let [events, busyMs, cpuUs] = [0, 0, 0]
  // Making the rows is not the driver's work, so that time is not counted.
  for (let commits = 1; (perSecond === undefined ? busyMs : performance.now() - begun) < seconds * 1000; commits++) {
    const rows: PlacedEvent[] = []
    // Whole requests, so that the mean is as asked for.
    while (events + rows.length + BATCH_EVENTS / 2 < commits * eventsPerCommit) rows.push(...store.nextRows())
    if (perSecond !== undefined) await sleep(Math.max(0, begun + (commits * 1000) / perSecond - performance.now()))
    const [from, cpuFrom] = [performance.now(), process.cpuUsage()]
    await store.commit(rows)
    const ms = performance.now() - from
    const { user, system } = process.cpuUsage(cpuFrom)
    cpuUs += user + system
    took.push(ms)
    busyMs += ms
    events += rows.length
  }
  return { eventsPerSecond: (events * 1000) / busyMs, cpuUsPerEvent: cpuUs / events, times: timesOf(took) }
})

function openStore(file: string, plot: Plot) {
  const db = openDatabase(file)
  migrate(db)
  const sql = sqliteSql(db)
  const checkpoint = checkpointer(db)
  const rowsOf = rowMaker(plot)
  const { insertEvent, writeRun } = rowWriter(db)
  const renameAgent = db.prepare(`INSERT INTO agents (environment_id, id, agent_key, external_id, name, name_time)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (environment_id, id) DO UPDATE SET name_time = excluded.name_time`)
  let requests = 0

  async function write(rows: readonly PlacedEvent[]): Promise<void> {
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
  }

  return {
    nextRows: () => rowsOf(requests++),
    async commit(rows: readonly PlacedEvent[]): Promise<void> {
      db.exec('BEGIN IMMEDIATE')
      await write(rows)
      db.exec('COMMIT')
      checkpoint.whenGrown()
    },
  }
}
