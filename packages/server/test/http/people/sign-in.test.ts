import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startService, type Service } from '../../setup/service.ts'
import { codeOf, newPerson, openBrowser, PASSWORD, signIn } from './browser.ts'
import { eventually } from '../../setup/eventually.ts'
import { refusalOf, replyOf } from '../web/contract.ts'

let service: Service
let workspaceId: string
before(async () => {
  service = await startService()
  workspaceId = (await service.newTenant('acme')).workspaceId
})
after(() => service.close())

const SESSION = 'tacho.session_token'

test('a person signs in by e-mail in any case and password, and gets their own account', async () => {
  await newPerson(service, 'Ann@Example.com', 'approver', workspaceId)
  const browser = openBrowser(service)
  const answer = await browser.post('/sign-in', { email: 'ANN@example.com', password: PASSWORD })
  assert.deepEqual(replyOf('signIn', answer), { status: 'signed_in' })
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  const line = answer.headers.getSetCookie().find((cookie) => cookie.startsWith(SESSION)) ?? ''
  assert.match(line, /HttpOnly/)
  assert.match(line, /SameSite=Lax/)
  assert.match(line, /Path=\//)
  assert.doesNotMatch(line, /Secure|Domain/)
  const me = replyOf('readMe', await browser.get('/me'))
  assert.deepEqual([me.kind, me.email, me.twoFactor, me.installation], ['operator', 'ann@example.com', false, false])
  assert.deepEqual(me.workspaces, [{ id: workspaceId, name: 'acme', role: 'approver' }])
  assert.deepEqual(refusalOf(await browser.get('/tokens')), [403, 'forbidden'])
  assert.deepEqual(refusalOf(await browser.post(`/workspaces/${workspaceId}/environments`, { name: 'x' })), [
    403,
    'forbidden',
  ])
})

test('behind TLS, the cookie is marked Secure', async (t) => {
  const proxied = await startService({ trustProxy: 'loopback' })
  const known = await startService({ publicUrl: 'https://tacho.example.com' })
  t.after(() => Promise.all([proxied.close(), known.close()]))
  for (const one of [proxied, known]) {
    await newPerson(one, 'ann@example.com', 'viewer', null)
    const answer = await one.call('/operator/v1/sign-in', {
      body: { email: 'ann@example.com', password: PASSWORD },
      headers: { 'x-forwarded-proto': 'https' },
    })
    for (const line of answer.headers.getSetCookie()) assert.match(line, /; Secure/)
    assert.ok(answer.headers.getSetCookie().length > 0)
  }
  // Links lead to the public address.
  const made = await known.operator<{ link: string }>('/invitations', {
    body: { email: 'x@y.example', role: 'viewer' },
  })
  assert.ok(made.body.link.startsWith('https://tacho.example.com/invitation#'))
})

test('a wrong password and an unknown address get the same answer', async () => {
  await newPerson(service, 'bob@example.com', 'viewer', workspaceId)
  const browser = openBrowser(service)
  const details = new Set<unknown>()
  for (const [email, password] of [
    ['bob@example.com', 'wrong'],
    ['nobody@example.com', PASSWORD],
    ['bob@example.com', ''],
  ]) {
    const answer = await browser.post('/sign-in', { email, password })
    if (password === '') {
      assert.deepEqual(refusalOf(answer), [400, 'invalid_request'])
      continue
    }
    assert.deepEqual(refusalOf(answer), [401, 'unauthenticated'])
    details.add((answer.body as { detail: string }).detail)
  }
  assert.equal(details.size, 1)
  assert.equal(browser.cookies.size, 0)
})

test("with a session cookie, changes are accepted only from the server's own origin", async () => {
  const browser = await newPerson(service, 'carl@example.com', 'owner', workspaceId)
  const path = `/workspaces/${workspaceId}/tokens`
  const body = { name: 't', role: 'viewer' }
  for (const headers of [
    {},
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: service.url, 'sec-fetch-site': 'cross-site' },
    { origin: service.url, 'sec-fetch-site': 'same-site' },
  ]) {
    const refused = await browser.post(path, body, headers as Record<string, string>)
    assert.deepEqual(refusalOf(refused), [403, 'forbidden'], JSON.stringify(headers))
  }
  replyOf('createToken', await browser.post(path, body))
  replyOf('createToken', await browser.post(path, body, { 'sec-fetch-site': 'same-origin' }))
  // Reads are safe from anywhere: other sites cannot read the answer.
  assert.equal((await browser.get(path)).status, 200)
  // A sign-in from another site is rejected too.
  const foreign = await openBrowser(service).post(
    '/sign-in',
    { email: 'carl@example.com', password: PASSWORD },
    { origin: 'https://evil.example' },
  )
  assert.deepEqual(refusalOf(foreign), [403, 'forbidden'])
})

