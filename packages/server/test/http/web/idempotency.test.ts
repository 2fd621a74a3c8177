import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { IDEMPOTENCY_KEY_HEADER, REPLAYED_HEADER } from '@tacho/contract/web/fields.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import type { Route } from '@tacho/contract/web/route.ts'
import Database from 'better-sqlite3'
import { startService, type Answer, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf } from './contract.ts'

const CONFLICT = [409, 'conflict']
let service: Service
let now = Date.now()
before(async () => {
  service = await startService({}, () => now)
})
after(() => service.close())

let keys = 0
const newKey = () => `key ${++keys}`
const post = (target: string, body: unknown, key: string, token = service.operatorToken): Promise<Answer> =>
  service.operator(target, {
    body,
    headers: { [IDEMPOTENCY_KEY_HEADER]: key, authorization: `Bearer ${token}` },
  })
const create = (name: string, key: string, token?: string) => post('/workspaces', { name }, key, token)
const replayed = ({ headers }: Answer) => headers.get(REPLAYED_HEADER)

async function namesLike(start: string): Promise<string[]> {
  const { items } = replyOf('listWorkspaces', await service.operator('/workspaces?limit=100'))
  return items.map(({ name }) => name).filter((name) => name.startsWith(start))
}

function kept<Row>(sql: string, ...params: string[]): Row[] {
  const db = new Database(path.join(service.directory, 'tacho.db'), { readonly: true })
  try {
    return db.prepare(sql).all(...params) as Row[]
  } finally {
    db.close()
  }
}

test('a retry gets the reply of the first request and creates nothing', async () => {
  const key = newKey()
  const first = await create('repeated', key)
  replyOf('createWorkspace', first)
  assert.equal(replayed(first), null)
  const second = await create('repeated', key)
  assert.deepEqual([second.status, second.text, replayed(second)], [201, first.text, 'true'])
  assert.equal(second.headers.get('content-type'), first.headers.get('content-type'))
  assert.deepEqual(await namesLike('repeated'), ['repeated'])
})

test('a retry gets the stored reply for a day', async () => {
  const key = newKey()
  await create('for a day', key)
  now += 24 * 60 * 60 * 1000 - 1
  assert.equal(replayed(await create('for a day', key)), 'true')
  now += 1
  assert.deepEqual(refusalOf(await create('for a day', key)), CONFLICT)
})

test('a key is bound to one path and body', async () => {
  const key = newKey()
  const made = replyOf('createWorkspace', await create('one body', key))
  const other = await create('one body, other', key)
  assert.deepEqual(refusalOf(other), CONFLICT)
  assert.equal(other.headers.get('retry-after'), null)
  assert.deepEqual(refusalOf(await post(`/workspaces/${made.id}/environments`, { name: 'one body' }, key)), CONFLICT)
  assert.deepEqual(await namesLike('one body'), ['one body'])
})

test('one of two identical concurrent requests creates; the other gets its reply or must retry', async () => {
  const { id } = replyOf('createWorkspace', await create('twins', newKey()))
  const key = newKey()
  const token = { name: 'twin', role: 'viewer' }
  const answers = await Promise.all(Array.from({ length: 8 }, () => post(`/workspaces/${id}/tokens`, token, key)))
  const created = answers.filter(({ status, headers }) => status === 201 && !headers.has(REPLAYED_HEADER))
  assert.equal(created.length, 1)
  assert.deepEqual(
    answers.filter((answer) => answer !== created[0]).map(refusalOf),
    Array.from({ length: 7 }, () => CONFLICT),
  )
  const { items } = replyOf('listTokens', await service.operator(`/workspaces/${id}/tokens`))
  assert.deepEqual(
    items.map(({ name }) => name),
    ['twin'],
  )
})

test('a retry during the first request must retry later; after a minute the claim expires', async () => {
  const key = newKey()
  const made = await create('running', key)
  const db = new Database(path.join(service.directory, 'tacho.db'))
  db.prepare(
    "UPDATE idempotency_keys SET state = 'running', status = NULL, reply = NULL WHERE idempotency_key = ?",
  ).run(key)
  db.close()
  const early = await create('running', key)
  assert.deepEqual(refusalOf(early), CONFLICT)
  assert.equal(early.headers.get('retry-after'), '1')
  now += 60_000
  // The request runs again. It fails, because the name is taken, and so releases the key.
  assert.deepEqual(refusalOf(await create('running', key)), CONFLICT)
  assert.equal(made.status, 201)
  assert.deepEqual(kept('SELECT * FROM idempotency_keys WHERE idempotency_key = ?', key), [])
})

