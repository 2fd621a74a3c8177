import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { pino } from 'pino'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { equalityIn } from '../../../src/domain/people/scim.ts'
import { startIdentityProvider, type IdentityProvider } from '../../setup/identity-provider.ts'
import type { Answer, Service } from '../../setup/service.ts'
import { newPerson, openBrowser, PASSWORD } from './browser.ts'
import { openStorage } from '../../../src/process/open-storage.ts'
import { serveStore } from '../../../src/process/server.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { refusalOf, replyOf } from '../web/contract.ts'
import { goThrough, personAt, startAt } from './at-provider.ts'

const TOKEN = 'a-token-of-the-directory-for-tests-0123456789'
const USER = 'urn:ietf:params:scim:schemas:core:2.0:User'
const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'

let provider: IdentityProvider
let service: Service
let acme: string
let storage: Storage
const errors: string[] = []

before(async () => {
  provider = await startIdentityProvider()
  const roles = { admins: { acme: 'admin' }, staff: { acme: 'viewer' }, bosses: { '*': 'owner' } }
  const variables = { TACHO_SCIM_TOKEN: TOKEN, TACHO_GROUP_ROLES: JSON.stringify(roles) }
  service = await startAt(provider, {}, variables, async (config, options) => {
    const log = pino({ level: 'error' }, { write: (line: string) => void errors.push(line) })
    storage = await openStorage(config, { log, onTrouble: assert.ifError })
    return serveStore(config, storage, { ...options, log })
  })
  acme = (await service.newTenant('acme')).workspaceId
})
after(async () => {
  await service.close()
  await provider.close()
})

interface Resource {
  id: string
  userName: string
  displayName: string
  active: boolean
  emails: { value: string }[]
  externalId?: string
  members: { value: string }[]
  meta: { location: string }
}

type Method = 'POST' | 'PUT' | 'PATCH' | 'DELETE'

const scim = (path: string, method?: Method, body?: unknown, token = TOKEN): Promise<Answer<Resource>> =>
  service.call(`/scim/v2${path}`, {
    ...(method && { method }),
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' },
  })
const patch = (path: string, ...Operations: object[]) => scim(path, 'PATCH', { schemas: [PATCH], Operations })

/** Creates a user as Entra ID does. */
async function newUser(name: string, more: object = {}): Promise<Resource> {
  const answer = await scim('/Users', 'POST', {
    schemas: [USER, 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'],
    externalId: `${name}-external`,
    userName: `${name}@example.com`,
    active: true,
    displayName: name,
    emails: [{ primary: true, type: 'work', value: `${name}@example.com` }],
    meta: { resourceType: 'User' },
    name: { formatted: `${name} Smith`, familyName: 'Smith', givenName: name },
    title: 'Engineer',
    ...more,
  })
  assert.equal(answer.status, 201, answer.text)
  assert.equal(answer.headers.get('location'), answer.body.meta.location)
  return answer.body
}

async function newGroup(displayName: string, ...ids: string[]): Promise<string> {
  const answer = await scim('/Groups', 'POST', { displayName, members: ids.map((value) => ({ value })) })
  assert.equal(answer.status, 201, answer.text)
  return answer.body.id
}

async function signedIn(name: string) {
  provider.person = personAt(name, `${name}@example.com`)
  const browser = openBrowser(service)
  return (await goThrough(browser)) === '/' ? browser : null
}

const roleOf = async (id: string) => {
  const { items } = replyOf('listOperators', await service.operator(`/workspaces/${acme}/operators`))
  return items.find((one) => one.id === id)?.role ?? null
}

const audited = async (id: string, action: string): Promise<Record<string, unknown>[]> => {
  const query = new URLSearchParams({ action, targetId: id })
  const { items } = replyOf('listInstallationAudit', await service.operator(`/audit?${query.toString()}`))
  return items.map(({ actor, detail, address }) => ({
    actor: actor.name,
    address,
    ...(detail as Record<string, unknown>),
  }))
}

test('without its token, nothing is answered', async () => {
  for (const token of ['', 'x', TOKEN.slice(1), `${TOKEN}x`, service.operatorToken]) {
    const answer = await scim('/Users', undefined, undefined, token)
    assert.equal(answer.status, 401)
    assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer/)
  }
  // The SCIM token is valid for SCIM only.
  const me = await service.call('/operator/v1/me', { headers: { authorization: `Bearer ${TOKEN}` } })
  assert.equal(me.status, 401)
})