test('signing out ends a session, and copies of its cookie are invalid', async () => {
  const browser = await newPerson(service, 'dora@example.com', 'viewer', workspaceId)
  const copy = openBrowser(service)
  copy.cookies.set(SESSION, browser.cookies.get(SESSION) ?? '')
  assert.equal((await copy.get('/me')).status, 200)
  replyOf('signOut', await browser.post('/sign-out'))
  assert.equal(browser.cookies.has(SESSION), false)
  assert.deepEqual(refusalOf(await copy.get('/me')), [401, 'unauthenticated'])
})

test('a person lists and ends their own sessions, and cannot find those of others', async () => {
  const one = await newPerson(service, 'eve@example.com', 'viewer', workspaceId)
  const two = openBrowser(service)
  await signIn(two, 'eve@example.com')
  const other = await newPerson(service, 'finn@example.com', 'viewer', workspaceId)
  const { items } = replyOf('listSessions', await one.get('/me/sessions'))
  assert.deepEqual(items.map(({ current }) => String(current)).toSorted(), ['false', 'true'])
  assert.ok(items.every(({ address }) => address === '127.0.0.1'))
  const second = items.find(({ current }) => !current)
  assert.deepEqual(refusalOf(await other.post(`/me/sessions/${second?.id}/end`)), [404, 'not_found'])
  replyOf('endSession', await one.post(`/me/sessions/${second?.id}/end`))
  assert.equal((await two.get('/me')).status, 401)
  assert.equal((await one.get('/me')).status, 200)
})

test('a changed password ends all other sessions, and only the new one signs in', async () => {
  const one = await newPerson(service, 'gina@example.com', 'viewer', workspaceId)
  const two = openBrowser(service)
  await signIn(two, 'gina@example.com')
  const newPassword = 'another long password'
  const change = (password: string, next: string) => one.post('/me/password', { password, newPassword: next })
  assert.deepEqual(refusalOf(await change('wrong', newPassword)), [403, 'forbidden'])
  assert.deepEqual(refusalOf(await change(PASSWORD, 'a'.repeat(11))), [400, 'invalid_request'])
  replyOf('changePassword', await change(PASSWORD, newPassword))
  assert.equal((await two.get('/me')).status, 401)
  assert.equal((await one.get('/me')).status, 200)
  const old = await two.post('/sign-in', { email: 'gina@example.com', password: PASSWORD })
  assert.deepEqual(refusalOf(old), [401, 'unauthenticated'])
  await signIn(two, 'gina@example.com', newPassword)
})

