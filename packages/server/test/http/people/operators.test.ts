import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../../setup/eventually.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { startService, type Service } from '../../setup/service.ts'
import { invite, newPerson, openBrowser, PASSWORD, signIn, type Browser } from './browser.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'

let service: Service
let workspaceId: string
let owner: Browser
let ownerId: string
before(async () => {
  service = await startService()
  workspaceId = (await service.newTenant('acme')).workspaceId
  owner = await newPerson(service, 'owner@example.com', 'owner', workspaceId)
  ownerId = await idOf(owner)
})
after(() => service.close())

const idOf = async (browser: Browser) => replyOf('readMe', await browser.get('/me')).id
const people = () => `/workspaces/${workspaceId}/operators`
const changeRole = (id: string, role: string) => owner.post(`${people()}/${id}/role`, { role })
const remove = (id: string) => owner.post(`${people()}/${id}/remove`)

test('people are listed with their role, within their workspace only', async () => {
  const foreign = await service.newTenant('globex')
  await newPerson(service, 'elsewhere@example.com', 'owner', foreign.workspaceId)
  const { items } = replyOf('listOperators', await owner.get(people()))
  assert.deepEqual(
    items.map(({ email, role, twoFactor }) => [email, role, twoFactor]),
    [['owner@example.com', 'owner', false]],
  )
  assert.notEqual(items[0]?.lastSignInAt, null)
  const everybody = replyOf('listInstallationOperators', await service.operator('/operators'))
  assert.deepEqual(everybody.items.map(({ email, role }) => `${email} ${role}`).toSorted(), [
    'elsewhere@example.com null',
    'owner@example.com null',
  ])
})

test('a changed role applies at once on this node, also to open requests', async () => {
  const browser = await newPerson(service, 'ann@example.com', 'admin', workspaceId)
  const make = (name: string) => browser.post(`/workspaces/${workspaceId}/environments`, { name })
  replyOf('createEnvironment', await make('one'))
  const changed = replyOf('changeRole', await changeRole(await idOf(browser), 'viewer'))
  assert.equal(changed.role, 'viewer')
  assert.deepEqual(refusalOf(await make('two')), [403, 'forbidden'])
  assert.equal((await browser.get(`/workspaces/${workspaceId}/environments`)).status, 200)
})

test('a removed person no longer sees the workspace', async () => {
  const browser = await newPerson(service, 'bob@example.com', 'admin', workspaceId)
  const id = await idOf(browser)
  replyOf('removeOperator', await remove(id))
  assert.deepEqual(refusalOf(await browser.get(`/workspaces/${workspaceId}/environments`)), [404, 'not_found'])
  assert.deepEqual(replyOf('listWorkspaces', await browser.get('/workspaces')).items, [])
  assert.deepEqual(refusalOf(await remove(id)), [404, 'not_found'])
  assert.deepEqual(refusalOf(await changeRole(id, 'viewer')), [404, 'not_found'])
})

test('the last owner cannot be demoted or removed, even by themselves or with the account', async () => {
  assert.deepEqual(refusalOf(await changeRole(ownerId, 'admin')), [409, 'conflict'])
  assert.deepEqual(refusalOf(await remove(ownerId)), [409, 'conflict'])
  const gone = await service.operator(`/operators/${ownerId}/remove`, { method: 'POST' })
  assert.deepEqual(refusalOf(gone), [409, 'conflict'])
  replyOf('changeRole', await changeRole(ownerId, 'owner'))
  const second = await newPerson(service, 'second@example.com', 'owner', workspaceId)
  replyOf('changeRole', await changeRole(await idOf(second), 'viewer'))
  assert.deepEqual(refusalOf(await changeRole(ownerId, 'viewer')), [409, 'conflict'])
})

test('foreign and unknown ids get the same 404', async () => {
  const foreign = await service.newTenant('initech')
  const stranger = await newPerson(service, 'stranger@example.com', 'viewer', foreign.workspaceId)
  for (const id of [await idOf(stranger), UNKNOWN_ID]) {
    assert.deepEqual(refusalOf(await changeRole(id, 'viewer')), [404, 'not_found'])
    assert.deepEqual(refusalOf(await remove(id)), [404, 'not_found'])
  }
  assert.deepEqual(refusalOf(await changeRole('nobody', 'viewer')), [400, 'invalid_request'])
  assert.deepEqual(refusalOf(await changeRole(ownerId, 'root')), [400, 'invalid_request'])
})

