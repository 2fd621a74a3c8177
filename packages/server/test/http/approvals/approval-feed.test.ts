import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { createApprovalFeed, type Follower } from '../../../src/http/approvals/approval-feed.ts'
import type { ApprovalRow } from '../../../src/storage/approvals/approvals.ts'
import { openSqliteStorage } from '../../../src/storage/sqlite/open.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { StorageError } from '../../../src/storage/engine/store.ts'
import { newErasure } from '../../storage/suite/data/erasure-sample.ts'
import { ask, decision } from '../../storage/suite/approvals/approval-sample.ts'
import { eventually } from '../../setup/eventually.ts'

let storage: Storage
const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-feed-'))
before(async () => {
  storage = await openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble: (error) => assert.fail(error) })
})
after(async () => {
  await storage.close()
  rmSync(directory, { recursive: true })
})

/** A feed that polls often, on a separate node, without local notifications. */
function openFeed(given: Partial<Parameters<typeof createApprovalFeed>[0]> = {}) {
  return createApprovalFeed({ storage, onError: (error) => assert.fail(error as Error), intervalMs: 5, ...given })
}

/** A follower that stores what it receives. */
function listener() {
  const heard: ApprovalRow[] = []
  let ends = 0
  let removals = 0
  const follower: Follower = {
    changed: (rows) => heard.push(...rows),
    removed: () => (removals += 1),
    ended: () => (ends += 1),
  }
  return { heard, follower, ends: () => ends, removals: () => removals }
}

test('a change by another node arrives once and complete', async () => {
  const feed = openFeed()
  const env = randomUUID()
  await ask(storage, env)
  const { heard, follower } = listener()
  const unfollow = await feed.follow(env, follower)
  const made = await ask(storage, env)
  await eventually(() => heard.length === 1, 'the changes to arrive')
  await storage.decideApprovals(env, [made.id], decision(), [])
  await eventually(() => heard.length === 2, 'the changes to arrive')
  assert.deepEqual(heard[0], made)
  assert.deepEqual(heard[1], await storage.findApproval(env, made.id))
  unfollow()
  assert.equal(feed.size(), 0)
})

test('a follower of one approval receives only its changes, and nothing of another environment', async () => {
  const feed = openFeed()
  const [env, other] = [randomUUID(), randomUUID()]
  const [one, two] = [await ask(storage, env), await ask(storage, env)]
  const [single, all, elsewhere] = [listener(), listener(), listener()]
  const unfollow = await Promise.all([
    feed.follow(env, single.follower, one.id),
    feed.follow(env, all.follower),
    feed.follow(other, elsewhere.follower),
  ])
  await storage.decideApprovals(env, [one.id, two.id], decision(), [])
  await eventually(() => all.heard.length === 2, 'the changes to arrive')
  assert.deepEqual(
    single.heard.map(({ id }) => id),
    [one.id],
  )
  assert.deepEqual(elsewhere.heard, [])
  for (const end of unfollow) end()
})

test('a removal by another node arrives once, at followers of one approval too', async () => {
  const feed = openFeed()
  const env = randomUUID()
  await ask(storage, env, { runId: 'gone' })
  const { id } = await ask(storage, env)
  const [all, single] = [listener(), listener()]
  const unfollow = await Promise.all([feed.follow(env, all.follower), feed.follow(env, single.follower, id)])
  const erasure = await storage.createErasure(newErasure(env, { kind: 'run', subject: 'gone' }), [])
  await storage.concludeErasure(env, erasure.id, Date.now())
  await eventually(() => all.removals() > 0, 'the removal to arrive')
  await ask(storage, env)
  await eventually(() => all.heard.length === 1, 'the next change to arrive')
  assert.deepEqual([all.removals(), single.removals(), single.heard.length], [1, 1, 0])
  for (const end of unfollow) end()
})

