/** Sign-in: the link of the first start, a password, a second factor, and the return to the requested page. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { codeOf, openBrowser, signIn } from '../../server/test/http/people/browser.ts'
import { readConfig } from '../../server/src/config/config.ts'
import { startServer } from '../../server/test/setup/start-server.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertAccessible, EMAIL, PASSWORD, startConsole, type TestConsole } from './setup/console.ts'

describe('sign-in', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
  })
  after(() => tacho.close())

  test('a page leads to sign-in and, with the right password, back to where the person wanted to go', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs?status=FAILED`, { signedOut: true })
    await page.getByLabel('E-mail').fill(EMAIL)
    await page.getByLabel('Password').fill('the wrong password')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').filter({ hasText: /./ }).waitFor()
    await assertAccessible(page, 'sign-in')
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Runs' }).waitFor()
    assert.equal(page.url(), `${tacho.home}/runs?status=FAILED`)
    await page.reload()
    await page.getByRole('heading', { name: 'Runs' }).waitFor()
    await close()
  })

  test('works below a path, where a proxy removes it', async () => {
    const proxy = createServer((request, reply) => {
      const url = request.url ?? ''
      if (!url.startsWith('/tacho/')) return void reply.writeHead(404).end()
      const { headers, method } = request
      const onward = httpRequest(tacho.service.url + url.slice('/tacho'.length), { headers, method }, (answer) => {
        reply.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(reply)
      })
      onward.on('error', () => reply.destroy())
      request.pipe(onward)
    })
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/tacho`
    const { page, close } = await tacho.open(`${address}/w/default/development/runs?status=FAILED`, { signedOut: true })
    await page.getByLabel('E-mail').fill(EMAIL)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Runs' }).waitFor()
    assert.equal(page.url(), `${address}/w/default/development/runs?status=FAILED`)
    await page.getByRole('link', { name: 'Issues' }).first().click()
    await page.waitForURL(`${address}/w/default/development/issues**`)
    await page.reload()
    await page.getByRole('heading', { name: 'Issues', exact: true }).waitFor()
    await page.goto(`${address}/`)
    await page.waitForURL(`${address}/w/default/development`)
    for (const [docs, title] of [
      ['docs', 'Tacho API'],
      ['docs/guide/sdk/python', 'The Python SDK · Tacho'],
    ] as const) {
      await page.goto(`${address}/${docs}`)
      assert.equal(await page.title(), title)
      await page.getByRole('banner').getByRole('link', { name: 'Console' }).click()
      await page.waitForURL(`${address}/w/default/development`)
    }
    await close()
    proxy.closeAllConnections()
    proxy.close()
  })

  test('an address of another site is never gone back to', async () => {
    const back = encodeURIComponent('//example.com/w/')
    const { page, close } = await tacho.open(`${tacho.service.url}/sign-in?back=${back}`, { signedOut: true })
    await page.getByLabel('E-mail').fill(EMAIL)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    await page.waitForURL(tacho.home)
    await close()
  })

  test('signing out ends the session, and a session that has ended leads to sign-in', async () => {
    const { page, close } = await tacho.open(tacho.home, { signedOut: true })
    await page.getByLabel('E-mail').fill(EMAIL)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: /Account of/ }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL('**/sign-in')
    await page.goto(`${tacho.home}/runs`)
    await page.waitForURL('**/sign-in?back=*')
    await close()
  })

  test('a second factor is asked for, and a recovery code takes its place', async () => {
    const person = openBrowser(tacho.service)
    await signIn(person, EMAIL)
    const { body } = await person.post<{ uri: string; recoveryCodes: string[] }>('/me/second-factor', {
      password: PASSWORD,
    })
    const confirmed = await person.post('/me/second-factor/confirm', { code: codeOf(body.uri) })
    assert.equal(confirmed.status, 200)
    const { page, close } = await tacho.open(tacho.home, { signedOut: true })
    await page.getByLabel('E-mail').fill(EMAIL)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    await page.getByLabel('Code of your authenticator').fill('000000')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').filter({ hasText: /./ }).waitFor()
    await page.getByRole('button', { name: 'Use a recovery code' }).click()
    await page.getByLabel('Recovery code').fill(body.recoveryCodes[0] ?? '')
    await page.keyboard.press('Enter')
    await page.waitForURL(tacho.home)
    await close()
  })

  test('the link of the first start makes the first account, once, and leads into the console', async () => {
    const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-first-'))
    const read = readConfig({ port: '0', dataDir: directory, logLevel: 'silent' }, {})
    assert.ok(read.ok)
    let printed = ''
    const server = await startServer(read.config, { print: (text) => (printed += text) })
    const link = /http\S+\/invitation#\S+/.exec(printed)?.[0] ?? ''
    const { page, close } = await tacho.open('about:blank', { signedOut: true, origin: new URL(link).origin })
    const refused: string[] = []
    page.on(
      'response',
      (response) => response.status() >= 400 && refused.push(`${response.status()} ${response.url()}`),
    )
    await page.goto(link)
    await page.getByLabel('Your e-mail address').fill('first@example.com')
    await page.getByLabel('Your name').fill('First Person')
    await page.getByLabel(/^New password/).fill(PASSWORD)
    await page.getByRole('button').click()
    // The page goes on by itself, and the browser logs no error.
    await page.getByRole('heading', { name: /^Nothing has been recorded/ }).waitFor()
    assert.deepEqual(refused, [])
    await page.goto('about:blank')
    await page.goto(link)
    await page.getByText('This link no longer works').waitFor()
    await close()
    await server.close()
    rmSync(directory, { recursive: true })
  })
})
