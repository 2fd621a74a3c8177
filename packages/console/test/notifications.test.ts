/**
 * Notifications in a real Chromium. Its push service is not available, so it subscribes at the tests' push service, and the
 * tests deliver the received messages to the service worker. The headless shell has no notifications, so the worker gets a
 * list in their place. With TEST_CHROMIUM=<a whole Chromium>, they are real.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { NotificationSettings } from '@tacho/contract/messages/notification.ts'
import type { Page, Worker } from 'playwright-core'
import { approvalCalls } from '../../server/test/setup/approval-service.ts'
import { eventually } from '../../server/test/setup/eventually.ts'
import { startPushService, type PushBrowser, type PushService } from '../../server/test/setup/push-service.ts'
import { newPerson, type Browser as Person } from '../../server/test/http/people/browser.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, startConsole, type TestConsole } from './setup/console.ts'

interface ShownNotification {
  title: string
  body: string
  tag: string
  data: unknown
  close(): void
}

/** The global scope of the service worker. */
interface Scope extends EventTarget {
  registration: ServiceWorkerRegistration
  clients: object
  opened: string[]
}

describe('notifications', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  let push: PushService
  let publicKey = ''
  before(async () => {
    tacho = await startConsole({ webhookNetworks: '127.0.0.0/8' })
    push = await startPushService(() => publicKey)
  })
  after(async () => {
    await push.close()
    await tacho.close()
  })

  const settings = async (person: Person) => (await person.get<NotificationSettings>('/me/notifications')).body

  /** Makes the page's push manager subscribe at the tests' push service. */
  async function subscribesAt(page: Page, { subscription }: PushBrowser): Promise<void> {
    await page.addInitScript((json) => {
      const one = { endpoint: json.endpoint, toJSON: () => json, unsubscribe: () => Promise.resolve(isOn('')) }
      const isOn = (next?: string) => {
        if (next !== undefined) sessionStorage.setItem('subscribed', next)
        return sessionStorage.getItem('subscribed') === 'yes'
      }
      PushManager.prototype.getSubscription = () =>
        Promise.resolve((isOn() ? one : null) as unknown as PushSubscription | null)
      let permission = Notification.permission === 'denied' ? 'default' : Notification.permission
      if (permission === 'default') {
        Object.defineProperty(Notification, 'permission', { get: () => permission })
        Notification.requestPermission = () => Promise.resolve((permission = 'granted'))
      }
      PushManager.prototype.subscribe = () => {
        isOn('yes')
        return Promise.resolve(one as unknown as PushSubscription)
      }
    }, subscription)
  }

  /** Delivers a message to the service worker, as the browser does. */
  async function deliver(page: Page, data: string): Promise<void> {
    const session = await page.context().newCDPSession(page)
    const registered = new Promise<string>((resolve) => {
      session.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
        const own = registrations.find(
          ({ scopeURL, isDeleted }) => scopeURL.startsWith(tacho.service.url) && !isDeleted,
        )
        if (own) resolve(own.registrationId)
      })
    })
    await session.send('ServiceWorker.enable')
    const registrationId = await registered
    await session.send('ServiceWorker.deliverPushMessage', { origin: tacho.service.url, registrationId, data })
    await session.detach()
  }

  /** Switches on notifications in a page, and returns its service worker. */
  async function switchedOn(page: Page): Promise<Worker> {
    const started = page.context().waitForEvent('serviceworker')
    await page.getByRole('switch', { name: 'Notify this browser' }).click()
    const worker = await started
    await worker.evaluate(() => {
      const scope = globalThis as unknown as Scope
      scope.opened = []
      // Record the address, because a browser opens windows only after a real click.
      const openWindow = (url: string) => Promise.resolve(void scope.opened.push(url))
      Object.defineProperty(scope.clients, 'openWindow', { value: openWindow })
      if (Notification.permission === 'granted') return
      let list: ShownNotification[] = []
      scope.registration.showNotification = (title, options = {}) => {
        const { body = '', tag = '', data } = options as { body?: string; tag?: string; data: unknown }
        const close = () => (list = list.filter((one) => one.tag !== tag))
        close()
        list.push({ title, body, tag, data, close })
        return Promise.resolve()
      }
      scope.registration.getNotifications = () => Promise.resolve(list as unknown as Notification[])
    })
    return worker
  }

  const shown = (worker: Worker) =>
    worker.evaluate(async () => {
      const all = await (globalThis as unknown as Scope).registration.getNotifications()
      return all.map(({ title, body, tag, data }) => ({ title, body, tag, data: String(data) }))
    })

  /** Clicks the only notification, and returns the address that it opens. */
  const click = (worker: Worker) =>
    worker.evaluate(async () => {
      const scope = globalThis as unknown as Scope
      const [notification] = await scope.registration.getNotifications()
      if (!notification) throw new Error('There is no notification')
      const work: Promise<unknown>[] = []
      const event = new Event('notificationclick')
      scope.dispatchEvent(
        Object.assign(event, { notification, waitUntil: (promise: Promise<unknown>) => void work.push(promise) }),
      )
      await Promise.all(work)
      return scope.opened.splice(0)[0] ?? ''
    })

  test('a person switches a browser on, chooses what they are told and when, and gets it', async () => {
    const { service, home } = tacho
    const person = await newPerson(service, 'grace@example.com', 'approver', null)
    ;({ publicKey } = await settings(person))
    const browser = push.newBrowser()
    const opened = await tacho.open(home, { as: person, permissions: ['notifications'] })
    const { page } = opened
    await subscribesAt(page, browser)
    await page.goto(`${home}/settings/account`)
    const part = page.getByRole('region', { name: 'Notifications' })
    const isOn = part.getByRole('switch', { name: 'Notify this browser' })
    assert.equal(await isOn.isChecked(), false)
    assert.equal(page.context().serviceWorkers().length, 0, 'nothing is registered before the click')
    const worker = await switchedOn(page)
    await part.getByRole('table', { name: 'Notified browsers' }).getByText('this one').waitFor()
    await isOn.and(page.locator(':checked')).waitFor()
    const { environmentId } = service
    const first = (await settings(person)).environments
    assert.deepEqual(
      first.map(({ workspaceId: _workspace, ...choice }) => choice),
      [{ environmentId, kinds: ['approvals', 'alerts'], severity: 'LOW' }],
    )

    await part.getByRole('checkbox', { name: 'issues' }).check()
    await part.getByLabel('Severity in development').selectOption('MEDIUM')
    await part.getByRole('button', { name: 'Set…' }).click()
    await page.getByLabel('From').fill('23:30')
    await page.getByLabel('Time zone').selectOption('Europe/Berlin')
    await assertLooks(page, 'quiet hours')
    await page.getByRole('button', { name: 'Save' }).click()
    await part.getByText('23:30 to 07:00, Europe/Berlin, except for what is CRITICAL').waitFor()
    await eventually(async () => {
      const { environments, quietHours } = await settings(person)
      assert.deepEqual(
        [environments[0]?.kinds, environments[0]?.severity],
        [['approvals', 'alerts', 'issues'], 'MEDIUM'],
      )
      assert.deepEqual([quietHours?.fromMinute, quietHours?.toMinute], [1_410, 420])
      return true
    }, 'the choices to be stored')
    await part.getByRole('button', { name: 'Remove', exact: true }).click()
    await part.getByText('None: you are told at any time.').waitFor()

    const { body: approval } = await approvalCalls(service).ask({ toolName: 'refund', reason: '<b>over</b> 100' })
    const message = await eventually(() => browser.pushes[0], 'the message')
    await deliver(page, JSON.stringify(message.pushed))
    const [notification] = await eventually(async () => {
      const all = await shown(worker)
      return all.length > 0 ? all : null
    }, 'the notification')
    assert.deepEqual(
      [notification?.title, notification?.body],
      ['Approval requested: refund', '<b>over</b> 100\ndevelopment'],
    )
    const address = await click(worker)
    assert.deepEqual(await shown(worker), [])
    await page.goto(address)
    await page.getByText('refund').first().waitFor()
    assert.ok(address.endsWith(`/approvals/${approval.id}`))

    await page.goto(`${home}/settings/account`)
    await part.getByRole('table', { name: 'Notified browsers' }).waitFor()
    await part.getByText('this one').waitFor()
    await assertLooks(page, 'account with notifications')
    await part.getByRole('button', { name: /^Remove .*Linux/ }).click()
    await part.getByRole('table', { name: 'Notified browsers' }).waitFor({ state: 'detached' })
    await isOn.and(page.locator(':not(:checked)')).waitFor()
    await opened.close()
  })

  test('a browser that is signed out says only that something waits', async () => {
    const { service, home } = tacho
    const person = await newPerson(service, 'hedy@example.com', 'approver', null)
    ;({ publicKey } = await settings(person))
    const opened = await tacho.open(home, { as: person, permissions: ['notifications'] })
    const { page } = opened
    await subscribesAt(page, push.newBrowser())
    await page.goto(`${home}/settings/account`)
    const worker = await switchedOn(page)
    await page.getByRole('table', { name: 'Notified browsers' }).waitFor()
    // After a reload, the browser still belongs to the same row.
    await page.reload()
    await page.getByText('this one').first().waitFor()
    await page.context().clearCookies()
    const { body: approval } = await approvalCalls(service).ask({ toolName: 'secret_tool' })
    const ids = { workspaceId: 'w', environmentId: service.environmentId, id: approval.id }
    for (const [data, title] of [
      [JSON.stringify({ event: 'approval.requested', ...ids }), 'An approval is waiting'],
      [JSON.stringify({ event: 'constructor', ...ids }), 'Tacho needs you'],
      ['not JSON', 'Tacho needs you'],
    ] as const) {
      await deliver(page, data)
      const [notification] = await eventually(async () => {
        const all = await shown(worker)
        return all.length > 0 ? all : null
      }, title)
      assert.equal(notification?.title, title)
      assert.ok(!JSON.stringify(notification).includes('secret_tool'))
      const address = await click(worker)
      assert.ok(address.startsWith(`${service.url}/`), address)
    }
    await opened.close()
  })

  test('the console can be installed as an app', async () => {
    const opened = await tacho.open()
    const session = await opened.page.context().newCDPSession(opened.page)
    const manifest = await session.send('Page.getAppManifest')
    assert.deepEqual([new URL(manifest.url).pathname, manifest.errors], ['/manifest.webmanifest', []])
    const { installabilityErrors } = await session.send('Page.getInstallabilityErrors')
    // A private window, as in all tests, does not install the console.
    assert.deepEqual(
      installabilityErrors.filter(({ errorId }) => errorId !== 'in-incognito'),
      [],
    )
    await opened.close()
  })

  test('a browser without push, or that refuses, says so in a sentence', async () => {
    const opened = await tacho.open()
    const { page } = opened
    await page.addInitScript(() => Reflect.deleteProperty(window, 'PushManager'))
    await page.goto(`${tacho.home}/settings/account`)
    await page.getByText('This browser cannot show notifications.').waitFor()
    await assertLooks(page, 'account without push')
    await opened.close()
  })
})