test('an installation role is granted and removed; its owner runs the installation', async () => {
  const browser = await newPerson(service, 'root@example.com', 'owner', null)
  const me = replyOf('readMe', await browser.get('/me'))
  assert.deepEqual([me.installation, me.everywhere, me.workspaces], [true, 'owner', []])
  replyOf('createWorkspace', await browser.post('/workspaces', { name: 'made by a person' }))
  const role = (value: string | null) => browser.post(`/operators/${me.id}/role`, { role: value })
  assert.deepEqual(refusalOf(await role('admin')), [409, 'conflict'])
  const other = await newPerson(service, 'other.root@example.com', 'owner', null)
  replyOf('changeInstallationRole', await role(null))
  assert.deepEqual(refusalOf(await browser.get('/operators')), [403, 'forbidden'])
  // Deleting an account ends its sessions.
  const ended = await other.post(`/operators/${me.id}/remove`)
  assert.deepEqual(replyOf('deleteOperator', ended), { id: me.id })
  assert.equal((await browser.get('/me')).status, 401)
  const late = await browser.post('/sign-in', { email: 'root@example.com', password: PASSWORD })
  assert.deepEqual(refusalOf(late), [401, 'unauthenticated'])
})

test('the secret of a link is shown once, and a page that is only opened accepts nothing', async () => {
  const answer = await service.operator<{ link: string }>(`/workspaces/${workspaceId}/invitations`, {
    body: { email: 'link@example.com', role: 'viewer' },
  })
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  const { link } = replyOf('invite', answer)
  assert.match(
    link,
    new RegExp(
      `^${service.url.replace('127.0.0.1', 'localhost')}/invitation#tacho-invitation_[0-9a-f]{16}_[0-9a-f]{64}$`,
    ),
  )
  const listed = replyOf('listInvitations', await owner.get(`/workspaces/${workspaceId}/invitations`))
  assert.ok(listed.items.some(({ email }) => email === 'link@example.com'))
  assert.ok(!JSON.stringify(listed).includes(link.slice(-64)))
  for (const method of ['GET', 'HEAD']) {
    const path = '/operator/v1/invitations/accept'
    assert.notEqual((await service.call(path, { method })).status, 200)
  }
})

test('an invitation is valid once, with a password that is long enough', async () => {
  const token = await invite(service, 'once@example.com', 'viewer', workspaceId)
  const accept = (password: string, text = token) =>
    openBrowser(service).post('/invitations/accept', { token: text, password, name: 'Once' })
  assert.deepEqual(refusalOf(await accept('a'.repeat(LIMITS.passwordCharsMin - 1))), [400, 'invalid_request'])
  assert.deepEqual(refusalOf(await accept('a'.repeat(LIMITS.passwordCharsMax + 1))), [400, 'invalid_request'])
  const wrong = `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`
  for (const text of [wrong, 'x', `tacho-invitation_${'0'.repeat(16)}_${'0'.repeat(64)}`]) {
    assert.deepEqual(refusalOf(await accept(PASSWORD, text)), [404, 'not_found'], text)
  }
  const racing = await Promise.all(Array.from({ length: 5 }, () => accept(PASSWORD)))
  const statuses = racing.map(({ status }) => status).toSorted((a, b) => a - b)
  assert.equal(statuses[0], 200)
  assert.ok(statuses.slice(1).every((status) => status === 404 || status === 409))
  assert.deepEqual(refusalOf(await accept(PASSWORD)), [404, 'not_found'])
})

test('a revoked, replaced or expired invitation is rejected', async () => {
  const path = `/workspaces/${workspaceId}/invitations`
  const accept = (token: string) => openBrowser(service).post('/invitations/accept', { token, password: PASSWORD })
  const first = await invite(service, 'late@example.com', 'viewer', workspaceId)
  const second = await invite(service, 'late@example.com', 'approver', workspaceId)
  assert.deepEqual(refusalOf(await accept(first)), [404, 'not_found'])
  const id = second.split('_')[1] ?? ''
  assert.equal(replyOf('revokeInvitation', await owner.post(`${path}/${id}/revoke`)).role, 'approver')
  assert.deepEqual(refusalOf(await owner.post(`${path}/${id}/revoke`)), [404, 'not_found'])
  assert.deepEqual(refusalOf(await accept(second)), [404, 'not_found'])
})