test('a removal arrives though a newer change was read before it was seen', async () => {
  const env = randomUUID()
  await ask(storage, env, { runId: 'gone' })
  let isErased = false
  /** Between reading the revisions and reading the approvals, another node erases, and a request arrives. */
  const late: typeof storage.listChangedApprovals = async (...given) => {
    if (!isErased) {
      isErased = true
      const erasure = await storage.createErasure(newErasure(env, { kind: 'run', subject: 'gone' }), [])
      await storage.concludeErasure(env, erasure.id, Date.now())
      await ask(storage, env)
    }
    return storage.listChangedApprovals(...given)
  }
  const feed = openFeed({
    storage: { approvalRevisions: (ids) => storage.approvalRevisions(ids), listChangedApprovals: late },
  })
  const { heard, removals, follower } = listener()
  const unfollow = await feed.follow(env, follower)
  await ask(storage, env)
  await eventually(() => removals() === 1 && heard.length >= 2, 'the removal and the changes to arrive')
  unfollow()
})

test('more changes than one read returns all arrive, in their order', async () => {
  const feed = openFeed()
  const env = randomUUID()
  const { heard, follower } = listener()
  const unfollow = await feed.follow(env, follower)
  const asked = await Promise.all(Array.from({ length: 450 }, () => ask(storage, env)))
  await eventually(() => new Set(heard.map(({ id }) => id)).size === 450, 'the changes to arrive')
  assert.equal(heard.length, 450)
  assert.ok(heard.every(({ revision }, at) => at === 0 || revision > (heard[at - 1]?.revision ?? 0)))
  assert.deepEqual(new Set(heard.map(({ id }) => id)), new Set(asked.map(({ id }) => id)))
  unfollow()
})

test('a change between the subscription and the first poll arrives', async () => {
  const feed = openFeed({ intervalMs: 60_000 })
  const env = randomUUID()
  const { heard, follower } = listener()
  const unfollow = await feed.follow(env, follower)
  await ask(storage, env)
  feed.look()
  await eventually(() => heard.length === 1, 'the changes to arrive')
  unfollow()
})

test('after a store failure the feed polls again, and misses nothing', async () => {
  let failing = false
  const errors: unknown[] = []
  const feed = openFeed({
    onError: (error) => errors.push(error),
    storage: {
      listChangedApprovals: storage.listChangedApprovals,
      approvalRevisions: (ids) =>
        failing ? Promise.reject(new StorageError('storage_unavailable', 'away')) : storage.approvalRevisions(ids),
    },
  })
  const env = randomUUID()
  const { heard, follower } = listener()
  const unfollow = await feed.follow(env, follower)
  failing = true
  await ask(storage, env)
  await eventually(() => errors.length > 1, 'two failures')
  await assert.rejects(feed.follow(randomUUID(), follower))
  assert.equal(feed.size(), 1)
  failing = false
  await eventually(() => heard.length === 1, 'the changes to arrive')
  unfollow()
})

test('without followers the store is not queried', async () => {
  let asked = 0
  const feed = openFeed({
    storage: {
      listChangedApprovals: storage.listChangedApprovals,
      approvalRevisions: (ids) => {
        asked += 1
        return storage.approvalRevisions(ids)
      },
    },
  })
  feed.look()
  const unfollow = await feed.follow(randomUUID(), listener().follower)
  await eventually(() => asked > 3, 'four polls')
  unfollow()
  unfollow()
  assert.equal(feed.size(), 0)
  await wait(20)
  const before = asked
  await wait(40)
  assert.equal(asked, before)
})

test('when the feed closes all followers end, and later ones end at once', async () => {
  const feed = openFeed()
  const [one, two, late] = [listener(), listener(), listener()]
  const env = randomUUID()
  const unfollow = [await feed.follow(env, one.follower), await feed.follow(env, two.follower, randomUUID())]
  feed.close()
  assert.deepEqual([one.ends(), two.ends()], [1, 1])
  unfollow.push(await feed.follow(env, late.follower))
  assert.equal(late.ends(), 1)
  for (const end of unfollow) end()
  assert.equal(feed.size(), 0)
})
