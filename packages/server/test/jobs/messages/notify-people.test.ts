import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { newPushKey, pushKeysOf } from '../../../src/domain/messages/notification.ts'
import { notifyPeople, type NotifyOptions, createPushSender } from '../../../src/jobs/messages/notify-people.ts'
import type { NoticesTold, ToldBrowser } from '../../../src/storage/messages/messages.ts'

const NOTICE = {
  id: 'a',
  at: 1,
  until: null,
  isCurrent: true,
  policySeverity: null,
  alert: null,
  data: {},
}
const ENVIRONMENT = {
  id: 'e',
  workspaceId: 'w',
  name: 'production',
  createdAt: 1,
  archivedAt: null,
  deleteAt: null,
}

function browser(id: string): ToldBrowser {
  const address = { endpoint: `https://push.example/${id}`, publicKey: 'p', authSecret: 'a' }
  return { id, ...address, kinds: ['issues'], severity: 'LOW', quietHours: null }
}

function job(count: number, push: NotifyOptions['push']) {
  const told: NoticesTold[] = []
  const postponed: number[] = []
  let at = 1_000
  const storage: NotifyOptions['storage'] = {
    findEnvironment: () => Promise.resolve(ENVIRONMENT),
    findNotices: () => Promise.resolve([NOTICE]),
    listNotices: () => Promise.resolve([]),
    listToldBrowsers: (_environmentId, id) =>
      Promise.resolve(id === null ? Array.from({ length: count }, (_, at) => browser(String(at))) : [browser(id)]),
    recordNoticesTold: (_hold, _environmentId, outcome) => Promise.resolve(told.push(outcome) > 0),
  }
  const { kind, perform } = notifyPeople({ storage, push, now: () => at, random: () => 0 })
  const item = { environmentId: 'e', subjectId: 'issue.opened/a', attempts: 1, lastError: null }
  return {
    told,
    postponed,
    pass: (ms: number) => (at += ms),
    async perform(signal = new AbortController().signal, subjectId = item.subjectId) {
      const asked = { ...item, subjectId }
      const next = await perform(asked, { kind, owner: 'node', items: [asked] }, signal)
      if (typeof next === 'object') postponed.push(next.dueAt)
    },
  }
}

test('twenty messages are under way, and slow push services hold only their own', async () => {
  const waiting: (() => void)[] = []
  const { told, perform } = job(100, () => {
    if (waiting.length >= 19) return Promise.resolve({ ok: true, status: 201 })
    const { promise, resolve } = Promise.withResolvers<{ ok: true; status: number }>()
    waiting.push(() => resolve({ ok: true, status: 201 }))
    return promise
  })
  const done = perform()
  await setImmediate()
  assert.equal(waiting.length, 19)
  assert.equal(told.length, 0)
  for (const go of waiting) go()
  await done
  assert.equal(told[0]?.told.length, 100)
})

test('a process that stops leaves the rest to another one', async () => {
  const stopping = new AbortController()
  let sent = 0
  const { told, perform } = job(1_000, async () => {
    if (++sent === 20) stopping.abort()
    await setImmediate()
    return { ok: true, status: 201 }
  })
  await assert.rejects(perform(stopping.signal))
  assert.deepEqual([sent, told.length], [20, 0])
})

test('a browser for which nothing can be encrypted holds back no other, and is not tried again', async () => {
  const send = () => Promise.resolve({ ok: true, status: 201 } as const)
  const contact = () => 'mailto:ada@example.com'
  const push = createPushSender({ keys: pushKeysOf(newPushKey()), contact, send })
  const { told, perform } = job(2, push)
  await perform()
  assert.deepEqual([told[0]?.told, told[0]?.later, told[0]?.gone], [[], [], []])
})

test('nobody waits for a browser whose push service failed last, and few of them are told at a time', async () => {
  const slow = new Set(['1', '2', '3'])
  const waiting: (() => void)[] = []
  let isFirst = true
  const { told, postponed, pass, perform } = job(5, async ({ endpoint }) => {
    if (!slow.has(endpoint.slice(-1))) return { ok: true, status: 201 }
    if (!isFirst) await new Promise<void>((resolve) => waiting.push(resolve))
    return isFirst ? { ok: false, status: null, error: 'No answer' } : { ok: true, status: 201 }
  })
  await perform()
  isFirst = false
  pass(60_000)
  // The job ends although three push services do not answer.
  await perform()
  assert.deepEqual(told[1]?.told, ['0', '4'])
  const owed = told[1]?.later.map(({ browserId, dueAt }) => [browserId, dueAt])
  assert.deepEqual(
    owed,
    ['1', '2', '3'].map((id) => [id, 61_000]),
  )

  const own = [...slow].map((id) => perform(undefined, `browser/${id}/issue.opened/a`))
  await setImmediate()
  assert.deepEqual([waiting.length, postponed], [2, [63_000]])
  slow.clear()
  for (const go of waiting) go()
  await Promise.all(own)
  pass(60_000)
  await perform()
  assert.deepEqual(told.at(-1)?.told, ['0', '1', '2', '4'])
})