test('a person is created, found, changed and read, and cannot be created twice', async () => {
  const { id } = await newUser('ann')
  for (const filter of [
    'userName eq "ANN@example.com"',
    'externalId eq "ann-external"',
    `id eq "${id}"`,
    'emails[type eq "work"].value eq "ann@example.com"',
  ]) {
    const { body } = (await scim(`/Users?filter=${encodeURIComponent(filter)}`)) as unknown as Answer<{
      totalResults: number
      Resources: Resource[]
    }>
    assert.deepEqual([body.totalResults, body.Resources[0]?.id], [1, id], filter)
  }
  const twice = await scim('/Users', 'POST', { userName: 'Ann@Example.com' })
  assert.deepEqual([twice.status, (twice.body as unknown as { scimType: string }).scimType], [409, 'uniqueness'])
  const renamed = await patch(
    `/Users/${id}`,
    { op: 'Replace', path: 'displayName', value: 'Ann Lee' },
    { op: 'Add', path: 'title', value: 'Boss' },
  )
  assert.deepEqual([renamed.status, renamed.body.displayName], [200, 'Ann Lee'])
  const moved = await patch(`/Users/${id}`, {
    op: 'replace',
    value: { 'emails[type eq "work"].value': 'ann.lee@example.com', userName: 'ann.lee' },
  })
  assert.deepEqual([moved.body.userName, moved.body.emails[0]?.value], ['ann.lee', 'ann.lee@example.com'])
  const polluted = { Operations: [{ op: 'add', path: '__proto__', value: { externalid: 'x', active: false } }] }
  const kept = await scim(`/Users/${id}`, 'PATCH', JSON.stringify(polluted))
  assert.deepEqual([kept.status, kept.body.externalId, kept.body.active], [200, 'ann-external', true])
  const put = await scim(`/Users/${id}`, 'PUT', {
    userName: 'ann@example.com',
    name: { givenName: 'Ann', familyName: 'Lee' },
  })
  assert.deepEqual([put.body.displayName, put.body.externalId, put.body.active], ['Ann Lee', undefined, true])
  const { items } = replyOf('listInstallationOperators', await service.operator('/operators'))
  assert.deepEqual(
    items.filter((one) => one.id === id).map(({ name, email, role }) => [name, email, role]),
    [['Ann Lee', 'ann@example.com', null]],
  )
})

test('requests at the same time do not undo a deactivation, and only the state that is named changes', async () => {
  const { id } = await newUser('hal')
  const named = (word: string) => patch(`/Users/${id}`, { op: 'replace', path: 'displayName', value: word })
  const out = () => patch(`/Users/${id}`, { op: 'replace', path: 'active', value: false })
  for (let turn = 0; turn < 5; turn++) {
    await patch(`/Users/${id}`, { op: 'replace', path: 'active', value: true })
    await Promise.all([named('a'), out(), named('b'), named('c'), named(`turn ${turn}`)])
    assert.equal((await scim(`/Users/${id}`)).body.active, false, `turn ${turn}`)
  }
  for (const operation of [
    { op: 'remove', path: 'active' },
    { op: 'replace', path: 'active', value: null },
    { op: 'replace', value: { active: null, displayName: 'Hal' } },
  ]) {
    assert.deepEqual([(await patch(`/Users/${id}`, operation)).body.active], [false], JSON.stringify(operation))
  }
  for (const active of [undefined, null]) {
    assert.equal((await scim(`/Users/${id}`, 'PUT', { userName: 'hal@example.com', active })).body.active, false)
  }
  assert.equal((await scim('/Users', 'POST', { userName: 'hall@example.com', active: null })).body.active, true)
})

