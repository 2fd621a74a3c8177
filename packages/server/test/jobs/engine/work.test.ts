import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import {
  createWorkRunner,
  type BatchHandler,
  type ItemHandler,
  type WorkHandler,
  type WorkRunnerOptions,
} from '../../../src/jobs/engine/work.ts'
import { openSqliteStorage } from '../../../src/storage/sqlite/open.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { StorageError } from '../../../src/storage/engine/store.ts'
import type { WorkItem } from '../../../src/storage/engine/work.ts'
import { issueRecord } from '../../storage/suite/issues/issue-sample.ts'
import { newHome } from '../../storage/suite/policies/configuration-sample.ts'
import { newId, NOON } from '../../storage/suite/sample.ts'

const KIND = 'review_issue_record' as const
const OWNER = 'this node'

let storage: Storage
let directory: string
before(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'tacho-work-'))
  const onTrouble = (error: Error) => {
    throw error
  }
  storage = await openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble })
})
after(async () => {
  await storage.close()
  await rm(directory, { recursive: true })
})

/** Work of a kind that is due at NOON. */
async function enqueue(count: number): Promise<string[]> {
  const records = Array.from({ length: count }, () => issueRecord(newId(), { receivedAt: NOON }))
  for (const record of records) await storage.receiveIssueRecord(record)
  return records.map(({ id }) => id)
}

const done = (items: WorkItem[]) => storage.finishWork({ kind: KIND, owner: OWNER, items })

/** Due items of this kind. A new environment also has items of other kinds. */
const left = async () => (await storage.workBacklog(NOON)).find(({ kind }) => kind === KIND)?.items ?? 0

type TestedHandler = Partial<Omit<ItemHandler & BatchHandler, 'giveUp'>> & {
  giveUp?: (item: WorkItem, reason: string) => Promise<unknown>
}

/** A runner that is stopped after the test. Its clock stays at NOON, and it polls often. */
function run(t: TestContext, handler: TestedHandler, options: Partial<WorkRunnerOptions> = {}) {
  const errors: unknown[] = []
  const { giveUp = (item) => done([item]), ...how } = handler
  const complete = {
    kind: KIND,
    batch: 10,
    ...('perform' in how ? {} : { performAll: done }),
    ...how,
    async giveUp(item: WorkItem, reason: string) {
      await giveUp(item, reason)
      return 'ended'
    },
  } as WorkHandler
  const runner = createWorkRunner({
    storage,
    handlers: [complete],
    owner: OWNER,
    now: () => NOON,
    onError: (error) => errors.push(error),
    pollMs: 5,
    firstDelayMs: 0,
    ...options,
  })
  runner.start()
  t.after(() => runner.stop())
  return { runner, errors }
}

test('all work is done, a batch at a time, once', async (t) => {
  const ids = await enqueue(25)
  const seen: string[][] = []
  const all = Promise.withResolvers<void>()
  run(t, {
    async performAll(items) {
      await done(items)
      seen.push(items.map(({ subjectId }) => subjectId))
      if (seen.flat().length === ids.length) all.resolve()
    },
  })
  await all.promise
  assert.ok(seen.every((batch) => batch.length <= 10))
  assert.deepEqual(seen.flat().toSorted(), ids.toSorted())
  assert.equal(await left(), 0)
})

test('newly queued work starts when the runner is woken, without waiting for its poll', async (t) => {
  const begun = Promise.withResolvers<void>()
  const { runner } = run(
    t,
    {
      async performAll(items) {
        await done(items)
        begun.resolve()
      },
    },
    { pollMs: 3_600_000 },
  )
  await enqueue(1)
  runner.wake(KIND)
  await begun.promise
})

test('work that keeps failing is retried up to the limit, then ended with its reason', async (t) => {
  const [id] = await enqueue(1)
  const attempts: number[] = []
  const given = Promise.withResolvers<[string, string]>()
  const { errors } = run(
    t,
    {
      performAll([item]) {
        attempts.push(item?.attempts ?? 0)
        return Promise.reject(new Error('It does\0 not work'))
      },
      async giveUp(item, reason) {
        await done([item])
        given.resolve([item.subjectId, reason])
      },
    },
    { maxAttempts: 3 },
  )
  assert.deepEqual(await given.promise, [id, 'It does not work'])
  assert.deepEqual(attempts, [1, 2, 3])
  assert.equal(errors.length, 3)
})

test('an item that fails does not delay the others of its batch', async (t) => {
  const [bad, ...good] = await enqueue(5)
  const seen: string[] = []
  const given: string[] = []
  const all = Promise.withResolvers<void>()
  const count = () => seen.length + given.length === 5 && all.resolve()
  run(
    t,
    {
      async performAll(items) {
        if (items.some(({ subjectId }) => subjectId === bad)) throw new Error('bad')
        await done(items)
        seen.push(...items.map(({ subjectId }) => subjectId))
        count()
      },
      async giveUp(item) {
        await done([item])
        given.push(item.subjectId)
        count()
      },
    },
    { maxAttempts: 1 },
  )
  await all.promise
  assert.deepEqual([seen.toSorted(), given], [good.toSorted(), [bad]])
})

