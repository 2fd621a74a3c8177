import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const create = async (name: unknown) => service.operator('/workspaces', { body: { name } })
const list = async (query = '') => replyOf('listWorkspaces', await service.operator(`/workspaces${query}`))

test('a workspace is created, listed, and returned as stored', async () => {
  const made = replyOf('createWorkspace', await create('acme'))
  assert.equal(made.name, 'acme')
  assert.ok((await list()).items.some(({ id, name }) => id === made.id && name === 'acme'))
})

test('a workspace name is unique', async () => {
  replyOf('createWorkspace', await create('twice'))
  assert.deepEqual(refusalOf(await create('twice')), [409, 'conflict'])
  replyOf('createWorkspace', await create('Twice'))
})

test('a name has 1 to 100 code points, and contains nothing that a store would change', async () => {
  replyOf('createWorkspace', await create('💾'.repeat(LIMITS.nameChars)))
  for (const name of ['', 'a'.repeat(LIMITS.nameChars + 1), 'a\0b', '\ud800', 7, null, undefined]) {
    assert.deepEqual(refusalOf(await create(name)), [400, 'invalid_request'], JSON.stringify(name))
  }
  assert.deepEqual(refusalOf(await service.operator('/workspaces', { body: [] })), [400, 'invalid_request'])
  assert.deepEqual(refusalOf(await service.operator('/workspaces', { body: '{' })), [400, 'invalid_json'])
})

test('a body is JSON in UTF-8 of limited size', async () => {
  const filled = (bytes: number) => JSON.stringify({ name: `n${bytes}` }).padEnd(bytes)
  const post = (body: unknown, headers = {}) => service.operator('/workspaces', { body, headers })
  replyOf('createWorkspace', await post(filled(LIMITS.operatorBodyBytes)))
  assert.deepEqual(refusalOf(await post(filled(LIMITS.operatorBodyBytes + 1))), [413, 'body_too_large'])
  assert.deepEqual(refusalOf(await post('{}', { 'content-type': 'text/plain' })), [415, 'unsupported_media_type'])
  assert.deepEqual(refusalOf(await post(Buffer.from([0x22, 0xff, 0x22]))), [400, 'invalid_utf8'])
})

test('paging by cursor returns every workspace once, and the cursor is valid only for this list', async () => {
  for (let made = 0; made < 5; made++) await create(`walk ${made}`)
  const all = (await list()).items.map(({ id }) => id)
  const met: string[] = []
  let cursor: string | null = null
  do {
    const page = await list(`?limit=2${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`)
    assert.ok(page.items.length <= 2)
    met.push(...page.items.map(({ id }) => id))
    cursor = page.nextCursor
  } while (cursor !== null)
  assert.deepEqual(met, all)

  const { nextCursor } = await list('?limit=1')
  const [first] = all
  const foreign = await service.operator(
    `/workspaces/${first}/environments?cursor=${encodeURIComponent(nextCursor ?? '')}`,
  )
  assert.deepEqual(refusalOf(foreign), [400, 'invalid_cursor'])
  assert.deepEqual(refusalOf(await service.operator('/workspaces?cursor=nonsense')), [400, 'invalid_cursor'])
})

test('a page has 1 to 200 workspaces', async () => {
  await list('?limit=1')
  await list(`?limit=${LIMITS.operatorPageMax}`)
  for (const limit of ['0', String(LIMITS.operatorPageMax + 1), '', '01', '1.0', 'x', '1&limit=2']) {
    assert.deepEqual(refusalOf(await service.operator(`/workspaces?limit=${limit}`)), [400, 'invalid_request'], limit)
  }
})

test('an environment name is unique in its workspace; another workspace can use it too', async () => {
  const one = replyOf('createWorkspace', await create('one'))
  const other = replyOf('createWorkspace', await create('other'))
  const environments = (workspaceId: string) => `/workspaces/${workspaceId}/environments`
  const post = (workspaceId: string, name: string) => service.operator(environments(workspaceId), { body: { name } })
  const made = replyOf('createEnvironment', await post(one.id, 'production'))
  assert.equal(made.workspaceId, one.id)
  replyOf('createEnvironment', await post(other.id.toUpperCase(), 'production'))
  assert.deepEqual(refusalOf(await post(one.id, 'production')), [409, 'conflict'])
  assert.deepEqual(refusalOf(await post(one.id, 'a\0')), [400, 'invalid_request'])
  const listed = replyOf('listEnvironments', await service.operator(environments(one.id)))
  assert.deepEqual(listed, { items: [made], nextCursor: null })
})

test('an unknown workspace has no environments, and a malformed id is reported', async () => {
  for (const request of [{}, { body: { name: 'x' } }]) {
    assert.deepEqual(refusalOf(await service.operator(`/workspaces/${UNKNOWN_ID}/environments`, request)), [
      404,
      'not_found',
    ])
    assert.deepEqual(refusalOf(await service.operator('/workspaces/acme/environments', request)), [
      400,
      'invalid_request',
    ])
  }
})
