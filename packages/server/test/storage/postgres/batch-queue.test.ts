import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { EventBatchRows, NewEvent } from '../../../src/storage/record/events.ts'
import { createBatchQueue } from '../../../src/storage/postgres/batch-queue.ts'
import { batch, event } from '../suite/sample.ts'

const TRANSACTIONS = 3

/** Batches of two environments, most of which share runs. Two or three of them are enough for a transaction. */
const batches = fc.array(
  fc
    .record({ environment: fc.constantFrom('a', 'b'), runs: fc.array(fc.nat(6), { minLength: 1, maxLength: 4 }) })
    .map(({ environment, runs }) =>
      batch(
        environment,
        runs.flatMap((run) => Array<NewEvent>(50).fill(event({ runId: `run ${run}` }))),
      ),
    ),
  { minLength: 1, maxLength: 40 },
)

/** A fake connection. Counts the transactions on it that have not sent their commit. */
interface Pipeline {
  open: number
}

test('batches of a run are committed whole, in arrival order, and two transactions at once only in one pipeline', async () => {
  await fc.assert(
    fc.asyncProperty(batches, fc.array(fc.nat(3), { minLength: 1 }), async (sent, turns) => {
      const held = new Set<{ pipeline: Pipeline; places: Set<string> }>()
      const order = new Map<string, EventBatchRows[]>()
      let active = 0
      let waits = 0
      const last = new Map<Pipeline, Promise<unknown>>()
      const placesOf = (rows: EventBatchRows[]) =>
        new Set(rows.flatMap(({ environmentId, events }) => events.map(({ runId }) => `${environmentId} ${runId}`)))
      const turn = async () => {
        for (let left = turns[waits++ % turns.length] ?? 0; left > 0; left--) {
          await new Promise((resolve) => setImmediate(resolve))
        }
      }
      const queue = createBatchQueue<Pipeline>({
        queueBytes: 1e9,
        transactions: TRANSACTIONS,
        openPipeline: () => ({ open: 0 }),
        async commit(rows, { pipeline, onSent }) {
          const places = placesOf(rows)
          assert.equal(pipeline.open++, 0)
          const own = { pipeline, places }
          for (const other of held) assert.ok(other.pipeline === pipeline || other.places.isDisjointFrom(places))
          held.add(own)
          assert.equal(new Set(rows.map(({ environmentId }) => environmentId)).size, 1)
          assert.ok(++active <= TRANSACTIONS)
          for (const one of rows)
            for (const place of placesOf([one])) order.set(place, [...(order.get(place) ?? []), one])
          await turn()
          pipeline.open--
          onSent()
          const before = last.get(pipeline)
          const ended = Promise.all([before, turn()])
          last.set(pipeline, ended)
          await ended
          held.delete(own)
          active--
          return rows.map(({ events }) => ({ verdicts: events.map(() => 'stored' as const) }))
        },
      })
      const appended: EventBatchRows[] = []
      const verdicts = await Promise.all(
        sent.map(async (one, index) => {
          for (let left = Math.floor(index / 8); left > 0; left--) await turn()
          appended.push(one)
          return queue.append(one)
        }),
      )
      assert.deepEqual(
        verdicts.map((of) => of.length),
        sent.map(({ events }) => events.length),
      )
      for (const [place, committed] of order) {
        assert.deepEqual(
          committed,
          appended.filter((one) => placesOf([one]).has(place)),
        )
      }
      await queue.idle()
      assert.equal(queue.counts.queuedBytes, 0)
    }),
  )
})

test('while two transactions are under way, a third begins only with 400 events', async () => {
  const commits: { events: number; end: () => void }[] = []
  const queue = createBatchQueue<object>({
    queueBytes: 1e9,
    transactions: TRANSACTIONS,
    openPipeline: () => ({}),
    async commit(rows) {
      const { promise, resolve } = Promise.withResolvers<void>()
      commits.push({ events: rows.reduce((sum, { events }) => sum + events.length, 0), end: resolve })
      await promise
      return rows.map(({ events }) => ({ verdicts: events.map(() => 'stored' as const) }))
    },
  })
  const begun = () => commits.map(({ events }) => events)
  // Each turn of the event loop starts at most one transaction.
  const turns = async () => {
    for (let left = 5; left > 0; left--) await new Promise((resolve) => setImmediate(resolve))
  }
  let runs = 0
  const append = (count: number) => queue.append(batch('a', Array<NewEvent>(count).fill(event({ runId: `${runs++}` }))))
  const appends: Promise<unknown>[] = []
  for (const count of [1, 1]) {
    appends.push(append(count))
    await turns()
  }
  assert.deepEqual(begun(), [1, 1])
  appends.push(append(200), append(199))
  await turns()
  assert.deepEqual(begun(), [1, 1])
  appends.push(append(1))
  await turns()
  assert.deepEqual(begun(), [1, 1, 400])
  appends.push(append(1))
  await turns()
  assert.deepEqual(begun(), [1, 1, 400])
  for (const { end } of commits) end()
  await turns()
  assert.deepEqual(begun(), [1, 1, 400, 1])
  commits.at(-1)?.end()
  await Promise.all(appends)
})