test('the delay between attempts doubles up to five minutes, with jitter, in whole milliseconds', async (t) => {
  await enqueue(1)
  const delays: number[] = []
  let now = NOON
  const given = Promise.withResolvers<void>()
  run(
    t,
    {
      performAll: () => Promise.reject(new Error('bad')),
      async giveUp(item) {
        await done([item])
        given.resolve()
      },
    },
    {
      now: () => now,
      firstDelayMs: 100_001,
      maxAttempts: 5,
      random: () => 0.25,
      storage: {
        ...storage,
        async postponeWork(hold, postponement) {
          const held = await storage.postponeWork(hold, postponement)
          delays.push(postponement.dueAt - now)
          now = postponement.dueAt
          return held
        },
      },
    },
  )
  await given.promise
  assert.deepEqual(delays, [62_501, 125_001, 187_500, 187_500])
})

test('store failures never end the work, however long they last', async (t) => {
  await enqueue(1)
  let failures = 0
  const worked = Promise.withResolvers<number>()
  run(
    t,
    {
      async performAll(items) {
        if (++failures < 20) throw new StorageError('storage_unavailable', 'away')
        await done(items)
        worked.resolve(items[0]?.attempts ?? 0)
      },
      giveUp: () => Promise.reject(new Error('must not be given up')),
    },
    { maxAttempts: 2 },
  )
  assert.equal(await worked.promise, 1)
})

test('work of a dead node is taken over when its lease ends, and ended if every node that took it died', async (t) => {
  const [id = ''] = await enqueue(1)
  const claim = (now: number) => storage.claimWork({ kind: KIND, owner: 'dead', now, leaseUntil: now + 10, limit: 9 })
  for (const lease of [0, 1, 2]) assert.equal((await claim(NOON + lease * 10)).length, 1)
  let now = NOON + 29
  const looked = Promise.withResolvers<void>()
  const given = Promise.withResolvers<string>()
  run(
    t,
    {
      performAll: () => Promise.reject(new Error('must not be tried again')),
      async giveUp(item, reason) {
        await done([item])
        given.resolve(`${item.subjectId}: ${reason}`)
      },
    },
    {
      maxAttempts: 3,
      now: () => now,
      storage: {
        ...storage,
        claimWork: async (wanted) => {
          const items = await storage.claimWork(wanted)
          if (wanted.now === NOON + 29) assert.deepEqual(items, [])
          looked.resolve()
          return items
        },
      },
    },
  )
  await looked.promise
  now = NOON + 30
  assert.equal(await given.promise, `${id}: No worker finished it in 3 attempts`)
})

test('the lease is renewed for as long as the work takes', async (t) => {
  await enqueue(1)
  let now = NOON
  const claim = () => storage.claimWork({ kind: KIND, owner: 'other', now, leaseUntil: now, limit: 9 })
  const begun = Promise.withResolvers<void>()
  const finish = Promise.withResolvers<void>()
  let renewed = Promise.withResolvers<number>()
  run(
    t,
    {
      async performAll(items) {
        begun.resolve()
        await finish.promise
        await done(items)
      },
    },
    {
      now: () => now,
      leaseMs: 30,
      storage: {
        ...storage,
        extendWork: async (hold, until) => {
          const held = await storage.extendWork(hold, until)
          renewed.resolve(until)
          return held
        },
      },
    },
  )
  await begun.promise
  for (let step = 0; step < 5; step++) {
    now += 20
    renewed = Promise.withResolvers()
    assert.ok((await renewed.promise) > now)
    assert.deepEqual(await claim(), [])
  }
  finish.resolve()
})

test('stopping waits for running work and takes nothing new', async (t) => {
  await enqueue(2)
  const begun = Promise.withResolvers<void>()
  const finish = Promise.withResolvers<void>()
  let stopped = false
  const { runner } = run(t, {
    batch: 1,
    async performAll(items) {
      begun.resolve()
      await finish.promise
      await done(items)
    },
  })
  await begun.promise
  const stop = runner.stop().then(() => (stopped = true))
  await storage.ping()
  assert.equal(stopped, false)
  finish.resolve()
  await stop
  assert.equal(await left(), 1)
  const rest = await storage.claimWork({ kind: KIND, owner: OWNER, now: NOON, leaseUntil: NOON, limit: 9 })
  await done(rest)
})

test('a long task interrupted by the end of the process is due again at once, without counting an attempt', async (t) => {
  const [id] = await enqueue(1)
  const begun = Promise.withResolvers<void>()
  const { runner } = run(t, {
    perform(_item, _hold, signal) {
      begun.resolve()
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('the process ends')))
      })
    },
  })
  await begun.promise
  await runner.stop()
  const [item] = await storage.claimWork({ kind: KIND, owner: OWNER, now: NOON, leaseUntil: NOON, limit: 9 })
  assert.deepEqual([item?.subjectId, item?.attempts], [id, 1])
  if (item) await done([item])
})