test('only a primary address, or the one of work, is the address of a person', async () => {
  const { id } = await newUser('ivy')
  const addressAfter = async (...operations: object[]) => {
    const { status, body, text } = await patch(`/Users/${id}`, ...operations)
    assert.equal(status, 200, text)
    return body.emails[0]?.value
  }
  const home = 'ivy@home.example.com'
  for (const operation of [
    { op: 'add', path: 'emails', value: [{ type: 'home', value: home }] },
    { op: 'replace', path: 'emails[type eq "home"].value', value: home },
    { op: 'replace', path: 'emails[type eq "work" or type eq "home"].value', value: home },
    { op: 'replace', path: 'emails[type eq "work"].display', value: home },
    { op: 'remove', path: 'emails' },
    { op: 'remove', path: 'emails[type eq "work"].value' },
  ]) {
    assert.equal(await addressAfter(operation), 'ivy@example.com', JSON.stringify(operation))
  }
  const addresses = [
    { type: 'home', value: home },
    { type: 'work', value: 'Ivy@work.example.com' },
  ]
  assert.equal(await addressAfter({ op: 'replace', path: 'emails', value: addresses }), 'ivy@work.example.com')
  const primary = [...addresses, { type: 'other', primary: 'True', value: 'ivy@first.example.com' }]
  assert.equal(await addressAfter({ op: 'replace', path: 'emails', value: primary }), 'ivy@first.example.com')
  const byPath = { op: 'replace', path: 'emails[primary eq true].value', value: 'ivy@example.org' }
  assert.equal(await addressAfter(byPath), 'ivy@example.org')
  const put = await scim(`/Users/${id}`, 'PUT', {
    userName: 'ivy@example.com',
    emails: [{ type: 'home', value: home }],
  })
  assert.equal(put.body.emails[0]?.value, 'ivy@example.com')
  assert.deepEqual(
    (await audited(id, 'operator.update')).slice(0, 2).map((entry) => [entry['formerEmail'], entry['email']]),
    [
      ['ivy@example.org', 'ivy@example.com'],
      ['ivy@first.example.com', 'ivy@example.org'],
    ],
  )
})

test('a long filter is refused, and one of spaces takes no time', async () => {
  const long = `userName eq "${'x'.repeat(LIMITS.directoryFilterChars)}"`
  assert.equal((await scim(`/Users?filter=${encodeURIComponent(long)}`)).status, 400)
  // Measure the processor time of this thread, which other tests do not affect.
  const started = process.threadCpuUsage()
  for (const odd of [' '.repeat(900), '+'.repeat(900), `a${' '.repeat(900)}x`, `a${' eq'.repeat(300)}`]) {
    assert.throws(() => equalityIn(odd, new Map([['username', 'userName']])), { status: 400 })
  }
  assert.ok(process.threadCpuUsage(started).user < 500_000)
  const spaced = '  urn:ietf:params:scim:schemas:core:2.0:User:userName   EQ   "nobody@example.com" '
  assert.equal((await scim(`/Users?filter=${encodeURIComponent(spaced)}`)).status, 200)
})

test('groups give roles at once, and take them away', async () => {
  const { id } = await newUser('bob')
  const staff = await newGroup('staff', id)
  const admins = await newGroup('admins')
  assert.equal(await roleOf(id), 'viewer')
  assert.equal((await patch(`/Groups/${admins}`, { op: 'Add', path: 'members', value: [{ value: id }] })).status, 200)
  assert.equal(await roleOf(id), 'admin')
  // A sign-in without a groups claim changes nothing, because the directory manages the groups.
  const bob = await signedIn('bob')
  assert.equal((await bob?.get(`/workspaces/${acme}/environments`))?.status, 200)
  assert.equal(await roleOf(id), 'admin')
  await patch(`/Groups/${admins}`, { op: 'remove', path: `members[value eq "${id}"]` })
  assert.equal(await roleOf(id), 'viewer')
  await patch(`/Groups/${staff}`, { op: 'Remove', path: 'members', value: [{ value: id }] })
  assert.equal(await roleOf(id), null)
  await patch(`/Groups/${staff}`, { op: 'replace', path: 'members', value: [{ value: id }] })
  assert.equal(await roleOf(id), 'viewer')
  // The current name of a group determines the role.
  await patch(`/Groups/${staff}`, { op: 'replace', value: { displayName: 'former staff' } })
  assert.equal(await roleOf(id), null)
  await patch(`/Groups/${staff}`, { op: 'replace', path: 'displayName', value: 'staff' })
  assert.equal((await scim(`/Groups/${staff}`)).body.members.length, 1)
  assert.equal((await scim(`/Groups/${staff}`, 'DELETE')).status, 204)
  assert.equal(await roleOf(id), null)
  assert.deepEqual((await audited(id, 'operator.change_role')).at(-1), {
    actor: 'SCIM',
    by: 'groups',
    address: '127.0.0.1',
    email: 'bob@example.com',
    from: null,
    to: 'viewer',
  })
})

