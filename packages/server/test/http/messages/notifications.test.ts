/** Notifications in browsers, to a push service that decrypts them and checks who sent them. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Alert } from '@tacho/contract/messages/alert.ts'
import type { AuditPage } from '@tacho/contract/people/audit.ts'
import type { NotificationSettingsChange, NotificationText, QuietHours } from '@tacho/contract/messages/notification.ts'
import { approvalCalls, type ApprovalCalls } from '../../setup/approval-service.ts'
import { configurationCalls } from '../../setup/configuration-service.ts'
import { eventually } from '../../setup/eventually.ts'
import { startPushService, type PushBrowser, type PushService } from '../../setup/push-service.ts'
import { issueRecord, openedIssue } from '../../setup/issue-service.ts'
import { startService, type Service } from '../../setup/service.ts'
import { newPerson, openBrowser, PASSWORD, signIn, type Browser } from '../people/browser.ts'
import { replyOf } from '../web/contract.ts'

const PAUSE = 11_000
const MINUTE = 60_000

let service: Service
let calls: ApprovalCalls
let push: PushService
let publicKey = ''
let workspaceId = ''
let environmentId = ''
let clockMs = 0
const now = () => Date.now() + clockMs

before(async () => {
  service = await startService({ webhookNetworks: '127.0.0.0/8' }, now)
  calls = approvalCalls(service)
  ;({ environmentId } = service)
  push = await startPushService(() => publicKey)
  workspaceId = (await service.operator<{ items: { id: string }[] }>('/workspaces')).body.items[0]?.id ?? ''
})
after(async () => {
  await push.close()
  await service.close()
})

type Choice = NonNullable<NotificationSettingsChange['environments']>[number]
const everything = (change: Partial<Choice> = {}): Choice => {
  return { environmentId, kinds: ['approvals', 'alerts', 'issues'], severity: 'LOW', ...change }
}

const settings = async (person: Browser) => replyOf('readNotificationSettings', await person.get('/me/notifications'))
const change = async (person: Browser, body: NotificationSettingsChange) =>
  replyOf('changeNotificationSettings', await person.post('/me/notifications/change', body))
const quiet = (person: Browser, quietHours: QuietHours | null) => change(person, { quietHours })

async function add(person: Browser, browser = push.newBrowser()): Promise<PushBrowser & { id: string }> {
  const added = replyOf('addNotifiedBrowser', await person.post('/me/browsers', browser.subscription))
  return Object.assign(browser, { id: added.id })
}

/** Adds a person with a browser who gets all notifications of the environment. The previous person gets none from now on. */
let latest: Browser | null = null
async function listener(email: string, choice: Partial<Choice> = {}): Promise<[Browser, PushBrowser & { id: string }]> {
  if (latest) await change(latest, { environments: [] })
  await settled()
  const person = await newPerson(service, email, 'viewer', workspaceId)
  latest = person
  ;({ publicKey } = await change(person, { environments: [everything(choice)] }))
  return [person, await add(person)]
}

const arrived = (browser: PushBrowser, count = 1) =>
  eventually(() => (browser.pushes.length >= count ? browser.pushes[count - 1] : undefined), `message ${count}`)
/** Waits until all queued notifications are sent. Moves the clock past the pauses between them. */
async function settled(): Promise<void> {
  await eventually(async () => {
    clockMs += PAUSE
    // The server caches the size of its work queue for a second.
    await wait(1_100)
    return !/tacho_work_items\{kind="notify_people"\} [1-9]/.test((await service.call('/metrics')).text)
  }, 'all to be told')
  clockMs += PAUSE
}

const textOf = (person: Browser, { pushed }: NonNullable<PushBrowser['pushes'][number]>) =>
  person.get<NotificationText>(`/environments/${pushed.environmentId}/notifications/${pushed.event}/${pushed.id}`)

