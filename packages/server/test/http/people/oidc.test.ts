import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startIdentityProvider, TOKEN_FAULTS, type IdentityProvider } from '../../setup/identity-provider.ts'
import { startService, type Service } from '../../setup/service.ts'
import { invite, newPerson, openBrowser, PASSWORD, signIn } from './browser.ts'
import { refusalOf, replyOf } from '../web/contract.ts'
import { goThrough, personAt as person, startAt as startWith } from './at-provider.ts'

let provider: IdentityProvider
let service: Service
let workspaceId: string

before(async () => {
  provider = await startIdentityProvider()
  service = await startWith(provider)
  workspaceId = (await service.newTenant('acme')).workspaceId
})
after(async () => {
  await service.close()
  await provider.close()
})

test("sign-in shows the identity provider's name", async () => {
  const methods = replyOf('readSignInMethods', await service.call('/operator/v1/sign-in/methods'))
  assert.deepEqual(methods, { password: true, oidc: { name: 'Acme ID' } })
})

test('an invited person signs in with a verified address, and gets the invited roles', async () => {
  await invite(service, 'Ann@example.com', 'approver', workspaceId)
  provider.person = person('ann', 'ANN@example.com', { name: 'Ann Lee' })
  const browser = openBrowser(service)
  assert.equal(await goThrough(browser), '/')
  const me = replyOf('readMe', await browser.get('/me'))
  assert.deepEqual([me.name, me.email, me.everywhere], ['Ann Lee', 'ann@example.com', null])
  assert.deepEqual(
    me.workspaces.map(({ role }) => role),
    ['approver'],
  )
  // Again, with no invitation left.
  assert.equal(await goThrough(openBrowser(service)), '/')
  const { items } = replyOf('listOperators', await service.operator(`/workspaces/${workspaceId}/operators`))
  assert.equal(items.filter(({ email }) => email === 'ann@example.com').length, 1)
})

test('signing in accepts no old invitation that would change a role', async () => {
  const email = 'nora@example.com'
  await invite(service, email, 'viewer', workspaceId)
  provider.person = person('nora', email)
  const browser = openBrowser(service)
  assert.equal(await goThrough(browser), '/')
  const { id } = replyOf('readMe', await browser.get('/me'))
  await invite(service, email, 'viewer', null)
  replyOf('changeInstallationRole', await service.operator(`/operators/${id}/role`, { body: { role: 'approver' } }))
  for (let times = 0; times < 2; times++) {
    assert.equal(await goThrough(browser), '/')
    assert.equal(replyOf('readMe', await browser.get('/me')).everywhere, 'approver')
  }
})

test('a stranger, an unverified address and another domain are rejected and leave nothing', async () => {
  await invite(service, 'invited@example.com', 'viewer', workspaceId)
  const before = replyOf('listInstallationOperators', await service.operator('/operators')).items.length
  for (const claims of [
    person('s1', 'stranger@example.com'),
    person('s2', 'invited@example.com', { email_verified: false }),
    person('s3', 'invited@example.com', { email_verified: 'true' }),
    person('s4', 'invited@example.com', { email_verified: undefined }),
    person('s5', 'x@sub.example.org'),
    person('s6', 'x@example.org', { email_verified: false }),
    person('s7', 'x@notexample.org'),
    { sub: 's8' },
  ]) {
    provider.person = claims
    const browser = openBrowser(service)
    assert.equal(await goThrough(browser), '/?sign-in=refused', JSON.stringify(claims))
    assert.equal((await browser.get('/me')).status, 401)
  }
  assert.equal(replyOf('listInstallationOperators', await service.operator('/operators')).items.length, before)
})

test("a person with an address of the domain signs in without an invitation, with the domain's role", async () => {
  provider.person = person('dan', 'dan@example.org')
  const browser = openBrowser(service)
  assert.equal(await goThrough(browser), '/')
  const me = replyOf('readMe', await browser.get('/me'))
  assert.deepEqual([me.everywhere, me.installation], ['approver', false])
  // A removed role is not granted again.
  replyOf('changeInstallationRole', await service.operator(`/operators/${me.id}/role`, { body: { role: null } }))
  assert.equal(await goThrough(browser), '/')
  assert.equal(replyOf('readMe', await browser.get('/me')).everywhere, null)
})

