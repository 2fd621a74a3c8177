/** How nodes behave while the database is in trouble. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, test } from 'node:test'
import { advanceErasure } from '../../../src/domain/data/erasure.ts'
import type { RejectionRow } from '../../../src/storage/record/events.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { StorageError } from '../../../src/storage/engine/store.ts'
import { NO_TRIGGERS } from '../../setup/citus-skips.ts'
import { eventually } from '../../setup/eventually.ts'
import { newErasure } from '../suite/data/erasure-sample.ts'
import { append, batch, event, llmCall, newId, NOON, runOf, timelineOf } from '../suite/sample.ts'
import { refusal, retried, useTestDatabase } from './store-trouble.ts'

const OPERATIONS = path.join(import.meta.dirname, '../../../../../docs/operations.md')
const { query, whileFailing, whileLocked, withStorage } = useTestDatabase()

describe('a database in trouble', () => {
  for (const timeouts of [{ statementMs: 200 }, { lockMs: 200 }]) {
    test(`that takes longer than ${Object.keys(timeouts).join()} fails the act, not the node`, async () => {
      await withStorage({ timeouts }, async (storage) => {
        const env = newId()
        const sent = event()
        await whileLocked('events', async () => {
          await assert.rejects(append(storage, env, sent), refusal('storage_unavailable'))
        })
        await whileLocked('runs', async () => {
          await assert.rejects(storage.findRun(env, 'run'), refusal('storage_unavailable'))
        })
        assert.equal(await storage.findRun(env, 'run'), null)
        assert.deepEqual(await append(storage, env, sent), ['stored'])
      })
    })
  }

  test('that closes connections, used and idle ones, is reconnected to', async () => {
    await withStorage({ poolSize: 4 }, async (storage) => {
      const env = newId()
      await Promise.all(Array.from({ length: 8 }, () => storage.findRun(env, 'run')))
      await endConnections()
      // A connection that was just opening ends too. The node then pauses before it opens another.
      assert.equal(await retried(() => storage.findRun(env, 'run')), null)
      const writing = Promise.allSettled(
        Array.from({ length: 200 }, (_, n) => append(storage, env, event({ runId: `run ${n % 5}` }))),
      )
      await endConnections()
      const answers = await writing
      const failed = answers.filter(({ status }) => status === 'rejected')
      assert.ok(failed.every((answer) => answer.status === 'rejected' && answer.reason instanceof StorageError))
      assert.deepEqual(await retried(() => append(storage, env, event())), ['stored'])
      await retried(() => storage.ping())
      assert.equal(storage.writesRefused(), null)
    })
  })

  test('that is slow to store an event keeps its erasure waiting, which then takes the event too', async () => {
    const timeouts = { statementMs: 60_000, lockMs: 60_000, idleInTransactionMs: 60_000 }
    await withStorage({ timeouts }, async (storage) => {
      const env = newId()
      // After the first append, the environment is cached, and later appends read its state without waiting.
      await append(storage, env, event({ runId: 'other' }))
      const rejections: RejectionRow[] = [{ runId: 'run', eventId: 'refused', code: 'too_long', rejectedAt: NOON }]
      const settled: string[] = []
      const work: Promise<unknown>[] = []
      await whileLocked('rejections', async () => {
        const appending = storage.appendEvents(batch(env, [event({ sessionId: 's' })], { rejections }))
        work.push(appending.then(() => settled.push('append')))
        await eventually(() => isWaiting("locktype = 'relation'"), 'the append to wait for the table')
        const erasing = storage.createErasure(newErasure(env, { kind: 'session', subject: 's' }), [])
        work.push(erasing.then(() => settled.push('erasure')))
        await eventually(async () => settled.length > 0 || (await isWaiting("locktype = 'advisory'")), 'the erasure')
        assert.deepEqual(settled, [])
      })
      await Promise.all(work)
      assert.deepEqual(settled.toSorted(), ['append', 'erasure'])
      const [erasure] = (await storage.listErasures(env, { limit: 1, after: null })).rows
      await advanceErasure(storage, { environmentId: env, id: erasure!.id, now: () => NOON, isOver: () => false })
      assert.equal(await storage.findRun(env, 'run'), null)
      assert.deepEqual(await append(storage, env, event({ runId: 'again', sessionId: 's' })), ['erased'])
    })
  })

  test('that is slow to store an erasure keeps events waiting, which are then refused', async () => {
    const timeouts = { statementMs: 60_000, lockMs: 60_000, idleInTransactionMs: 60_000 }
    await withStorage({ timeouts }, async (storage) => {
      const env = newId()
      await append(storage, env, event({ runId: 'other' }))
      const work: Promise<unknown>[] = []
      await whileLocked('erasures', async () => {
        work.push(storage.createErasure(newErasure(env, { kind: 'session', subject: 's' }), []))
        await eventually(() => isWaiting("locktype = 'relation'"), 'the erasure to wait for the table')
        const answered: unknown[] = []
        const appending = append(storage, env, event({ sessionId: 's' }))
        void appending.then((verdicts) => answered.push(...verdicts))
        work.push(appending)
        await eventually(async () => answered.length > 0 || (await isWaiting("locktype = 'advisory'")), 'the append')
        assert.deepEqual(answered, [])
      })
      const [, verdicts] = await Promise.all(work)
      assert.deepEqual(verdicts, ['erased'])
      assert.equal(await storage.findRun(env, 'run'), null)
    })
  })

  test('is not blamed for a bug: the bug keeps its error, and the node continues', async () => {
    await withStorage({}, async (storage) => {
      // A value that the driver cannot send makes it throw a plain Error, like a broken invariant in our code.
      const actorId = { toPostgres: () => actorId } as unknown as string
      const releasing = storage.releaseIdempotencyKey({ actorKind: 'token', actorId, key: '' }, NOON)
      await assert.rejects(releasing, (error: unknown) => !(error instanceof StorageError) && error instanceof Error)
      await whileFailing('webhooks', 'internal_error', async () => {
        const [workspaceId, environmentId] = [newId(), newId()]
        await storage.createWorkspace({ id: workspaceId, name: workspaceId, createdAt: NOON }, [])
        await storage.createEnvironment({ id: environmentId, workspaceId, name: 'one', createdAt: NOON }, [])
        const none = { previousSecret: null, previousUntil: null, signingSecret: null, showsInput: false }
        const nothing = { ...none, disabledAt: null, disabledReason: null }
        const said = {
          url: 'https://example.com',
          description: '',
          format: 'standard' as const,
          events: [],
          secret: '',
        }
        const webhook = { id: newId(), environmentId, ...said, ...nothing, createdAt: NOON, droppedDeliveries: 0 }
        await assert.rejects(storage.createWebhook(webhook, []), (error: unknown) => !(error instanceof StorageError))
      })
      assert.equal(storage.writesRefused(), null)
      assert.deepEqual(await append(storage, newId(), event()), ['stored'])
    })
  })

  for (const table of ['runs', 'events', 'models', 'usage_hours', 'rejections', 'agents']) {
    test(
      `that fails while ${table} are written stores nothing of the batch, and all of it on retry`,
      { skip: NO_TRIGGERS },
      async () => {
        await withStorage({}, async (storage) => {
          const env = newId()
          const sent = batch(env, [llmCall({ model: newId() })], {
            rejections: [{ runId: 'run', eventId: 'refused', code: 'empty', rejectedAt: NOON }],
          })
          await whileFailing(table, 'io_error', async () => {
            await assert.rejects(storage.appendEvents(sent), refusal('storage_unavailable'))
          })
          assert.equal(await storage.findRun(env, 'run'), null)
          assert.equal(await storage.findRejection(env, 'run', 'refused'), null)
          assert.deepEqual(await storage.appendEvents(sent), ['stored'])
          assert.equal((await storage.readUsage(env, 0, 2 * NOON, { limit: 9, after: null })).rows[0]?.events, 1)
        })
      },
    )
  }

  test('that fails for one run of a batch stores nothing of its other runs either', { skip: NO_TRIGGERS }, async () => {
    await withStorage({}, async (storage) => {
      const env = newId()
      const sent = Array.from({ length: 20 }, (_, n) => event({ runId: `run ${n}` }))
      const work = () => assert.rejects(append(storage, env, ...sent), refusal('storage_unavailable'))
      await whileFailing('runs', 'io_error', work, "NEW.run_id = 'run 7'")
      assert.deepEqual((await storage.listRuns(env, {}, { limit: 100, after: null })).rows, [])
      assert.deepEqual(new Set(await append(storage, env, ...sent)), new Set(['stored']))
    })
  })

  test('fails one of several batches whose commits are on their way, and stores the others whole', async () => {
    await withStorage({}, async (storage) => {
      const env = newId()
      // More events than fit into one transaction, so that a second one follows on the same connection.
      const batches = Array.from({ length: 24 }, (_, number) =>
        Array.from({ length: 100 }, (_, n) => {
          const isBad = number % 10 === 2 && n === 50
          return event({ runId: `run ${n % 3}`, time: isBad ? NOON + 0.5 : NOON })
        }),
      )
      const verdicts = await Promise.all(batches.map((events) => append(storage, env, ...events)))
      const stored = batches.flatMap((events, number) => events.filter((_, n) => verdicts[number]?.[n] === 'stored'))
      assert.deepEqual(
        stored,
        batches.flat().filter(({ time }) => time === NOON),
      )
      assert.equal(await assertCounted(storage, env, 3), stored.length)
    })
  })

  test('that closes connections between commits stores each batch whole or not at all', async () => {
    await withStorage({}, async (storage) => {
      const env = newId()
      const batches = Array.from({ length: 24 }, () =>
        Array.from({ length: 100 }, (_, n) => event({ runId: `run ${n % 3}` })),
      )
      const answered = Promise.allSettled(
        batches.map(async (events, number) => {
          if (number === 8) await endConnections()
          return append(storage, env, ...events)
        }),
      )
      await endConnections()
      const answers = await answered
      const stored = await retried(() => assertCounted(storage, env, 3))
      const acknowledged = answers.filter(({ status }) => status === 'fulfilled')
      assert.ok(stored >= acknowledged.length * 100)
      const repeated = await Promise.all(batches.map((events) => retried(() => append(storage, env, ...events))))
      for (const [number, verdicts] of repeated.entries()) {
        assert.equal(new Set(verdicts).size, 1)
        if (answers[number]?.status === 'fulfilled') assert.equal(verdicts[0], 'duplicate')
      }
      assert.equal(await assertCounted(storage, env, 3), batches.length * 100)
    })
  })

  test('whose sequence lags after a logical failover rejects no event, and is mended as docs/operations.md says', async () => {
    const [, mend = ''] =
      /```sql\n(SELECT setval\('tacho.numbers'[^`]*)```/.exec(await readFile(OPERATIONS, 'utf8')) ?? []
    const env = newId()
    await withStorage({}, async (storage) => {
      await append(storage, env, ...Array.from({ length: 50 }, (_, n) => event({ runId: `run ${n}` })))
    })
    // After a failover to a stale replica, the sequence may return the number of an existing run.
    const [row] = (await query(`SELECT min(number) AS number FROM tacho.runs WHERE environment_id = '${env}'`)).rows
    // Run this statement separately: Citus would set the sequence on the machine that has the runs.
    await query(`SELECT setval('tacho.numbers', ${Number(row?.['number'])}, false)`)
    await withStorage({}, async (storage) => {
      await assert.rejects(append(storage, env, event({ runId: 'new' })), refusal('storage_unavailable'))
    })
    await query(mend)
    await withStorage({}, async (storage) => {
      assert.deepEqual(await append(storage, env, event({ runId: 'new' })), ['stored'])
    })
  })

  test('that refuses heartbeats is reported, and heartbeats continue afterwards', async () => {
    const warned = Promise.withResolvers<string>()
    await withStorage({ onWarning: (what) => warned.resolve(what) }, async (storage) => {
      await query('ALTER TABLE tacho.nodes RENAME TO no_nodes')
      try {
        assert.equal(await warned.promise, 'a heartbeat of this node failed')
      } finally {
        await query('ALTER TABLE tacho.no_nodes RENAME TO nodes')
      }
      assert.ok(storage.nodes() >= 1)
    })
  })

  test(
    'whose disk is full makes the node refuse writes for a moment, with storage_full',
    { skip: NO_TRIGGERS },
    async () => {
      await withStorage({}, async (storage) => {
        await whileFailing('events', 'disk_full', async () => {
          await assert.rejects(append(storage, newId(), event()), refusal('storage_full'))
        })
        assert.equal(storage.writesRefused(), 'storage_full')
        await storage.ping()
      })
    },
  )
})

/** Asserts that `run 0`, `run 1`, … have as many events as they count, with seqs in order and without a gap. */
async function assertCounted(storage: Storage, environmentId: string, runs: number): Promise<number> {
  let events = 0
  for (let number = 0; number < runs; number++) {
    if ((await storage.findRun(environmentId, `run ${number}`)) === null) continue
    const rows = await timelineOf(storage, environmentId, `run ${number}`)
    assert.deepEqual(
      rows.map(({ seq }) => seq),
      rows.map((_, index) => index + 1),
    )
    assert.equal((await runOf(storage, environmentId, `run ${number}`)).eventCount, rows.length)
    events += rows.length
  }
  return events
}

async function isWaiting(condition: string): Promise<boolean> {
  const { rows } = await query(`SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE d.datname = current_database() AND NOT granted AND ${condition}`)
  return rows.length > 0
}

async function endConnections(): Promise<void> {
  await query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'tacho'",
  )
}