test('once confirmed, a second factor is required: a code, or a recovery code once', async () => {
  const email = 'hal@example.com'
  const browser = await newPerson(service, email, 'viewer', workspaceId)
  const add = (password: string) => browser.post('/me/second-factor', { password })
  assert.deepEqual(refusalOf(await add('wrong')), [403, 'forbidden'])
  assert.deepEqual(refusalOf(await browser.post('/me/second-factor/confirm', { code: '123456' })), [409, 'conflict'])
  const { uri, recoveryCodes } = replyOf('addSecondFactor', await add(PASSWORD))
  assert.match(uri, /^otpauth:\/\/totp\/Tacho:/)
  assert.equal(recoveryCodes.length, 10)

  // The password is enough until the second factor is confirmed.
  await signIn(openBrowser(service), email)
  assert.deepEqual(refusalOf(await browser.post('/me/second-factor/confirm', { code: '000000' })), [403, 'forbidden'])
  const confirming = codeOf(uri)
  replyOf('confirmSecondFactor', await browser.post('/me/second-factor/confirm', { code: confirming }))
  assert.equal(replyOf('readMe', await browser.get('/me')).twoFactor, true)
  assert.deepEqual(refusalOf(await add(PASSWORD)), [409, 'conflict'])

  const challenged = async () => {
    const fresh = openBrowser(service)
    const answer = await fresh.post('/sign-in', { email, password: PASSWORD })
    assert.deepEqual(replyOf('signIn', answer), { status: 'second_factor_needed' })
    assert.equal(fresh.cookies.has(SESSION), false)
    assert.equal((await fresh.get('/me')).status, 401)
    return fresh
  }
  const withCode = await challenged()
  assert.deepEqual(refusalOf(await withCode.post('/sign-in/code', { code: '000000' })), [401, 'unauthenticated'])
  // An observer may have seen the code that confirmed the factor. The next one is already valid.
  const tooSoon = await challenged()
  assert.deepEqual(refusalOf(await tooSoon.post('/sign-in/code', { code: confirming })), [401, 'unauthenticated'])
  assert.equal(tooSoon.cookies.has(SESSION), false)
  const code = codeOf(uri, Date.now() + 30_000)
  replyOf('signInWithCode', await withCode.post('/sign-in/code', { code }))
  assert.equal((await withCode.get('/me')).status, 200)
  // A code that was already used is rejected.
  const onlooker = await challenged()
  assert.deepEqual(refusalOf(await onlooker.post('/sign-in/code', { code })), [401, 'unauthenticated'])
  assert.equal(onlooker.cookies.has(SESSION), false)

  const [recovery = ''] = recoveryCodes
  const withRecovery = await challenged()
  replyOf('signInWithRecoveryCode', await withRecovery.post('/sign-in/recovery-code', { code: recovery }))
  assert.equal((await withRecovery.get('/me')).status, 200)
  const again = await challenged()
  assert.deepEqual(refusalOf(await again.post('/sign-in/recovery-code', { code: recovery })), [401, 'unauthenticated'])

  // Concurrent attempts with one code: one succeeds, the others find it used.
  const [, , contested = ''] = recoveryCodes
  const racers = await Promise.all([challenged(), challenged(), challenged(), challenged()])
  const race = await Promise.all(racers.map((each) => each.post('/sign-in/recovery-code', { code: contested })))
  assert.deepEqual(
    race.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 401, 401, 401],
  )

  // Without a challenge no code is accepted.
  const bare = await openBrowser(service).post('/sign-in/code', { code: codeOf(uri) })
  assert.deepEqual(refusalOf(bare), [401, 'unauthenticated'])

  assert.deepEqual(refusalOf(await browser.post('/me/second-factor/remove', { password: 'wrong' })), [403, 'forbidden'])
  replyOf('removeSecondFactor', await browser.post('/me/second-factor/remove', { password: PASSWORD }))
  await signIn(openBrowser(service), email)
})

/** A person with a confirmed second factor, and another session of theirs that began before it. */
async function withSecondFactor(email: string) {
  const browser = await newPerson(service, email, 'viewer', workspaceId)
  const earlier = openBrowser(service)
  await signIn(earlier, email)
  const { uri, recoveryCodes } = replyOf(
    'addSecondFactor',
    await browser.post('/me/second-factor', { password: PASSWORD }),
  )
  assert.equal((await earlier.get('/me')).status, 200)
  replyOf('confirmSecondFactor', await browser.post('/me/second-factor/confirm', { code: codeOf(uri) }))
  return { browser, earlier, uri, recoveryCodes }
}

test('switching the second factor on ends the other sessions, and keeps the own one', async () => {
  const { browser, earlier } = await withSecondFactor('kate@example.com')
  assert.deepEqual(refusalOf(await earlier.get('/me')), [401, 'unauthenticated'])
  assert.equal(replyOf('listSessions', await browser.get('/me/sessions')).items.length, 1)
})

