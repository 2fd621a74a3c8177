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
