/** Shares and turns, first by workspace, then by key or operator in it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isRefusal, LEFT } from '../../../src/http/web/reply-error.ts'
import { ReplyMemory } from '../../../src/http/web/reply-memory.ts'
import { Shares } from '../../../src/domain/tenants/shares.ts'
import { TurnsByWorkspace } from '../../../src/storage/engine/turns-by-workspace.ts'

const MIB = 1_048_576

test('no workspace exceeds its share with any number of keys, and what is given back is free again', () => {
  const bounds = { most: 40, ofWorkspace: 10, ofCredential: 5 }
  const holder = fc.record({ workspace: fc.constantFrom('a', 'b', 'c'), credential: fc.constantFrom('1', '2', '3') })
  fc.assert(
    fc.property(fc.array(fc.tuple(holder, fc.integer({ min: 1, max: 5 }))), (asked) => {
      const shares = new Shares(bounds)
      const held = asked.filter(([by, amount]) => shares.take(by, amount))
      const sumOf = (of: (by: { workspace: string; credential: string }) => boolean) =>
        held.reduce((sum, [by, amount]) => sum + (of(by) ? amount : 0), 0)
      for (const workspace of ['a', 'b', 'c']) {
        assert.ok(sumOf((by) => by.workspace === workspace) <= bounds.ofWorkspace)
        for (const credential of ['1', '2', '3']) {
          const isOwn = (by: { workspace: string; credential: string }) =>
            by.workspace === workspace && by.credential === credential
          assert.ok(sumOf(isOwn) <= bounds.ofCredential)
        }
      }
      assert.equal(
        shares.used,
        sumOf(() => true),
      )
      for (const [by, amount] of held) shares.add(by, -amount)
      assert.ok(shares.used === 0 && shares.take({ workspace: 'a', credential: '1' }, bounds.most))
    }),
  )
})

test('turns go round the workspaces, and in each round its keys', () => {
  const turns = new TurnsByWorkspace<{ holder: { workspace: string; credential: string }; name: string }>()
  for (const name of ['a1.1', 'a1.2', 'a1.3', 'a2.1', 'b1.1', 'b1.2', 'c1.1']) {
    const [workspace = '', credential = ''] = name
    turns.push({ holder: { workspace, credential }, name })
  }
  const order = Array.from({ length: 8 }, () => turns.shift(() => true)?.name)
  assert.deepEqual(order, ['a1.1', 'b1.1', 'c1.1', 'a2.1', 'b1.2', 'a1.2', 'a1.3', undefined])
})

test('one workspace builds two replies at a time, with any number of keys; others need not wait for it', async () => {
  const replies = new ReplyMemory(64 * MIB)
  const started: string[] = []
  const ask = (workspace: string, credential: string) =>
    replies
      .begin({ workspace, credential }, 65_536, () => false)
      .then((page) => {
        assert.ok(!isRefusal(page))
        started.push(workspace)
        return page
      })
  const own = Array.from({ length: 20 }, (_, key) => ask('a', String(key)))
  await Promise.all(own.slice(0, 2))
  const other = await ask('b', '1')
  assert.deepEqual(started, ['a', 'a', 'b'])
  for (const each of own) (await each).dropped()
  other.dropped()
  assert.equal(replies.bytes, 0)
})

test('pages whose clients have left while they waited are not built', async () => {
  const replies = new ReplyMemory(64 * MIB)
  let hasLeft = false
  const ask = (isOver: () => boolean) => replies.begin({ workspace: 'a', credential: '1' }, 65_536, isOver)
  const [one, two] = await Promise.all([ask(() => false), ask(() => false)])
  const waiting = Array.from({ length: 50 }, () => ask(() => hasLeft))
  const patient = ask(() => false)
  hasLeft = true
  for (const page of [one, two]) {
    assert.ok(!isRefusal(page))
    page.dropped()
  }
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set([LEFT]))
  const page = await patient
  assert.ok(!isRefusal(page))
  page.dropped()
  assert.equal(replies.bytes, 0)
})
