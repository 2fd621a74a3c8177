import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { newPushKey, pushKeysOf } from '../../src/domain/notification.ts'
import { notifyPeople, type NotifyOptions } from '../../src/jobs/notify-people.ts'
import { createPushSender } from '../../src/jobs/push-sender.ts'
import type { NoticesTold, ToldBrowser } from '../../src/storage/notifications.ts'

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
  const address = { endpoint: 'https://push.example/', publicKey: 'p', authSecret: 'a' }
  return { id, ...address, kinds: ['issues'], severity: 'LOW', quietHours: null }
}

function job(count: number, push: NotifyOptions['push']) {
  const told: NoticesTold[] = []
  const storage: NotifyOptions['storage'] = {
    findEnvironment: () => Promise.resolve(ENVIRONMENT),
    findNotices: () => Promise.resolve([NOTICE]),
    listNotices: () => Promise.resolve([]),
    listToldBrowsers: () => Promise.resolve(Array.from({ length: count }, (_, at) => browser(String(at)))),
    recordNoticesTold: (_hold, _environmentId, outcome) => Promise.resolve(told.push(outcome) > 0),
    finishWork: () => Promise.resolve(1),
    postponeWork: () => Promise.resolve(1),
  }
  const { perform } = notifyPeople({ storage, push, owner: 'node', now: () => 1_000, random: () => 0 })
  const item = { environmentId: 'e', subjectId: 'issue.opened/a', attempts: 1, lastError: null }
  return { told, perform: (signal = new AbortController().signal) => perform([item], signal) }
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
