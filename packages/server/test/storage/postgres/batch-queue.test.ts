import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { EventBatchRows } from '../../../src/storage/events.ts'
import { createBatchQueue } from '../../../src/storage/postgres/batch-queue.ts'
import { batch, event } from '../suite/sample.ts'

const TRANSACTIONS = 3

/** Batches of two environments, most of which share runs. */
const batches = fc.array(
  fc
    .record({ environment: fc.constantFrom('a', 'b'), runs: fc.array(fc.nat(6), { minLength: 1, maxLength: 4 }) })
    .map(({ environment, runs }) =>
      batch(
        environment,
        runs.map((run) => event({ runId: `run ${run}` })),
      ),
    ),
  { minLength: 1, maxLength: 40 },
)

test('batches of a run are committed whole, in arrival order, and never by two transactions at once', async () => {
  await fc.assert(
    fc.asyncProperty(batches, fc.array(fc.nat(3), { minLength: 1 }), async (sent, turns) => {
      const held = new Set<string>()
      const order = new Map<string, EventBatchRows[]>()
      let active = 0
      let commits = 0
      const placesOf = (rows: EventBatchRows[]) =>
        new Set(rows.flatMap(({ environmentId, events }) => events.map(({ runId }) => `${environmentId} ${runId}`)))
      const queue = createBatchQueue({
        queueBytes: 1e9,
        transactions: TRANSACTIONS,
        async commit(rows) {
          const places = placesOf(rows)
          assert.ok(places.isDisjointFrom(held))
          assert.equal(new Set(rows.map(({ environmentId }) => environmentId)).size, 1)
          assert.ok(++active <= TRANSACTIONS)
          for (const place of places) held.add(place)
          for (const one of rows)
            for (const place of placesOf([one])) order.set(place, [...(order.get(place) ?? []), one])
          for (let turn = turns[commits++ % turns.length] ?? 0; turn > 0; turn--) {
            await new Promise((resolve) => setImmediate(resolve))
          }
          for (const place of places) held.delete(place)
          active--
          return rows.map(({ events }) => ({ verdicts: events.map(() => 'stored' as const) }))
        },
      })
      const verdicts = await Promise.all(sent.map((one) => queue.append(one)))
      assert.deepEqual(
        verdicts.map((of) => of.length),
        sent.map(({ events }) => events.length),
      )
      for (const [place, committed] of order) {
        assert.deepEqual(
          committed,
          sent.filter((one) => placesOf([one]).has(place)),
        )
      }
      await queue.idle()
      assert.equal(queue.counts.queuedBytes, 0)
    }),
  )
})