test('a request for approval reaches a browser, with ids only, and the text is read with the session', async () => {
  const [person, browser] = await listener('ada@example.com')
  const given = { toolName: 'refund_\u202Epayment', reason: 'over 100', timeoutMs: 10 * MINUTE }
  const { body: approval } = await calls.ask(given)
  const message = await arrived(browser)
  assert.ok(message)
  assert.deepEqual(message.pushed, { event: 'approval.requested', workspaceId, environmentId, id: approval.id })
  assert.ok(message.ttl > 590 && message.ttl <= 600, String(message.ttl))
  assert.equal(message.urgency, 'high')
  assert.match(message.topic ?? '', /^[0-9a-f]{32}$/)
  const text = replyOf('readNotification', await textOf(person, message))
  assert.deepEqual(text, {
    title: 'Approval requested: refund_\\u202epayment',
    body: 'over 100\ndevelopment',
    path: `/w/${workspaceId}/${environmentId}/approvals/${approval.id}`,
  })
  const [listed] = (await settings(person)).browsers
  assert.equal(listed?.id, browser.id)
  assert.equal(listed?.current, true)
  assert.ok(listed?.notifiedAt)
  await calls.decide(approval.id, 'APPROVED')
  const later = await textOf(person, message)
  assert.match(later.body.title, /^Approval decided: /)

  const stranger = await newPerson(service, 'stranger@example.com', 'owner', (await service.newTenant('s')).workspaceId)
  assert.equal((await textOf(stranger, message)).status, 404)
  assert.equal((await textOf(openBrowser(service), message)).status, 401)
  const unknown = `/environments/${environmentId}/notifications/alert.firing/${approval.id}`
  assert.equal((await person.get(unknown)).status, 404)
  assert.equal((await person.get(unknown.replace('alert.firing', 'run.failed'))).status, 400)
})

test('a flood is a few messages, which say how many wait', async () => {
  const [person, browser] = await listener('flood@example.com')
  // Send all requests at once. In turn, they could take longer than the time within which messages are combined.
  await Promise.all(Array.from({ length: 40 }, () => calls.ask({ timeoutMs: 60 * MINUTE })))
  await arrived(browser)
  const sentAt = clockMs
  await settled()
  // On a busy machine, `settled` advances the clock more often. Each pause lets one more message pass.
  const pauses = (clockMs - sentAt) / PAUSE
  assert.ok(browser.pushes.length <= 1 + pauses, `${browser.pushes.length} messages in ${pauses} pauses`)
  assert.ok(browser.pushes.length < 10, `${browser.pushes.length} messages`)
  const text = await textOf(person, browser.pushes[0] ?? assert.fail())
  assert.match(text.body.body, /\d+ more wait$/)
})

test('an approval is as severe as its policy, and a message is about the most severe', async () => {
  const [person, browser] = await listener('severe@example.com', { severity: 'HIGH' })
  const configuration = await configurationCalls(service)
  await configuration.newPolicy({ policyId: 'wire', severity: 'CRITICAL', action: 'REQUIRE_APPROVAL' })
  assert.equal((await configuration.deploy([['policy', 'wire', '1']])).status, 200)
  const asked = [{ policyId: 'wire' }, {}, { policyId: 'unknown' }]
  const ids = []
  for (const fields of asked) ids.push((await calls.ask(fields)).body.id)
  await settled()
  assert.deepEqual(
    browser.pushes.map(({ pushed }) => pushed.id),
    ids.slice(0, 1),
  )
  await change(person, { environments: [everything({ severity: 'CRITICAL' })] })
  await calls.ask({ policyId: 'wire' })
  await arrived(browser, 2)
})

test('people choose environments, kinds and the least severity; a role that is gone gets nothing', async () => {
  const [person, browser] = await listener('choice@example.com', { kinds: ['alerts', 'issues'] })
  const other = await add(await newPerson(service, 'all@example.com', 'viewer', workspaceId))
  await calls.ask()
  await settled()
  await change(person, { environments: [everything({ severity: 'HIGH' })] })
  await calls.ask()
  await settled()
  await change(person, { environments: [everything({ severity: 'MEDIUM' })] })
  const { body } = await calls.ask({ toolName: 'third' })
  assert.equal((await arrived(browser))?.pushed.id, body.id)
  assert.equal(other.attempts, 0, 'who chose nothing is told nothing')
  const { environments } = await settings(person)
  assert.deepEqual(environments, [{ workspaceId, ...everything({ severity: 'MEDIUM' }) }])

  const people = await service.operator<{ items: { id: string; email: string }[] }>(
    `/workspaces/${workspaceId}/operators`,
  )
  const gone = people.body.items.find(({ email }) => email === 'choice@example.com')
  await service.operator(`/workspaces/${workspaceId}/operators/${gone?.id}/remove`, { body: {} })
  const [, watcher] = await listener('watcher@example.com')
  await calls.ask()
  await arrived(watcher)
  assert.equal(browser.pushes.length, 1)
  assert.equal((await textOf(person, browser.pushes[0] ?? assert.fail())).status, 404)
  assert.deepEqual((await settings(person)).environments, [])
})