test('while nothing is due, one query a poll asks for all kinds', async (t) => {
  let [polls, claims] = [0, 0]
  const polled = Promise.withResolvers<void>()
  const performAll = () => Promise.reject(new Error('there is no work'))
  run(
    t,
    { performAll },
    {
      pollMs: 1,
      storage: {
        ...storage,
        dueWork: (now) => {
          if (++polls === 5) polled.resolve()
          return storage.dueWork(now)
        },
        claimWork: (wanted) => {
          claims += 1
          return storage.claimWork(wanted)
        },
      },
    },
  )
  await polled.promise
  assert.equal(claims, 1)
})

test('a failed query of the store is repeated', async (t) => {
  await enqueue(1)
  let asked = 0
  const worked = Promise.withResolvers<void>()
  const { errors } = run(
    t,
    {
      async performAll(items) {
        await done(items)
        worked.resolve()
      },
    },
    {
      storage: {
        ...storage,
        claimWork: (wanted) =>
          ++asked < 3 ? Promise.reject(new StorageError('storage_unavailable', 'away')) : storage.claimWork(wanted),
      },
    },
  )
  await worked.promise
  assert.equal(errors.length, 2)
})

test('in turn, an item that never ends delays neither other workspaces nor the rest of its own', async (t) => {
  const [slow, quick] = [await newHome(storage), await newHome(storage)]
  const enqueueFor = (environmentId: string) =>
    storage.receiveIssueRecord(issueRecord(environmentId, { id: newId(), receivedAt: NOON }))
  for (let n = 0; n < 20; n++) await enqueueFor(slow.development)
  const release = Promise.withResolvers<void>()
  const ended: string[] = []
  let mostOfSlow = 0
  let runningOfSlow = 0
  const quickEnded = Promise.withResolvers<void>()
  const slowStarted = Promise.withResolvers<void>()
  const { runner } = run(t, {
    batch: 8,
    inTurn: true,
    async perform({ environmentId }) {
      const isSlow = environmentId === slow.development
      if (isSlow) {
        mostOfSlow = Math.max(mostOfSlow, ++runningOfSlow)
        slowStarted.resolve()
        await release.promise
        runningOfSlow--
      }
      ended.push(environmentId)
      if (!isSlow) quickEnded.resolve()
      return 'done'
    },
  })
  await slowStarted.promise
  await enqueueFor(quick.development)
  runner.wake(KIND)
  await quickEnded.promise
  assert.deepEqual([ended, mostOfSlow], [[quick.development], 4])
  release.resolve()
  while ((await left()) > 0) await setTimeout(5)
  assert.equal(ended.length, 21)
})

test('an item done alone leaves the queue, one for later is due then, and only a failed attempt counts', async (t) => {
  await enqueue(3)
  const later = NOON + 60_000
  const postponed: unknown[] = []
  const next = [{ dueAt: later }, { dueAt: later, failed: 'No answer' }, 'done'] as const
  const seen: number[] = []
  const all = Promise.withResolvers<void>()
  run(
    t,
    {
      async perform(_item, { items }) {
        seen.push(items.length)
        return next[seen.length - 1] ?? 'ended'
      },
    },
    {
      storage: {
        ...storage,
        postponeWork: (hold, postponement) => {
          postponed.push(postponement)
          return storage.postponeWork(hold, postponement)
        },
        async finishWork(hold) {
          const finished = await storage.finishWork(hold)
          all.resolve()
          return finished
        },
      },
    },
  )
  await all.promise
  assert.deepEqual(seen, [1, 1, 1])
  assert.deepEqual(postponed, [
    { dueAt: later, error: null, counts: false },
    { dueAt: later, error: 'No answer', counts: true },
  ])
  const rest = await storage.claimWork({ kind: KIND, owner: OWNER, now: later, leaseUntil: later, limit: 9 })
  assert.deepEqual(
    new Map(rest.map(({ attempts, lastError }) => [attempts, lastError])),
    new Map([
      [1, null],
      [2, 'No answer'],
    ]),
  )
  await done(rest)
})

test('an item that fails is not done again with the others of its batch', async (t) => {
  const [bad] = await enqueue(4)
  const performed: string[] = []
  const given = Promise.withResolvers<void>()
  run(
    t,
    {
      async perform({ subjectId }) {
        performed.push(subjectId)
        if (subjectId === bad) throw new Error('bad')
        return 'done'
      },
      async giveUp(item) {
        await done([item])
        given.resolve()
      },
    },
    { maxAttempts: 1 },
  )
  await given.promise
  while ((await left()) > 0) await setTimeout(5)
  assert.equal(new Set(performed).size, 4)
  assert.equal(performed.length, 4)
})