test('a deactivated person is out at once: sessions, tokens and sign-in; activation brings back the roles of the groups', async () => {
  const { id } = await newUser('carl')
  const group = await newGroup('bosses', id)
  const carl = await signedIn('carl')
  assert.ok(carl)
  const made = replyOf('createInstallationToken', await carl.post('/tokens', { name: 'mine', role: 'owner' }))
  const withToken = () => service.call('/operator/v1/me', { headers: { authorization: `Bearer ${made.token}` } })
  assert.deepEqual([(await carl.get('/me')).status, (await withToken()).status], [200, 200])
  // Entra ID sends `False` as a text.
  const out = await patch(`/Users/${id}`, { op: 'Replace', path: 'active', value: 'False' })
  assert.deepEqual([out.status, out.body.active], [200, false])
  assert.deepEqual([(await carl.get('/me')).status, (await withToken()).status], [401, 401])
  assert.equal(await signedIn('carl'), null)
  assert.deepEqual(await audited(id, 'operator.deactivate'), [
    { actor: 'SCIM', by: 'scim', address: '127.0.0.1', email: 'carl@example.com', sessions: 1, tokens: 1 },
  ])
  // Okta sends no path.
  assert.equal((await patch(`/Users/${id}`, { op: 'replace', value: { active: true } })).body.active, true)
  const again = await signedIn('carl')
  assert.equal(replyOf('readMe', (await again?.get('/me')) as Answer<unknown>).everywhere, 'owner')
  assert.equal((await withToken()).status, 401)
  await scim(`/Groups/${group}`, 'DELETE')
})

test('a sign-in during the deactivation is refused, without an error in the log', async (t) => {
  const { id } = await newUser('jon')
  assert.ok(await signedIn('jon'))
  const deactivate = () => patch(`/Users/${id}`, { op: 'replace', path: 'active', value: false })
  const activate = () => patch(`/Users/${id}`, { op: 'replace', path: 'active', value: true })
  for (const act of ['applyGroupRoles', 'findSession'] as const) {
    await activate()
    const real = storage[act].bind(storage) as (...args: unknown[]) => Promise<unknown>
    const during = t.mock.method(storage as never as Record<string, typeof real>, act, async (...args: unknown[]) => {
      during.mock.restore()
      await deactivate()
      return real(...args)
    })
    provider.person = personAt('jon', 'jon@example.com')
    const browser = openBrowser(service)
    assert.equal(await goThrough(browser), '/?sign-in=refused', act)
    assert.equal((await browser.get('/me')).status, 401)
    await activate()
    assert.equal((await browser.get('/me')).status, 401, 'its session does not come back')
  }
  assert.deepEqual(errors, [])
})

test('a deactivated account is marked, and gets no role', async () => {
  const { id } = await newUser('kim')
  const marked = async () => {
    const { items } = replyOf('listInstallationOperators', await service.operator('/operators'))
    return items.find((one) => one.id === id)?.deactivated
  }
  assert.equal(await marked(), false)
  await patch(`/Users/${id}`, { op: 'replace', path: 'active', value: false })
  assert.equal(await marked(), true)
  const given = await service.operator(`/operators/${id}/role`, { body: { role: 'owner' } })
  assert.deepEqual(refusalOf(given), [409, 'conflict'])
})

test('a person with a password is taken over: an unverified one loses it, and deactivation ends it', async () => {
  const dora = await newPerson(service, 'dora@example.com', 'owner', acme)
  const { id } = await newUser('dora')
  assert.equal((await dora.get('/me')).status, 401, 'nobody had verified the address')
  const late = await openBrowser(service).post('/sign-in', { email: 'dora@example.com', password: PASSWORD })
  assert.deepEqual(refusalOf(late), [401, 'unauthenticated'])
  assert.equal(await roleOf(id), 'owner')
  await patch(`/Users/${id}`, { op: 'replace', path: 'active', value: false })
  assert.equal(await roleOf(id), null)
})

test('a deleted person is ended, and only the directory or an invitation brings the address back', async () => {
  const { id } = await newUser('emma')
  const emma = await signedIn('emma')
  assert.equal((await scim(`/Users/${id}`, 'DELETE')).status, 204)
  assert.equal((await emma?.get('/me'))?.status, 401)
  assert.equal((await scim(`/Users/${id}`)).status, 404)
  assert.equal((await scim(`/Users/${id}`, 'DELETE')).status, 404)
  assert.equal(await signedIn('emma'), null)
  assert.notEqual((await newUser('emma')).id, id)
})