test('quiet hours hold back what lasts until they end, and drop what does not', async () => {
  const [person, browser] = await listener('night@example.com')
  const minute = Math.floor(now() / MINUTE) % 1_440
  const hours = { fromMinute: minute, toMinute: (minute + 30) % 1_440, timeZone: 'UTC', exceptCritical: true }
  await quiet(person, hours)
  await calls.ask({ toolName: 'short', timeoutMs: 20 * MINUTE })
  await settled()
  const { body: long } = await calls.ask({ toolName: 'long', timeoutMs: 60 * MINUTE })
  const [, awake] = await listenerBeside('awake@example.com')
  clockMs += PAUSE
  await calls.ask({ toolName: 'now', timeoutMs: 5 * MINUTE })
  await arrived(awake)
  assert.equal(browser.attempts, 0)
  clockMs += 31 * MINUTE
  assert.equal((await arrived(browser))?.pushed.id, long.id)
  await quiet(person, null)
  await settled()
  assert.equal(browser.pushes.length, 1)
})

async function listenerBeside(email: string) {
  const person = await newPerson(service, email, 'viewer', workspaceId)
  await change(person, { environments: [everything()] })
  return [person, await add(person)] as const
}

test('alerts and issues reach browsers', async () => {
  const [person, browser] = await listener('alerts@example.com')
  const { body: alert } = await service.operator<Alert>(`/environments/${environmentId}/alerts`, {
    body: { name: 'Nothing runs', kind: 'no_runs', threshold: 0, windowMinutes: 5, holdMinutes: 0 },
  })
  const firing = await arrived(browser)
  assert.deepEqual([firing?.pushed.event, firing?.pushed.id], ['alert.firing', alert.id])
  const text = await textOf(person, firing ?? assert.fail())
  assert.deepEqual([text.body.title, text.body.body], ['Alert: Nothing runs', 'development'])
  await service.operator(`/environments/${environmentId}/alerts/${alert.id}/remove`, { body: {} })
  assert.equal((await textOf(person, firing ?? assert.fail())).status, 404)
  const opened = await openedIssue(service, issueRecord({ detectionType: 'LOOP_DETECTED' }))
  const issue = await arrived(browser, 2)
  assert.deepEqual([issue?.pushed.event, issue?.pushed.id], ['issue.opened', opened.id])
  assert.match((await textOf(person, issue ?? assert.fail())).body.title, /^New issue: /)
})

test('a browser that its push service no longer knows is removed; a failure is tried again', async () => {
  const [person, browser] = await listener('gone@example.com')
  const other = await add(person)
  push.answerWith(browser, 410)
  push.answerWith(other, 503)
  await calls.ask({ timeoutMs: 60 * MINUTE })
  await eventually(() => browser.attempts === 1 && other.attempts === 1, 'both attempts')
  await eventually(async () => (await settings(person)).browsers.length === 1, 'the browser is removed')
  push.answerWith(other, 201)
  clockMs += MINUTE
  await arrived(other)
  assert.equal(browser.attempts, 1)
  push.answerWith(other, 503)
  clockMs += PAUSE
  await calls.ask({ timeoutMs: 24 * 60 * MINUTE })
  // Move the clock repeatedly, because the time of the next attempt is stored only after the previous attempt.
  for (const attempts of [3, 4, 5, 6, 7]) {
    await eventually(() => {
      if (other.attempts < attempts) clockMs += MINUTE
      return other.attempts >= attempts
    }, `attempt ${attempts}`)
  }
  clockMs += 15 * MINUTE
  push.answerWith(other, 201)
  await settled()
  assert.deepEqual([other.pushes.length, other.attempts], [1, 7])
})

test('a browser leaves with its session, and stays if another one opened it', async () => {
  const [person, browser] = await listener('leave@example.com')
  const elsewhere = openBrowser(service)
  await signIn(elsewhere, 'leave@example.com')
  const phone = await add(elsewhere)
  const renewed = { ...browser.subscription, renew: true }
  const ids = async (of: Browser) => (await settings(of)).browsers.map(({ id }) => id)
  assert.deepEqual(await ids(person), [browser.id, phone.id])
  assert.equal((await elsewhere.post('/sign-out')).status, 200)
  assert.deepEqual(await ids(person), [browser.id])

  const again = openBrowser(service)
  await signIn(again, 'leave@example.com')
  assert.equal(replyOf('addNotifiedBrowser', await again.post('/me/browsers', renewed)).id, browser.id)
  assert.equal((await again.post('/me/browsers', { ...phone.subscription, renew: true })).status, 404)
  const { items } = replyOf('listSessions', await again.get('/me/sessions'))
  const first = items.find(({ current }) => !current)
  await again.post(`/me/sessions/${first?.id}/end`)
  assert.deepEqual(await ids(again), [browser.id])
  const third = openBrowser(service)
  await signIn(third, 'leave@example.com')
  await third.post('/me/password', { password: PASSWORD, newPassword: `${PASSWORD}!` })
  assert.deepEqual(await ids(third), [])
  const another = await newPerson(service, 'another@example.com', 'viewer', workspaceId)
  assert.equal((await another.post('/me/browsers', renewed)).status, 404)
})