test('an invitation expires after a week', async (t) => {
  let now = Date.now()
  const late = await startService({}, () => now)
  t.after(() => late.close())
  const tokens = [
    await invite(late, 'a@example.com', 'viewer', null),
    await invite(late, 'b@example.com', 'viewer', null),
  ]
  const accept = (token = '') => openBrowser(late).post('/invitations/accept', { token, password: PASSWORD })
  now += LIMITS.invitationMs - 1
  replyOf('acceptInvitation', await accept(tokens[0]))
  now += 1
  assert.deepEqual(refusalOf(await accept(tokens[1])), [404, 'not_found'])
})

test('guesses of invitations are in the audit log with their address, and bounded', async (t) => {
  let now = Date.now()
  const guessed = await startService({}, () => now)
  t.after(() => guessed.close())
  const token = await invite(guessed, 'ada@example.com', 'viewer', null)
  const accept = (given: string) =>
    openBrowser(guessed).post('/invitations/accept', { token: given, password: PASSWORD })
  const unknown = token.slice(0, -6) + (token.endsWith('aaaaaa') ? 'bbbbbb' : 'aaaaaa')
  assert.deepEqual(refusalOf(await accept(unknown)), [404, 'not_found'])
  now += LIMITS.invitationMs
  assert.deepEqual(refusalOf(await accept(token)), [404, 'not_found'])
  const listed = async () => {
    const path = '/audit?action=operator.accept_invitation.refused&limit=200'
    return replyOf('listAudit', await guessed.operator(path)).items
  }
  await eventually(async () => (await listed()).length === 2, 'both guesses')
  const [ended, first] = await listed()
  assert.deepEqual([ended?.detail, first?.detail], [{ why: 'ended' }, { why: 'unknown' }])
  assert.deepEqual([ended?.target.kind, Boolean(ended?.target.id), Boolean(first?.address)], ['invitation', true, true])
  assert.ok(!JSON.stringify([ended, first]).includes(unknown))
  for (let n = 0; n < 25; n++) {
    now += 120_000
    assert.equal((await accept(unknown)).status, 404)
  }
  await eventually(async () => (await listed()).length === 21, 'one, and 20 within the next hour')
})

test('a person with an account accepts with their existing password, and keeps it', async () => {
  const email = 'both@example.com'
  const foreign = await service.newTenant('umbrella')
  await newPerson(service, email, 'viewer', workspaceId)
  const token = await invite(service, email, 'admin', foreign.workspaceId)
  const browser = openBrowser(service)
  const accept = (password: string) => browser.post('/invitations/accept', { token, password })
  assert.deepEqual(refusalOf(await accept('some other password')), [403, 'forbidden'])
  // The reply does not wait for the entry, as at sign-in.
  const guesses = async () => {
    const { text } = await service.operator('/audit?action=operator.sign_in.refused')
    return text.includes('"why":"wrong_password"') && text.includes('"invitation":"') && !text.includes('some other')
  }
  await eventually(guesses, 'the entry of the refused acceptance')
  assert.equal(replyOf('acceptInvitation', await accept(PASSWORD)).created, false)
  await signIn(browser, email)
  const { workspaces } = replyOf('readMe', await browser.get('/me'))
  assert.deepEqual(workspaces.map(({ role }) => role).toSorted(), ['admin', 'viewer'])
})

test('members are not invited again, and an invitation needs an address and a role', async () => {
  const path = `/workspaces/${workspaceId}/invitations`
  const post = (body: object) => owner.post(path, body)
  assert.deepEqual(refusalOf(await post({ email: 'OWNER@example.com', role: 'viewer' })), [409, 'conflict'])
  for (const body of [
    { email: 'x', role: 'viewer' },
    { email: 'x@', role: 'viewer' },
    { email: 'a b@example.com', role: 'viewer' },
    { email: 'x@exa_mple..com', role: 'viewer' },
    { email: `${'x'.repeat(243)}@example.com`, role: 'viewer' },
    { email: 'x@example.com\n', role: 'viewer' },
    { email: 'x@example.com', role: 'root' },
    { email: 'x@example.com' },
  ]) {
    assert.deepEqual(refusalOf(await post(body)), [400, 'invalid_request'], JSON.stringify(body))
  }
})

