/** The write path's caches are limited, and their texts do not keep whole batches in memory. */
import assert from 'node:assert/strict'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { knownAgents, type KnownAgent } from '../../../src/storage/sql/runs/agents.ts'
import { batchAppender } from '../../../src/storage/sql/record/append.ts'
import type { NewEvent } from '../../../src/storage/record/events.ts'
import { sqliteAppendEngine } from '../../../src/storage/sqlite/append.ts'
import { openDatabase, sqliteSql } from '../../../src/storage/sqlite/database.ts'
import { packBatch, unpackBatch } from '../../../src/storage/record/packed-batch.ts'
import { heapGrowth } from '../../setup/heap-growth.ts'
import { batch, event, newId } from '../suite/sample.ts'
import { openStore, temporaryDirectory } from './temporary.ts'

const MIB = 1_048_576

/** Appends like the writer thread: the batch arrives as one text. */
async function appender(t: TestContext) {
  const directory = temporaryDirectory(t)
  const store = await openStore(t, { directory })
  await store.close()
  const db = openDatabase(path.join(directory, 'tacho.db'))
  t.after(() => db.close())
  const commit = batchAppender(sqliteAppendEngine(db, sqliteSql(db)))
  const environmentId = newId()
  return async (...events: NewEvent[]) => {
    const [committed] = await commit([unpackBatch(structuredClone(packBatch(batch(environmentId, events), 0)))])
    assert.ok(committed && 'verdicts' in committed)
  }
}

test('a cached run, agent or model keeps no memory of its batch', async (t) => {
  const append = await appender(t)
  const usage = { promptTokens: 1, completionTokens: 1, totalTokens: 2, costNanos: 1, uncosted: null }
  const payload = JSON.stringify({ text: 'x'.repeat(250_000) })
  const named = (count: number) =>
    event({
      runId: `the run number ${count}`,
      agentName: `the agent number ${count}`,
      usage: { model: `the model number ${count}`, ...usage },
      payload,
    })
  await append(named(0))
  const grown = await heapGrowth(async () => {
    for (let count = 1; count <= 100; count++) await append(named(count))
  })
  assert.ok(grown < 5 * MIB, `${grown} bytes for 100 runs`)
})

test('runs with the longest ids stay within the byte limit of their cache', async (t) => {
  const append = await appender(t)
  const long = '\u{10400}'.repeat(240)
  const grown = await heapGrowth(async () => {
    for (let count = 0; count < 25_000; count += 500) {
      await append(...Array.from({ length: 500 }, (_, at) => event({ runId: `${long}${count + at}` })))
    }
  })
  assert.ok(grown < 28 * MIB, `${grown} bytes`)
})

test('agents with the longest names stay within the byte limit of their cache', async () => {
  const agents = knownAgents(0)
  const long = '\u{10400}'.repeat(90)
  const known = (count: number): [string, KnownAgent] => [
    `${newId()} name ${long}${count}`,
    { id: newId(), name: `${long}${count}`, nameTime: count, seenTime: count },
  ]
  const grown = await heapGrowth(async () => {
    const loaded = new Map(Array.from({ length: 30_000 }, (_, count) => known(count)))
    agents.keep({ ofEvent: [], loaded })
  })
  assert.ok(grown < 10 * MIB, `${grown} bytes`)
  agents.forget()
})