test('a browser is of one account, which has a limit of them and removes its own', async () => {
  const one = await newPerson(service, 'one@example.com', 'viewer', workspaceId)
  const two = await newPerson(service, 'two@example.com', 'viewer', workspaceId)
  const added = []
  for (let count = 0; count < LIMITS.notifiedBrowsers; count++) added.push(await add(one))
  const tooMany = await one.post('/me/browsers', push.newBrowser().subscription)
  assert.deepEqual([tooMany.status, tooMany.text.includes(String(LIMITS.notifiedBrowsers))], [409, true])
  const [shared, second] = added
  assert.ok(shared && second)
  await add(one, shared)
  await add(two, shared)
  assert.equal((await settings(one)).browsers.length, LIMITS.notifiedBrowsers - 1)
  assert.equal((await two.post(`/me/browsers/${second.id}/remove`)).status, 404)
  replyOf('removeNotifiedBrowser', await one.post(`/me/browsers/${second.id}/remove`))
  assert.equal((await settings(one)).browsers.length, LIMITS.notifiedBrowsers - 2)
  const log = await service.operator<AuditPage>('/audit?action=browser.remove')
  assert.equal(log.body.items[0]?.target.id, second.id)
  assert.ok(!(await service.operator('/audit')).text.includes(new URL(shared.subscription.endpoint).pathname))
})

test('addresses, keys, environments and quiet hours that cannot be are refused', async () => {
  const person = await newPerson(service, 'wrong@example.com', 'viewer', workspaceId)
  const { subscription } = push.newBrowser()
  const { keys, endpoint } = subscription
  const elsewhere = await service.newTenant('elsewhere')
  const hours = { fromMinute: 60, toMinute: 120, timeZone: 'Europe/Berlin', exceptCritical: false }
  const long = (length: number) => endpoint + 'x'.repeat(length - endpoint.length)
  for (const [path, body, words] of [
    ['/me/browsers', { keys, endpoint: 'http://example.com/push' }, 'https'],
    ['/me/browsers', { keys, endpoint: 'https://10.0.0.1/push' }, 'not public'],
    ['/me/browsers', { keys, endpoint: 'https://user:word@127.0.0.1/push' }, 'user or password'],
    ['/me/browsers', { keys, endpoint: 'ftp://127.0.0.1/push' }, 'https'],
    ['/me/browsers', { keys, endpoint: long(LIMITS.pushEndpointChars + 1) }, 'endpoint'],
    ['/me/browsers', { endpoint, keys: { ...keys, p256dh: 'A'.repeat(87) } }, 'P-256'],
    ['/me/browsers', { endpoint, keys: { ...keys, auth: 'A'.repeat(21) } }, 'auth'],
    [
      '/me/notifications/change',
      { environments: [everything({ environmentId: elsewhere.environmentId })] },
      'does not exist',
    ],
    ['/me/notifications/change', { environments: [everything({ kinds: [] })] }, 'kinds'],
    [
      '/me/notifications/change',
      { environments: Array.from({ length: LIMITS.notifiedEnvironments + 1 }, () => everything()) },
      'environments',
    ],
    ['/me/notifications/change', { quietHours: { ...hours, toMinute: 60 } }, 'another minute'],
    ['/me/notifications/change', { quietHours: { ...hours, toMinute: 1_440 } }, 'toMinute'],
    ['/me/notifications/change', { quietHours: { ...hours, timeZone: 'Europe/Atlantis' } }, 'IANA'],
    ['/me/notifications/change', { quietHours: { ...hours, timeZone: '+01:00' } }, 'IANA'],
  ] as const) {
    const refused = await person.post(path, body)
    assert.deepEqual([refused.status, refused.text.includes(words)], [400, true], `${words}: ${refused.text}`)
  }
  assert.equal((await person.post('/me/browsers', { keys, endpoint: long(LIMITS.pushEndpointChars) })).status, 200)
  const most = Array.from({ length: LIMITS.notifiedEnvironments }, () => everything())
  assert.equal((await change(person, { environments: most, quietHours: hours })).environments.length, 1)
  assert.deepEqual((await settings(person)).quietHours, hours)
  assert.equal((await service.operator('/me/notifications')).status, 403)
})

test('private addresses are refused unless the operator allows them', async () => {
  const plain = await startService()
  const tenants = await plain.operator<{ items: { id: string }[] }>('/workspaces')
  const person = await newPerson(plain, 'ada@example.com', 'viewer', tenants.body.items[0]?.id ?? '')
  const refused = await person.post('/me/browsers', push.newBrowser().subscription)
  assert.deepEqual([refused.status, refused.text.includes('not public')], [400, true])
  await plain.close()
})
