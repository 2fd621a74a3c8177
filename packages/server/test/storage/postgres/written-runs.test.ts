/** A node uses its cached run only while the run's row is as this node wrote it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { countStatements, writtenRuns } from '../../../src/storage/postgres/run-rows.ts'
import { addEvent, newRun } from '../../../src/storage/sql/record/run-state.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import type { NewEvent } from '../../../src/storage/record/events.ts'
import { batchBytes, packBatch } from '../../../src/storage/record/packed-batch.ts'
import { eventually } from '../../setup/eventually.ts'
import { heapGrowth } from '../../setup/heap-growth.ts'
import { NO_TRIGGERS } from '../../setup/citus-skips.ts'
import { append, batch, event, llmCall, newId, NOON, runOf } from '../suite/sample.ts'
import { refusal, useTestDatabase } from './store-trouble.ts'

const { query, whileFailing, withStorage } = useTestDatabase()

/** Each event adds another power of two to the tokens of its run, so that the sum shows which events were counted. */
function counter(env: string, runId = 'run') {
  let next = 1
  return {
    sum: () => next - 1,
    call(traits: string | null = null) {
      const sent = llmCall({ totalTokens: next }, { runId, traits })
      next *= 2
      return sent
    },
    async assertCounted(storage: Storage) {
      const { totalTokens, eventCount } = await runOf(storage, env, runId)
      assert.deepEqual({ totalTokens, eventCount }, { totalTokens: next - 1, eventCount: Math.log2(next) })
    },
  }
}

