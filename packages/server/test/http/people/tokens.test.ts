import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'
import { ROLES } from '@tacho/contract/engine/words.ts'

let service: Service
let workspaceId: string
before(async () => {
  service = await startService()
  workspaceId = (await service.newTenant('acme')).workspaceId
})
after(() => service.close())

const tokensOf = (workspace: string) => `/workspaces/${workspace}/tokens`
const create = (body: object) =>
  service.operator(tokensOf(workspaceId), { body: { name: 't', role: 'viewer', ...body } })
const as = (token: string) => ({ authorization: `Bearer ${token}` })

test('a new token is shown once, works at once in its workspace, and is stored without its secret', async () => {
  const answer = await create({ name: 'ci', role: 'admin' })
  const { token, ...kept } = replyOf('createToken', answer)
  assert.match(token, new RegExp(`^tacho-operator_${kept.id}_[0-9a-f]{64}$`))
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  assert.deepEqual([kept.workspaceId, kept.role, kept.expiresAt], [workspaceId, 'admin', null])
  const seen = replyOf('listWorkspaces', await service.operator('/workspaces', { headers: as(token) }))
  assert.deepEqual(
    seen.items.map(({ id }) => id),
    [workspaceId],
  )
  const listed = await service.operator(tokensOf(workspaceId))
  assert.ok(replyOf('listTokens', listed).items.some(({ id }) => id === kept.id))
  assert.ok(!listed.text.includes(token.slice(-64)))
})

test('a caller can read who they are and what they may do', async () => {
  const { token, id } = replyOf('createToken', await create({ name: 'who', role: 'approver' }))
  assert.deepEqual(replyOf('readMe', await service.operator('/me', { headers: as(token) })), {
    kind: 'token',
    id,
    name: 'who',
    email: null,
    twoFactor: false,
    installation: false,
    everywhere: null,
    workspaces: [{ id: workspaceId, name: 'acme', role: 'approver' }],
  })
  const first = replyOf('readMe', await service.operator('/me'))
  assert.deepEqual([first.installation, first.everywhere, first.workspaces], [true, 'owner', []])
})

test('an installation token is valid in every workspace, with its role and no more', async () => {
  const body = { name: 'watch', role: 'viewer' }
  const { token, id } = replyOf('createInstallationToken', await service.operator('/tokens', { body }))
  assert.equal((await service.operator(`/workspaces/${workspaceId}/environments`, { headers: as(token) })).status, 200)
  const made = { body: { name: 'x' }, headers: as(token) }
  assert.deepEqual(refusalOf(await service.operator(`/workspaces/${workspaceId}/environments`, made)), [
    403,
    'forbidden',
  ])
  assert.deepEqual(refusalOf(await service.operator('/tokens', { headers: as(token) })), [403, 'forbidden'])
  // It belongs to no workspace, so none lists or revokes it.
  const inWorkspace = replyOf('listTokens', await service.operator(tokensOf(workspaceId)))
  assert.ok(!inWorkspace.items.some((item) => item.id === id))
  const revokeThere = await service.operator(`${tokensOf(workspaceId)}/${id}/revoke`, { method: 'POST' })
  assert.deepEqual(refusalOf(revokeThere), [404, 'not_found'])
  replyOf('revokeInstallationToken', await service.operator(`/tokens/${id}/revoke`, { method: 'POST' }))
  assert.equal((await service.operator('/me', { headers: as(token) })).status, 401)
})

test('a revoked token is refused at once on this node, and revoking again keeps the first time', async () => {
  const { token, id } = replyOf('createToken', await create({}))
  assert.equal((await service.operator('/me', { headers: as(token) })).status, 200)
  const revoke = () => service.operator(`${tokensOf(workspaceId)}/${id}/revoke`, { method: 'POST' })
  const { revokedAt } = replyOf('revokeToken', await revoke())
  assert.equal((await service.operator('/me', { headers: as(token) })).status, 401)
  assert.equal(replyOf('revokeToken', await revoke()).revokedAt, revokedAt)
})

test('a token belongs to one workspace: unknown and foreign ids get the same 404', async () => {
  const foreign = await service.newTenant('foreign')
  const { id } = replyOf('createToken', await create({}))
  const revoke = (workspace: string, token: string) =>
    service.operator(`${tokensOf(workspace)}/${token}/revoke`, { method: 'POST' })
  for (const [workspace, token] of [
    [foreign.workspaceId, id],
    [workspaceId, 'ffffffffffffffff'],
    [workspaceId, '%00'],
    [UNKNOWN_ID, id],
  ] as const) {
    assert.deepEqual(refusalOf(await revoke(workspace, token)), [404, 'not_found'])
  }
})