test('an answer of the identity provider with one lie signs nobody in', async (t) => {
  t.after(() => (provider.fault = 'none'))
  provider.person = person('ann', 'ann@example.com')
  for (const fault of [...TOKEN_FAULTS, 'answer of another issuer'] as const) {
    provider.fault = fault
    const browser = openBrowser(service)
    assert.equal(await goThrough(browser), '/?sign-in=refused', fault)
    assert.equal((await browser.get('/me')).status, 401, fault)
  }
})

test('a discovery document of another issuer is refused', async (t) => {
  const liar = await startIdentityProvider()
  liar.fault = 'discovery of another issuer'
  const misled = await startWith(liar)
  t.after(async () => {
    await misled.close()
    await liar.close()
  })
  assert.deepEqual(refusalOf(await openBrowser(misled).post('/sign-in/oidc')), [503, 'sign_in_unavailable'])
  liar.fault = 'none'
  assert.equal((await openBrowser(misled).post('/sign-in/oidc')).status, 200)
})

test('a person of another issuer with the same subject gets no account, and moves theirs by its address, once', async (t) => {
  const [former, latter] = await Promise.all([startIdentityProvider(), startIdentityProvider()])
  const first = await startWith(former)
  let running = first
  t.after(async () => {
    if (running !== first) await running.close()
    await first.close()
    await Promise.all([former.close(), latter.close()])
  })
  const { workspaceId: workspace } = await first.newTenant('heirs')
  await invite(running, 'ann@example.com', 'owner', null)
  former.person = person('1', 'ann@example.com')
  const ann = openBrowser(running)
  assert.equal(await goThrough(ann), '/')
  const { id } = replyOf('readMe', await ann.get('/me'))

  await first.stop()
  running = await startWith(latter, { dataDir: first.directory }, { TACHO_INIT_OPERATOR_TOKEN: first.operatorToken })
  for (const claims of [
    person('1', 'eve@example.com'),
    person('1', 'eve@example.com', { email_verified: false }),
    person('1', 'ann@example.com', { email_verified: false }),
    person('1', 'eve@elsewhere.example'),
  ]) {
    latter.person = claims
    assert.equal(await goThrough(openBrowser(running)), '/?sign-in=refused', JSON.stringify(claims))
  }
  latter.person = person('2', 'ann@example.com')
  const moved = openBrowser(running)
  assert.equal(await goThrough(moved), '/')
  assert.equal(replyOf('readMe', await moved.get('/me')).id, id)
  const query = '/audit?action=operator.link_identity'
  const links = replyOf('listInstallationAudit', await running.operator(query)).items.map(({ detail }) => detail)
  assert.deepEqual(links, [{ issuer: latter.issuer }, { issuer: former.issuer }])

  // A person of the new issuer has this address now. They get the account only by an invitation.
  latter.person = person('3', 'ann@example.com')
  assert.equal(await goThrough(openBrowser(running)), '/?sign-in=refused')
  await invite(running, 'ann@example.com', 'viewer', workspace)
  const heir = openBrowser(running)
  assert.equal(await goThrough(heir), '/')
  assert.equal(replyOf('readMe', await heir.get('/me')).id, id)
  const members = replyOf('listOperators', await running.operator(`/workspaces/${workspace}/operators`)).items
  assert.deepEqual(
    members.map(({ email, role }) => [email, role]),
    [['ann@example.com', 'viewer']],
  )
  assert.equal((await moved.get('/me')).status, 401)
  latter.person = person('2', 'ann@example.com')
  assert.equal(await goThrough(openBrowser(running)), '/?sign-in=refused')
})

test('an ended account stays ended until an invitation, also for an address of the domain', async () => {
  provider.person = person('eddy', 'eddy@example.org')
  const browser = openBrowser(service)
  assert.equal(await goThrough(browser), '/')
  const { id } = replyOf('readMe', await browser.get('/me'))
  replyOf('deleteOperator', await service.operator(`/operators/${id}/remove`, { method: 'POST' }))
  assert.equal(await goThrough(openBrowser(service)), '/?sign-in=refused')
  provider.person = person('eddy again', 'EDDY@example.org')
  assert.equal(await goThrough(openBrowser(service)), '/?sign-in=refused')
  await invite(service, 'eddy@example.org', 'viewer', workspaceId)
  const back = openBrowser(service)
  assert.equal(await goThrough(back), '/')
  assert.equal(replyOf('readMe', await back.get('/me')).everywhere, null)
})