test('a changed password ends sign-ins that wait for their second factor', async () => {
  const email = 'liam@example.com'
  const { browser, uri, recoveryCodes } = await withSecondFactor(email)
  const [withCode, withRecovery] = [openBrowser(service), openBrowser(service)]
  for (const waiting of [withCode, withRecovery]) {
    const answer = await waiting.post('/sign-in', { email, password: PASSWORD })
    assert.deepEqual(replyOf('signIn', answer), { status: 'second_factor_needed' })
  }
  const change = { password: PASSWORD, newPassword: 'another long password' }
  replyOf('changePassword', await browser.post('/me/password', change))
  const code = codeOf(uri, Date.now() + 30_000)
  const [recovery = ''] = recoveryCodes
  assert.deepEqual(refusalOf(await withCode.post('/sign-in/code', { code })), [401, 'unauthenticated'])
  const late = await withRecovery.post('/sign-in/recovery-code', { code: recovery })
  assert.deepEqual(refusalOf(late), [401, 'unauthenticated'])
  // Neither code was used, so both are accepted with the new password.
  const fresh = openBrowser(service)
  await fresh.post('/sign-in', { email, password: change.newPassword })
  replyOf('signInWithRecoveryCode', await fresh.post('/sign-in/recovery-code', { code: recovery }))
})

test('tokens have no sessions, password or second factor', async () => {
  for (const [path, body] of [
    ['/me/sessions', undefined],
    ['/me/password', { password: 'x', newPassword: PASSWORD }],
    ['/me/second-factor', { password: 'x' }],
  ] as const) {
    const answer = await service.operator(path, body === undefined ? {} : { body })
    assert.deepEqual(refusalOf(answer), [403, 'forbidden'], path)
  }
})

test('a bad token fails even with a valid cookie', async () => {
  const browser = await newPerson(service, 'iris@example.com', 'viewer', workspaceId)
  const cookie = `${SESSION}=${browser.cookies.get(SESSION)}`
  const call = (authorization: string) => service.call('/operator/v1/me', { headers: { cookie, authorization } })
  assert.equal((await call('Bearer x')).status, 401)
  assert.equal((await call('Basic eDp5')).status, 401)
})

test('a cookie without a session is rejected', async () => {
  for (const value of ['', 'x', '%', 'a.b', `${'a'.repeat(32)}.${'b'.repeat(44)}`, '%00'.repeat(32)]) {
    const answer = await service.call('/operator/v1/me', { headers: { cookie: `${SESSION}=${value}` } })
    assert.deepEqual(refusalOf(answer), [401, 'unauthenticated'], value)
  }
})

test('sign-ins and rejected attempts are logged, without passwords or codes', async () => {
  const email = 'jack@example.com'
  await newPerson(service, email, 'viewer', workspaceId)
  await openBrowser(service).post('/sign-in', { email, password: 'a wrong password' })
  // The reply does not wait for the audit entry: its timing would reveal that the account exists.
  const entries = async () => {
    const { items } = replyOf('listInstallationAudit', await service.operator('/audit'))
    return items.filter(({ actor }) => actor.name === email)
  }
  await eventually(async () => (await entries()).length === 3, 'the entry of the refused sign-in')
  const own = await entries()
  assert.deepEqual(
    own.map(({ action }) => action),
    ['operator.sign_in.refused', 'operator.sign_in', 'operator.accept_invitation'],
  )
  assert.equal(own[0]?.detail['why'], 'wrong_password')
  for (const secret of [PASSWORD, 'a wrong password', 'tacho-invitation_']) {
    assert.ok(!JSON.stringify(own).includes(secret), secret)
  }
})

test('guessing is limited per account, from any address, and per address, for any account', async (t) => {
  // No other test signs in from this address.
  const guessed = await startService()
  t.after(() => guessed.close())
  const browser = openBrowser(guessed)
  const attempt = (email: string) => browser.post('/sign-in', { email, password: 'guess' })
  const statuses: number[] = []
  for (let tries = 0; tries < 11; tries++) statuses.push((await attempt('victim@example.com')).status)
  assert.deepEqual(statuses, [...Array<number>(10).fill(401), 429])
  const limited = await attempt('victim@example.com')
  assert.deepEqual(refusalOf(limited), [429, 'rate_limited'])
  assert.ok(Number(limited.headers.get('retry-after')) > 60)
  assert.equal((await attempt('other@example.com')).status, 401)
  let last = 0
  for (let tries = 0; tries < 60 && last !== 429; tries++) last = (await attempt(`user${tries}@example.com`)).status
  assert.equal(last, 429)
  assert.equal((await attempt('yet.another@example.com')).status, 429)
})