test('a token has a name, an existing role and an expiry in the future', async () => {
  for (const role of ROLES) replyOf('createToken', await create({ role }))
  replyOf('createToken', await create({ name: 'a'.repeat(LIMITS.nameChars), expiresAt: '2100-01-01T00:00:00Z' }))
  for (const wrong of [
    { role: 'root' },
    { role: null },
    { role: undefined },
    { name: '' },
    { name: 'a'.repeat(LIMITS.nameChars + 1) },
    { name: 'a\0' },
    { expiresAt: '2001-01-01T00:00:00Z' },
    { expiresAt: 'soon' },
  ]) {
    assert.deepEqual(refusalOf(await create(wrong)), [400, 'invalid_request'], JSON.stringify(wrong))
  }
})

test('a rotated token and its successor both work until the old one ends, and the audit log names both', async () => {
  const made = replyOf('createToken', await create({ name: 'ci', role: 'admin' }))
  const rotate = (id: string, body: object) => service.operator(`${tokensOf(workspaceId)}/${id}/rotate`, { body })
  const oldValidUntil = '2100-01-01T00:00:00.000Z'
  const next = replyOf('rotateToken', await rotate(made.id, { oldValidUntil }))
  assert.deepEqual([next.name, next.role, next.expiresAt, next.replacedBy], ['ci', 'admin', null, null])
  const status = async (token: string) => (await service.operator('/me', { headers: as(token) })).status
  assert.deepEqual([await status(made.token), await status(next.token)], [200, 200])
  const { items } = replyOf('listTokens', await service.operator(tokensOf(workspaceId)))
  const old = items.find(({ id }) => id === made.id)
  assert.deepEqual([old?.replacedBy, old?.expiresAt], [next.id, oldValidUntil])
  assert.deepEqual(refusalOf(await rotate(made.id, { oldValidUntil })), [409, 'conflict'])
  // A time in the past ends the old one at once.
  const last = replyOf('rotateToken', await rotate(next.id, { oldValidUntil: '2001-01-01T00:00:00.000Z' }))
  assert.deepEqual([await status(next.token), await status(last.token)], [401, 200])
  const query = `action=operator_token.rotate&targetId=${made.id}`
  const log = replyOf('listAudit', await service.operator(`/workspaces/${workspaceId}/audit?${query}`))
  assert.deepEqual(
    log.items.map(({ target, detail }) => [target.id, detail]),
    [[made.id, { oldValidUntil, newToken: next.id }]],
  )
  assert.ok(!JSON.stringify(log).includes(next.token.slice(-64)))
  for (const wrong of [{}, { oldValidUntil: 'soon' }, { oldValidUntil, expiresAt: '2001-01-01T00:00:00Z' }]) {
    assert.deepEqual(refusalOf(await rotate(last.id, wrong)), [400, 'invalid_request'], JSON.stringify(wrong))
  }
  const asAdmin = { body: { oldValidUntil }, headers: as(last.token) }
  const refused = await service.operator(`${tokensOf(workspaceId)}/${last.id}/rotate`, asAdmin)
  assert.deepEqual(refusalOf(refused), [403, 'forbidden'])
})

test('revoking a token names the valid tokens that it made, and ends them if asked', async () => {
  const owner = replyOf(
    'createInstallationToken',
    await service.operator('/tokens', { body: { name: 'o', role: 'owner' } }),
  )
  const asOwner = { body: { name: 'made', role: 'owner' }, headers: as(owner.token) }
  const made = replyOf('createInstallationToken', await service.operator('/tokens', asOwner))
  const inWorkspace = { body: { name: 'its own', role: 'viewer' }, headers: as(made.token) }
  const last = replyOf('createToken', await service.operator(tokensOf(workspaceId), inWorkspace))
  const status = async (token: string) => (await service.operator('/me', { headers: as(token) })).status
  const revoke = async (query: string) =>
    replyOf('revokeInstallationToken', await service.operator(`/tokens/${owner.id}/revoke${query}`, { method: 'POST' }))
  const named = (await revoke('')).madeTokens.map(({ id, revokedAt }) => [id, revokedAt])
  assert.deepEqual(
    named,
    [made.id, last.id].toSorted().map((id) => [id, null]),
  )
  assert.deepEqual([await status(owner.token), await status(made.token), await status(last.token)], [401, 200, 200])
  const ended = (await revoke('?alsoMade=true')).madeTokens
  assert.ok(ended.length === 2 && ended.every(({ revokedAt }) => revokedAt !== null))
  assert.deepEqual([await status(made.token), await status(last.token)], [401, 401])
  assert.deepEqual((await revoke('?alsoMade=true')).madeTokens, [])
})
