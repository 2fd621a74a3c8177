import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startIdentityProvider, type IdentityProvider } from '../../setup/identity-provider.ts'
import type { Service } from '../../setup/service.ts'
import { invite, openBrowser } from './browser.ts'
import { replyOf } from '../web/contract.ts'
import { goThrough, personAt as person, startAt } from './at-provider.ts'

const ROLES = {
  'acme-admins': { acme: 'admin' },
  'acme-all': { acme: 'viewer', 'no such workspace': 'owner' },
  bosses: { '*': 'owner' },
  constructor: { acme: 'owner' },
}

let provider: IdentityProvider
let service: Service
let acme: string

before(async () => {
  provider = await startIdentityProvider()
  service = await startAt(provider, {}, { TACHO_GROUP_ROLES: JSON.stringify(ROLES), TACHO_OIDC_SCOPES: 'groups' })
  acme = (await service.newTenant('acme')).workspaceId
})
after(async () => {
  await service.close()
  await provider.close()
})

/** Signs in with these groups. Null: refused. */
async function rolesWith(name: string, groups: unknown, more: object = {}) {
  provider.person = person(name, `${name}@example.com`, { groups, ...more })
  const browser = openBrowser(service)
  if ((await goThrough(browser)) !== '/') return null
  const { everywhere, workspaces } = replyOf('readMe', await browser.get('/me'))
  const own = workspaces.find(({ id }) => id === acme)?.role ?? null
  return { everywhere, own }
}

async function changesOf(name: string) {
  const path = `/workspaces/${acme}/audit?action=operator.change_role`
  const { items } = (await service.operator<{ items: Entry[] }>(path)).body
  const entries = items.filter(({ detail }) => detail.email === `${name}@example.com`)
  assert.ok(entries.every(({ address }) => address === '127.0.0.1'))
  return entries.map(({ detail: { from, to, by } }) => [from, to, by])
}

interface Entry {
  address: string
  detail: { email: string; from: string; to: string; by: string }
}

test('a group gives its role without an invitation, raises it, lowers it and takes it away', async () => {
  assert.deepEqual(await rolesWith('ann', ['acme-all', 'strangers']), { everywhere: null, own: 'viewer' })
  assert.deepEqual(await rolesWith('ann', ['acme-all', 'acme-admins']), { everywhere: null, own: 'admin' })
  const { items } = replyOf('listOperators', await service.operator(`/workspaces/${acme}/operators`))
  assert.deepEqual(
    items.map(({ email, role, fromGroups }) => [email, role, fromGroups]),
    [['ann@example.com', 'admin', true]],
  )
  assert.deepEqual(await rolesWith('ann', 'acme-all'), { everywhere: null, own: 'viewer' })
  assert.deepEqual(await rolesWith('ann', []), { everywhere: null, own: null })
  assert.deepEqual(await changesOf('ann'), [
    ['viewer', null, 'groups'],
    ['admin', 'viewer', 'groups'],
    ['viewer', 'admin', 'groups'],
    [null, 'viewer', 'groups'],
  ])
})

test('a session that is open loses the role at the next sign-in', async () => {
  provider.person = person('sue', 'sue@example.com', { groups: ['acme-admins'] })
  const open = openBrowser(service)
  assert.equal(await goThrough(open), '/')
  assert.equal((await open.get(`/workspaces/${acme}/environments`)).status, 200)
  await rolesWith('sue', [])
  assert.equal((await open.get(`/workspaces/${acme}/environments`)).status, 404)
})

test('a role by hand stays below a higher one of a group, and comes back after it', async () => {
  await invite(service, 'bob@example.com', 'approver', acme)
  assert.deepEqual(await rolesWith('bob', ['acme-all']), { everywhere: null, own: 'approver' })
  assert.deepEqual(await rolesWith('bob', ['acme-admins']), { everywhere: null, own: 'admin' })
  assert.deepEqual(await rolesWith('bob', undefined), { everywhere: null, own: 'approver' })
  // An admin changes a role that comes from a group.
  await rolesWith('bob', ['acme-admins'])
  const { items } = replyOf('listOperators', await service.operator(`/workspaces/${acme}/operators`))
  const id = items.find(({ email }) => email === 'bob@example.com')?.id
  const changed = await service.operator(`/workspaces/${acme}/operators/${id}/role`, { body: { role: 'viewer' } })
  assert.equal(replyOf('changeRole', changed).fromGroups, false)
  assert.deepEqual(await rolesWith('bob', []), { everywhere: null, own: 'viewer' })
})

test('claims that are odd, forged or too many give no role', async () => {
  const many = Array.from({ length: 1_001 }, () => 'acme-admins')
  for (const groups of [
    { 'acme-admins': true },
    ['acme-admins', 7],
    [['acme-admins']],
    'acme-admins,acme-all',
    'acme-admins acme-all',
    ['ACME-ADMINS', ' acme-admins', 'acme-admins\u0000', '__proto__', 'toString', ''],
    many,
    1,
    true,
    null,
  ]) {
    assert.equal(await rolesWith('eve', groups), null, JSON.stringify(groups).slice(0, 60))
  }
  // Groups that only the userinfo endpoint returns do not count, because they are not signed.
  const { fault } = provider
  provider.fault = 'groups only in userinfo'
  assert.equal(await rolesWith('eve', ['acme-admins']), null)
  provider.fault = fault
  // An unverified address makes no account.
  assert.equal(await rolesWith('eve', ['acme-admins'], { email_verified: false }), null)
  // A group named `constructor` is mapped, although every JavaScript object has such a member.
  assert.deepEqual(await rolesWith('con', ['constructor']), { everywhere: null, own: 'owner' })
  assert.deepEqual(await rolesWith('con', many), { everywhere: null, own: 'owner' }, 'the last owner of acme stays')
})

test('the last owner of the installation stays one without the group, and another does not', async () => {
  assert.deepEqual(await rolesWith('boss', ['bosses']), { everywhere: 'owner', own: null })
  assert.equal((await rolesWith('boss', []))?.everywhere, 'owner')
  assert.equal((await rolesWith('chief', ['bosses']))?.everywhere, 'owner')
  assert.equal((await rolesWith('boss', []))?.everywhere, null)
})

test('an account that was ended stays ended in a group', async () => {
  provider.person = person('kim', 'kim@example.com', { groups: ['acme-all'] })
  const browser = openBrowser(service)
  assert.equal(await goThrough(browser), '/')
  const { id } = replyOf('readMe', await browser.get('/me'))
  replyOf('deleteOperator', await service.operator(`/operators/${id}/remove`, { method: 'POST' }))
  assert.equal(await rolesWith('kim', ['acme-all']), null)
})