test('a request that creates nothing releases its key', async () => {
  const key = newKey()
  await create('taken', newKey())
  assert.deepEqual(refusalOf(await create('taken', key)), CONFLICT)
  assert.deepEqual(refusalOf(await create('', key)), [400, 'invalid_request'])
  assert.equal(replayed(await create('not taken', key)), null)
  assert.equal(replayed(await create('not taken', key)), 'true')
})

test('keys of different actors are independent', async () => {
  const key = newKey()
  const body = { name: 'second', role: 'owner' }
  const { token } = replyOf('createInstallationToken', await service.operator('/tokens', { body }))
  replyOf('createWorkspace', await create('first of two', key))
  const other = await create('second of two', key, token)
  replyOf('createWorkspace', other)
  assert.equal(replayed(other), null)
})

test('a secret is shown once and stored nowhere', async () => {
  const { id } = replyOf('createWorkspace', await create('secrets', newKey()))
  const environment = service.environmentId
  const creations: [keyof typeof OPERATOR_ROUTES, string, object][] = [
    ['createApiKey', `/environments/${environment}/keys`, { name: 'k', scopes: ['events:write'] }],
    ['createToken', `/workspaces/${id}/tokens`, { name: 't', role: 'viewer' }],
    ['createInstallationToken', '/tokens', { name: 't', role: 'viewer' }],
    ['createWebhook', `/environments/${environment}/webhooks`, { url: 'https://93.184.215.14/hook' }],
    ['invite', `/workspaces/${id}/invitations`, { email: 'a@example.com', role: 'viewer' }],
    ['inviteEverywhere', '/invitations', { email: 'b@example.com', role: 'viewer' }],
  ]
  for (const [name, target, body] of creations) {
    const key = newKey()
    const first = await post(target, body, key)
    const made = replyOf(name, first) as Record<string, string>
    const secret = made[(OPERATOR_ROUTES[name] as Route).shownOnce ?? '']
    assert.ok(secret, name)
    const [row] = kept<{ reply: string }>('SELECT reply FROM idempotency_keys WHERE idempotency_key = ?', key)
    assert.ok(row && !row.reply.includes(secret), name)
    assert.equal((JSON.parse(row.reply) as { id: string }).id, made['id'])
    const second = await post(target, body, key)
    assert.deepEqual(refusalOf(second), CONFLICT)
    assert.deepEqual((second.body as { current: object }).current, { id: made['id'] })
    assert.match((second.body as { detail: string }).detail, /created it and showed its/)
    assert.ok(!second.text.includes(secret))
  }
})

test('every endpoint that creates something accepts a key, and no other does', () => {
  for (const [name, route] of Object.entries(OPERATOR_ROUTES) as [string, Route][]) {
    const takes = route.headers !== undefined && IDEMPOTENCY_KEY_HEADER in route.headers.properties
    assert.equal(takes, route.method === 'POST' && [201, 202].includes(route.status), name)
    if (takes) assert.ok(route.errors.includes('conflict'), name)
  }
})

test('a key has 1 to 255 printable ASCII characters', async () => {
  for (const key of ['!', '~'.repeat(255)]) replyOf('createWorkspace', await create(`key of ${key.length}`, key))
  for (const key of ['', 'k'.repeat(256), 'é', 'a\tb']) {
    assert.deepEqual(refusalOf(await create('bad key', key)), [400, 'invalid_request'], key)
  }
  assert.deepEqual(await namesLike('bad key'), [])
})

test('without a key nothing is stored', async () => {
  const count = () => kept('SELECT 1 FROM idempotency_keys').length
  const before = count()
  replyOf('createWorkspace', await service.operator('/workspaces', { body: { name: 'without' } }))
  assert.deepEqual(refusalOf(await service.operator('/workspaces', { body: { name: 'without' } })), CONFLICT)
  assert.equal(count(), before)
})