test('an account that somebody ends by hand leaves the directory too', async () => {
  const { id } = await newUser('finn')
  const group = await newGroup('finns', id)
  replyOf('deleteOperator', await service.operator(`/operators/${id}/remove`, { method: 'POST' }))
  assert.equal((await scim(`/Users/${id}`)).status, 404)
  assert.deepEqual((await scim(`/Groups/${group}`)).body.members, [])
})

test('requests that are odd, too large or forged are refused in the form of SCIM', async () => {
  const { id } = await newUser('gus')
  const group = await newGroup('gusses')
  const cases: [string, Method | undefined, unknown, number][] = [
    ['/Users', 'POST', '{', 400],
    ['/Users', 'POST', [], 400],
    ['/Users', 'POST', {}, 400],
    ['/Users', 'POST', { userName: 7 }, 400],
    ['/Users', 'POST', { userName: 'no address' }, 400],
    ['/Users', 'POST', { userName: `${'x'.repeat(LIMITS.emailChars)}@example.com` }, 400],
    ['/Users', 'POST', { userName: 'a\0@example.com' }, 400],
    ['/Users', 'POST', { userName: 'h@example.com', active: 'perhaps' }, 400],
    ['/Users', 'POST', { userName: 'h@example.com', emails: [{ value: 'not one' }] }, 400],
    ['/Users', 'POST', { userName: 'h@example.com', externalId: 'x'.repeat(256) }, 400],
    ['/Users', 'POST', ' '.repeat(LIMITS.directoryBodyBytes + 1), 413],
    ['/Users', 'POST', `[${'[],'.repeat(80_000)}[]]`, 413],
    [`/Users/${id}`, 'PATCH', { Operations: [] }, 400],
    [`/Users/${id}`, 'PATCH', { Operations: [{ op: 'constructor', path: 'active' }] }, 400],
    [`/Users/${id}`, 'PATCH', { Operations: [{ op: 'replace', path: 'id', value: randomUUID() }] }, 400],
    [`/Users/${id}`, 'PATCH', { Operations: [{ op: 'remove', path: 'userName' }] }, 400],
    [`/Users/${id}`, 'PATCH', { Operations: Array.from({ length: 101 }, () => ({ op: 'add', path: 'title' })) }, 400],
    [`/Users/${randomUUID()}`, 'PATCH', { Operations: [{ op: 'replace', path: 'active', value: false }] }, 404],
    ['/Bulk', 'POST', {}, 404],
    ['/.search', 'POST', {}, 501],
    ['/Users/.search', 'POST', {}, 501],
    ['/nothing', undefined, undefined, 404],
    ['/Users/constructor', undefined, undefined, 404],
    ['/Users?filter=userName', undefined, undefined, 400],
    ['/Users?filter=password%20eq%20%22x%22', undefined, undefined, 400],
    ['/Users?filter=__proto__%20eq%20%22x%22', undefined, undefined, 400],
    ['/Users?count=many', undefined, undefined, 400],
    ['/Groups', 'POST', { displayName: 'x', members: [{ value: randomUUID() }] }, 400],
    ['/Groups', 'POST', { displayName: 'GUSSES' }, 409],
    [
      `/Groups/${group}`,
      'PATCH',
      { Operations: [{ op: 'add', path: 'members', value: Array.from({ length: 501 }, () => ({ value: id })) }] },
      413,
    ],
    [`/Groups/${group}`, 'PATCH', { Operations: [{ op: 'add', path: 'owner', value: id }] }, 400],
  ]
  for (const [path, method, body, status] of cases) {
    const answer = await scim(path, method, body)
    const what = `${path} ${JSON.stringify(body)?.slice(0, 80)}`
    assert.equal(answer.status, status, `${what}: ${answer.text.slice(0, 200)}`)
    assert.match(answer.headers.get('content-type') ?? '', /^application\/scim\+json/, what)
    assert.equal((answer.body as unknown as { status: string }).status, String(status), what)
  }
  const large = await scim('/Users', 'POST', ' '.repeat(LIMITS.directoryBodyBytes + 1))
  const { detail } = large.body as unknown as { detail: string }
  assert.equal(detail, `The body must have at most ${LIMITS.directoryBodyBytes} bytes after decompression`)
  assert.equal((await scim(`/Users/${id}`)).body.userName, 'gus@example.com')
  assert.equal((await scim('/Users?startIndex=0&count=-1')).status, 200)
  assert.equal((await scim(`/Users/${id}`, 'PUT', { userName: 'ann@example.com' })).status, 409)
})