describe('a run that a node wrote', () => {
  test('is read again once another node wrote it', async () => {
    await withStorage({}, (one) =>
      withStorage({}, async (other) => {
        const env = newId()
        const run = counter(env)
        for (const node of [one, one, other, one, other, other, one, one]) {
          assert.deepEqual(await append(node, env, run.call()), ['stored'])
        }
        await run.assertCounted(one)
      }),
    )
  })

  test('is read again after a transaction that did not commit', { skip: NO_TRIGGERS }, async () => {
    await withStorage({}, async (storage) => {
      const env = newId()
      const run = counter(env)
      for (let count = 0; count < 3; count++) await append(storage, env, run.call())
      const failing = run.call('a trait')
      await whileFailing('usage_hours', '53100', async () => {
        await assert.rejects(append(storage, env, failing), refusal('storage_full'))
      })
      assert.deepEqual(await append(storage, env, { ...failing, traits: null }), ['stored'])
      await run.assertCounted(storage)
      await append(storage, env, run.call(), event({ runId: 'beside' }))
      await run.assertCounted(storage)
    })
  })

  test('keeps what an act wrote between its events', async () => {
    await withStorage({}, async (storage) => {
      const env = newId()
      const run = counter(env)
      for (let count = 0; count < 3; count++) await append(storage, env, run.call())
      await query(`UPDATE tacho.runs SET cost_nanos = 7 WHERE environment_id = '${env}'`)
      await append(storage, env, run.call())
      await append(storage, env, run.call())
      await run.assertCounted(storage)
      assert.equal((await runOf(storage, env)).costNanos, 7)
    })
  })

  test('keeps its texts through writes that change numbers, texts or what it is listed by', async () => {
    await withStorage({}, async (storage) => {
      const env = newId()
      const run = counter(env)
      const traits = [null, 'a\n', null, 'b\n', null, null, 'c\n', null]
      for (const [index, trait] of traits.entries()) {
        // An earlier time moves the run in its lists.
        await append(storage, env, { ...run.call(trait), time: NOON + (index % 3 === 0 ? -index : 1) })
      }
      await run.assertCounted(storage)
      const { rows } = await query(`SELECT traits FROM tacho.runs WHERE environment_id = '${env}'`)
      assert.deepEqual(String(rows[0]?.['traits']).split('\n').filter(Boolean).toSorted(), ['a', 'b', 'c'])
    })
  })

  test('that was removed and sent again begins anew', async () => {
    await withStorage({}, async (storage) => {
      const env = newId()
      for (let count = 0; count < 3; count++) await append(storage, env, event())
      await query(`DELETE FROM tacho.events WHERE environment_id = '${env}'`)
      await query(`DELETE FROM tacho.runs WHERE environment_id = '${env}'`)
      const run = counter(env)
      for (let count = 0; count < 3; count++) assert.deepEqual(await append(storage, env, run.call()), ['stored'])
      await run.assertCounted(storage)
    })
  })

  test('that is removed while a node that does not know it waits for it begins anew', async () => {
    await withStorage({}, (one) =>
      withStorage({}, async (other) => {
        const env = newId()
        await append(one, env, event())
        // Lock the run and remove it, like retention.
        await query(`BEGIN; SELECT 1 FROM tacho.runs WHERE environment_id = '${env}' FOR UPDATE`)
        const run = counter(env)
        const sent = append(other, env, run.call())
        await eventually(async () => {
          // The first transaction that waits for a row holds a tuple lock.
          const ofTuples = `SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE locktype = 'tuple'`
          return (await query(`${ofTuples} AND d.datname = current_database()`)).rows.length > 0
        }, 'the append waits for the run')
        await query(`DELETE FROM tacho.events WHERE environment_id = '${env}'`)
        await query(`DELETE FROM tacho.runs WHERE environment_id = '${env}'; COMMIT`)
        assert.deepEqual(await sent, ['stored'])
        await run.assertCounted(other)
      }),
    )
  })

  test('keeps no memory of the batch that named its session', async () => {
    await withStorage({}, async (storage) => {
      const env = newId()
      const payload = JSON.stringify({ text: 'x'.repeat(500_000) })
      const sendPacked = (...events: NewEvent[]) => {
        const rows = batch(env, events)
        return storage.appendEvents(packBatch(rows, batchBytes(rows)))
      }
      const runIds = Array.from({ length: 41 }, (_, count) => `the run number ${count}`)
      for (const runId of runIds) await append(storage, env, event({ runId }))
      const name = (runId: string) => {
        const sessionId = `the session of ${runId}`
        return sendPacked(event({ runId, sessionId, payload }), event({ runId: `beside ${runId}`, sessionId }))
      }
      await name(runIds.pop()!)
      const grown = await heapGrowth(async () => {
        for (const runId of runIds) await name(runId)
      })
      assert.ok(grown < 5 * 1_048_576, `${grown} bytes for 80 runs`)
    })
  })

  test('has all of its events in any mix of nodes, retries and runs that are new', async () => {
    await withStorage({}, (one) =>
      withStorage({}, async (other) => {
        const env = newId()
        const runs = Array.from({ length: 4 }, (_, index) => counter(env, `run ${index}`))
        let before = runs.map((run) => run.call())
        for (let turn = 0; turn < 8; turn++) {
          const sent = runs.slice(0, 1 + (turn % 4)).map((run) => run.call())
          const again = turn === 0 ? [] : before
          await Promise.all([
            append(turn % 3 === 0 ? other : one, env, ...sent, ...again),
            append(one, env, ...(turn === 0 ? before : sent)),
          ])
          before = sent
        }
        for (const run of runs) await run.assertCounted(other)
      }),
    )
  })
})

test('remembered runs stay within the byte limit of their cache, with the texts that were written', async () => {
  const written = writtenRuns()
  const grown = await heapGrowth(async () => {
    for (let count = 0; count < 15_000; count++) {
      const [runId, long] = [`run ${count}`, `${'漢'.repeat(150)}${count}`]
      const run = newRun(newId(), count, runId, newId(), NOON)
      addEvent(run, 1, event({ runId, said: { question: long, answer: long } }))
      countStatements([run])
      written.keep(runId, run, '1')
    }
  })
  assert.ok(grown < 23 * 1_048_576, `${grown} bytes`)
  written.forget()
})