/** A queue whose commits end when the test says so. Each name is an environment, or an environment and a key. */
function openQueue(transactions: number) {
  const commits: { keys: string[]; end: () => void }[] = []
  const queue = createBatchQueue<object>({
    queueBytes: 1e9,
    transactions,
    openPipeline: () => ({}),
    async commit(rows) {
      const { promise, resolve } = Promise.withResolvers<void>()
      commits.push({ keys: rows.map(({ holder }) => holder?.credential ?? ''), end: resolve })
      await promise
      return rows.map(({ events }) => ({ verdicts: events.map(() => 'stored' as const) }))
    },
  })
  let runs = 0
  const append = (workspace: string, environment: string, credential: string) => {
    const rows = batch(environment, Array<NewEvent>(100).fill(event({ runId: `${runs++}` })))
    return queue.append({ ...rows, holder: { workspace, credential } })
  }
  const turns = async () => {
    for (let left = 10; left > 0; left--) await new Promise((resolve) => setImmediate(resolve))
  }
  const endAll = async (appends: Promise<unknown>[]) => {
    for (let ended = 0; ended < commits.length; ended++) {
      commits[ended]?.end()
      await turns()
    }
    await Promise.all(appends)
  }
  return { commits, append, turns, endAll }
}

test('a workspace with many environments and batches leaves a transaction for another one', async () => {
  const { commits, append, turns, endAll } = openQueue(5)
  const flood = Array.from({ length: 120 }, (_, index) => append('loud', `loud ${index % 12}`, 'loud'))
  await turns()
  assert.equal(commits.length, 4)
  const quiet = append('quiet', 'quiet', 'quiet')
  await turns()
  assert.deepEqual(commits.at(-1)?.keys, ['quiet'])
  await endAll([...flood, quiet])
})

test('with all transactions taken, workspaces take turns for the next ones, however many environments they have', async () => {
  const { commits, append, turns, endAll } = openQueue(1)
  const flood = Array.from({ length: 24 }, (_, index) => append('loud', `loud ${index % 12}`, 'loud'))
  await turns()
  const quiet = append('quiet', 'quiet', 'quiet')
  for (let ended = 0; ended < 2; ended++) {
    commits[ended]?.end()
    await turns()
  }
  assert.ok(commits.slice(1).some(({ keys }) => keys.includes('quiet')))
  await endAll([...flood, quiet])
})

test('keys of an environment take turns for a place in its commits', async () => {
  const { commits, append, turns, endAll } = openQueue(1)
  const all = Array.from({ length: 100 }, () => append('one', 'one', 'loud'))
  await turns()
  for (let sent = 0; sent < 3; sent++) all.push(append('one', 'one', 'quiet'))
  all.push(append('one', 'one', 'third'))
  commits[0]?.end()
  await turns()
  // Keys take turns: batches of a key that came later are committed together with batches that waited longer.
  const second = commits[1]?.keys ?? []
  assert.equal(second.filter((key) => key === 'quiet').length, 3)
  assert.equal(second.filter((key) => key === 'third').length, 1)
  assert.ok(second.includes('loud'))
  await endAll(all)
})

test('a key of many that wait is not passed over by those that go on sending', async () => {
  const { commits, append, turns, endAll } = openQueue(1)
  const keys = Array.from({ length: 30 }, (_, index) => `key ${index}`)
  const all = Array.from({ length: 5 }, () => keys.map((key) => append('one', 'one', key))).flat()
  for (let commit = 0; commit < 3; commit++) {
    await turns()
    const served = commits[commit]?.keys ?? []
    all.push(...served.map((key) => append('one', 'one', key)))
    commits[commit]?.end()
  }
  await turns()
  assert.deepEqual(new Set(commits.slice(0, 3).flatMap((of) => of.keys)), new Set(keys))
  await endAll(all)
})