test("changes to people are in the workspace's log, without secrets", async () => {
  const { items } = replyOf('listAudit', await owner.get(`/workspaces/${workspaceId}/audit?limit=200`))
  const actions = new Set(items.map(({ action }) => action))
  for (const action of [
    'operator.invite',
    'operator.accept_invitation',
    'operator.change_role',
    'operator.remove',
    'operator.revoke_invitation',
  ]) {
    assert.ok(actions.has(action), action)
  }
  assert.doesNotMatch(JSON.stringify(items), /tacho-invitation_|argon2|[0-9a-f]{64}/)
  const byOwner = items.find(({ action }) => action === 'operator.change_role')
  assert.deepEqual([byOwner?.actor.kind, byOwner?.actor.name], ['operator', 'owner@example.com'])
})

test('an invitation link shows its purpose before acceptance, and nothing once it is invalid', async () => {
  const browser = openBrowser(service)
  const token = await invite(service, 'opened@example.com', 'approver', workspaceId)
  const opened = replyOf('openInvitation', await browser.post('/invitations/open', { token }))
  const { email, role, workspace, account } = opened
  assert.deepEqual([email, role, account], ['opened@example.com', 'approver', 'none'])
  assert.ok(workspace !== null && opened.invitedBy !== '' && Date.parse(opened.expiresAt) > Date.now())
  // Reading the invitation does not accept it.
  replyOf('openInvitation', await browser.post('/invitations/open', { token }))
  replyOf('acceptInvitation', await browser.post('/invitations/accept', { token, password: PASSWORD }))
  for (const dead of [token, `${token}x`, 'nonsense']) {
    assert.deepEqual(refusalOf(await browser.post('/invitations/open', { token: dead })), [404, 'not_found'])
  }
  const everywhere = await invite(service, 'opened@example.com', 'viewer', null)
  const second = replyOf('openInvitation', await browser.post('/invitations/open', { token: everywhere }))
  assert.deepEqual([second.workspace, second.account], [null, 'password'])
})

test('an old invitation changes no role that the person has by now', async () => {
  const email = 'promoted@example.com'
  const browser = await newPerson(service, email, 'viewer', workspaceId)
  const old = await invite(service, email, 'viewer', null)
  const role = { role: 'owner' }
  replyOf('changeInstallationRole', await service.operator(`/operators/${await idOf(browser)}/role`, { body: role }))
  const accept = () => openBrowser(service).post('/invitations/accept', { token: old, password: PASSWORD })
  assert.deepEqual(refusalOf(await accept()), [409, 'conflict'])
  assert.equal(replyOf('readMe', await browser.get('/me')).everywhere, 'owner')
  assert.deepEqual(refusalOf(await accept()), [404, 'not_found'])
})

test('an invitation of a workspace answers the same for an address with and without an account', async () => {
  const known = 'known@example.com'
  const { workspaceId: elsewhere } = await service.newTenant('tyrell')
  await newPerson(service, known, 'viewer', elsewhere)
  const seen = []
  for (const email of [known, 'never-seen@example.com']) {
    const made = await owner.post<{ link: string }>(`/workspaces/${workspaceId}/invitations`, { email, role: 'viewer' })
    const [, token = ''] = replyOf('invite', made).link.split('#')
    const browser = openBrowser(service)
    const opened = replyOf('openInvitation', await browser.post('/invitations/open', { token }))
    const refused = await browser.post('/invitations/accept', { token, password: 'not the password of anybody' })
    const { status, detail } = refused.body as { status: number; detail: string }
    seen.push({ account: opened.account, role: opened.role, status, detail, retry: refused.headers.get('retry-after') })
  }
  assert.deepEqual(seen[0], seen[1])
  assert.deepEqual([seen[0]?.account, seen[0]?.status], ['unknown', 403])
})