test('sixty people of one office sign in one after another', async () => {
  provider.person = person('ann', 'ann@example.com')
  for (let times = 0; times < 60; times++) assert.equal(await goThrough(openBrowser(service)), '/')
})

test('an address that was refused too often gets the page of the console, and not JSON', async (t) => {
  const other = await startWith(provider)
  t.after(() => other.close())
  provider.person = person('stranger', 'stranger@example.com')
  for (let times = 0; times < 50; times++) assert.equal(await goThrough(openBrowser(other)), '/?sign-in=refused')
  assert.equal(await goThrough(openBrowser(other)), '/?sign-in=busy')
})

test('an answer of the identity provider is valid once, and only in the browser that asked', async () => {
  provider.person = person('ann', 'ann@example.com')
  const browser = openBrowser(service)
  const { url } = replyOf('startOidc', await browser.post('/sign-in/oidc'))
  const back = (await browser.open(url)).headers.get('location') ?? ''
  const other = openBrowser(service)
  assert.notEqual((await other.open(back)).headers.get('location'), '/')
  assert.equal((await other.get('/me')).status, 401)
  const again = openBrowser(service)
  assert.equal(await goThrough(again), '/')
  const replayed = await again.open(back)
  assert.notEqual(replayed.headers.get('location'), '/')
  for (const query of ['', '?code=x', '?state=x', '?code=x&state=x', '?error=access_denied&state=x']) {
    const { headers } = await openBrowser(service).open(`${service.url}/operator/v1/sign-in/callback/oidc${query}`)
    assert.notEqual(headers.get('location'), '/', query)
  }
})

test("an account opened in another person's name goes to the verified owner of the address", async () => {
  const email = 'owner@example.com'
  const squatter = await newPerson(service, email, 'viewer', workspaceId)
  provider.person = person('real owner', email)
  const owner = openBrowser(service)
  assert.equal(await goThrough(owner), '/')
  assert.equal(replyOf('readMe', await owner.get('/me')).email, email)
  assert.equal((await squatter.get('/me')).status, 401)
  const late = await squatter.post('/sign-in', { email, password: PASSWORD })
  assert.deepEqual(refusalOf(late), [401, 'unauthenticated'])
  assert.deepEqual(refusalOf(await owner.post('/me/second-factor', { password: PASSWORD })), [409, 'conflict'])
})

test('another person of the provider does not get the account of a linked address', async () => {
  provider.person = person('ann', 'ann@example.com')
  const ann = openBrowser(service)
  await goThrough(ann)
  const id = replyOf('readMe', await ann.get('/me')).id
  // Her address changes at the provider to one with an invitation. She keeps her account, and the invitation is not hers.
  await invite(service, 'eve@example.com', 'owner', workspaceId)
  provider.person = person('ann', 'eve@example.com')
  const moved = openBrowser(service)
  assert.equal(await goThrough(moved), '/')
  const me = replyOf('readMe', await moved.get('/me'))
  assert.deepEqual([me.id, me.email, me.workspaces[0]?.role], [id, 'ann@example.com', 'approver'])
})

test('sign-in starts only from our own page, with a configured and reachable identity provider', async (t) => {
  const foreign = await openBrowser(service).post('/sign-in/oidc', undefined, { origin: 'https://evil.example' })
  assert.deepEqual(refusalOf(foreign), [403, 'forbidden'])

  const without = await startService()
  t.after(() => without.close())
  assert.deepEqual(refusalOf(await openBrowser(without).post('/sign-in/oidc')), [404, 'not_found'])

  const away = await startIdentityProvider()
  await away.close()
  const alone = await startWith(away)
  t.after(() => alone.close())
  assert.deepEqual(refusalOf(await openBrowser(alone).post('/sign-in/oidc')), [503, 'sign_in_unavailable'])
  // A password needs no identity provider.
  const browser = await newPerson(alone, 'ann@example.com', 'viewer', null)
  await signIn(browser, 'ann@example.com')
})

test('no data from the identity provider is stored', async () => {
  const audit = JSON.stringify(replyOf('listInstallationAudit', await service.operator('/audit')))
  assert.ok(!audit.includes(provider.clientSecret) && !audit.includes('eyJ'))
})
