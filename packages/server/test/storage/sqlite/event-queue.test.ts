import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import { validateItems } from '../../../src/domain/record/event.ts'
import type { Disk } from '../../../src/storage/sqlite/files.ts'
import { eventQueue } from '../../../src/storage/sqlite/event-queue.ts'
import { createWaitingCommits } from '../../../src/storage/engine/store-checks.ts'

const MIB = 1_048_576
const disk = { nearlyFull: () => false, gone: () => null, reportFull: () => undefined } as unknown as Disk

const { events } = validateItems(
  [{ eventId: 'e', clientId: 'c', runId: 'r', agentName: 'a', eventType: 't', label: 'l', timestamp: 5 }],
  () => ({ json: '{}', levels: 1 }),
  { workspaceId: '', now: 5 },
)

interface Sent {
  environmentId: string
  answer: () => void
  fail: () => void
}

function openQueue() {
  const sent: Sent[] = []
  const writer = {
    alive: () => true,
    call(_act: string, [{ environmentId }]: [{ environmentId: string }]) {
      const { promise, resolve, reject } = Promise.withResolvers<never[]>()
      sent.push({ environmentId, answer: () => resolve([]), fail: () => reject(new Error('it fails')) })
      return promise
    },
  }
  let now = 0
  const queue = eventQueue(
    writer as never,
    disk,
    () => false,
    64 * MIB,
    createWaitingCommits(),
    () => now,
  )
  const append = (workspace: string, bytes: number) =>
    queue.append({
      environmentId: workspace,
      receivedAt: 0,
      events: events.map((event) => ({ ...event, payload: 'x'.repeat(bytes) })),
      rejections: [],
      holder: { workspace, credential: '1' },
    })
  return { queue, sent, append, pass: (ms: number) => (now += ms) }
}

const sentOf = (sent: { environmentId: string }[]): string => sent.map(({ environmentId }) => environmentId).join('')

test('the writer has about one commit at a time, and workspaces take turns for the next', async () => {
  const { queue, sent, append } = openQueue()
  const all = Array.from('aaaaaaaa').map((name) => append(name, MIB))
  await turn()
  assert.equal(sentOf(sent), 'aa')
  all.push(append('b', 1_000), append('b', 1_000))
  for (let answered = 0; answered < all.length; answered++) {
    sent[answered]?.answer()
    await turn()
  }
  await Promise.all(all)
  // While two workspaces record, the writer gets one large batch at a time.
  assert.match(sentOf(sent), /^aa(ab|ba)(ab|ba)a+$/)
  assert.equal(queue.bytes(), 0)
})

test('commits are smaller only while several workspaces record', async () => {
  const { sent, append, pass } = openQueue()
  const all = [append('a', 1_000), append('b', 1_000), ...Array.from('aaaa').map((name) => append(name, MIB / 2))]
  await turn()
  assert.equal(sent.length, 4 - 1)
  for (let answered = 0; answered < all.length; answered++) {
    sent[answered]?.answer()
    await turn()
  }
  await Promise.all(all)
  pass(1_000)
  const later = Array.from('aaaaaa').map((name) => append(name, MIB / 2))
  await turn()
  assert.equal(sent.length, all.length + 4)
  for (let answered = all.length; answered < all.length + later.length; answered++) {
    sent[answered]?.answer()
    await turn()
  }
  await Promise.all(later)
})

test('after a batch that fails, the next ones go on', async () => {
  const { queue, sent, append } = openQueue()
  const [failed, ...others] = ['a', 'a', 'a', 'a'].map((name) => append(name, MIB))
  await turn()
  sent[0]?.fail()
  await assert.rejects(async () => failed, /it fails/)
  for (let answered = 1; answered < 4; answered++) {
    sent[answered]?.answer()
    await turn()
  }
  await Promise.all(others)
  assert.equal(queue.bytes(), 0)
})
