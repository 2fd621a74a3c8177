/**
 * Two nodes on one PostgreSQL database: a sign-in on one is valid on the other, and a removed permission is removed on
 * both.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { readConfig } from '../../../src/config/config.ts'
import { newOperatorToken } from '../../../src/domain/people/credential.ts'
import { startServer } from '../../setup/start-server.ts'
import type { RunningServer } from '../../../src/process/server.ts'
import { eventually } from '../../setup/eventually.ts'
import { testDatabases, type TestDatabases } from '../../setup/postgres-server.ts'
import { codeOf, PASSWORD } from './browser.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-nodes-'))
const authorization = `Bearer ${newOperatorToken(randomBytes).text}`
let databases: TestDatabases
let database: Awaited<ReturnType<TestDatabases['create']>>
let nodes: RunningServer[]

before(async () => {
  databases = await testDatabases()
  database = await databases.create()
  const flags = { port: '0', dataDir: directory, logLevel: 'silent', databaseUrl: database.url }
  const read = readConfig(flags, { TACHO_INIT_OPERATOR_TOKEN: authorization.slice('Bearer '.length) })
  assert.ok(read.ok, read.ok ? '' : read.faults.join('\n'))
  nodes = [await startServer(read.config), await startServer(read.config)]
})
after(async () => {
  for (const node of nodes) await node.close()
  await database.drop()
  await databases.close()
  rmSync(directory, { recursive: true })
})

type Json = Record<string, unknown>

async function call(node: number, target: string, headers: Record<string, string>, body?: object) {
  const url = nodes[node]?.url ?? ''
  const reply = await fetch(`${url}/operator/v1${target}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { origin: url, ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const lines = reply.headers.getSetCookie().filter((line) => !/max-age=0/i.test(line))
  const cookie = lines.map((line) => line.split(';')[0]).join('; ')
  return { status: reply.status, body: (await reply.json()) as Json, cookie }
}

const operator = (target: string, body?: object) => call(0, target, { authorization }, body)

async function newPerson(email: string, role: string): Promise<string> {
  const { body } = await operator('/invitations', { email, role })
  const token = String(body['link']).split('#')[1]
  assert.equal((await call(1, '/invitations/accept', {}, { token, password: PASSWORD })).status, 200)
  const signedIn = await call(0, '/sign-in', {}, { email, password: PASSWORD })
  assert.deepEqual([signedIn.status, signedIn.body['status']], [200, 'signed_in'])
  return signedIn.cookie
}

/** Repeats a request until it has the status. The service promises 5 seconds. */
async function becomes(wanted: number, ask: () => Promise<{ status: number }>): Promise<void> {
  await eventually(async () => (await ask()).status === wanted, `status ${wanted}`, 5_000)
}

test('a session that ends on one node is rejected on the other within 5 seconds', async () => {
  const cookie = await newPerson('ann@example.com', 'viewer')
  const me = () => call(1, '/me', { cookie })
  assert.equal((await me()).status, 200)
  assert.equal((await call(0, '/sign-out', { cookie }, {})).status, 200)
  await becomes(401, me)
})

test('a role removed on one node is removed on the other within 5 seconds', async () => {
  const cookie = await newPerson('bob@example.com', 'admin')
  const { body: me } = await call(1, '/me', { cookie })
  const [workspace] = ((await operator('/workspaces')).body['items'] as { id: string }[]) ?? []
  const make = () =>
    call(1, `/workspaces/${workspace?.id}/environments`, { cookie }, { name: randomBytes(4).toString('hex') })
  assert.equal((await make()).status, 201)
  assert.equal((await operator(`/operators/${String(me['id'])}/role`, { role: 'viewer' })).status, 200)
  await becomes(403, make)
  assert.equal((await operator(`/operators/${String(me['id'])}/remove`, {})).status, 200)
  await becomes(401, make)
})

test('a challenge of one node is answered on the other, once', async () => {
  const email = 'carl@example.com'
  const cookie = await newPerson(email, 'viewer')
  const { body: factor } = await call(0, '/me/second-factor', { cookie }, { password: PASSWORD })
  const uri = String(factor['uri'])
  assert.equal((await call(1, '/me/second-factor/confirm', { cookie }, { code: codeOf(uri) })).status, 200)
  const challenged = await call(0, '/sign-in', {}, { email, password: PASSWORD })
  assert.equal(challenged.body['status'], 'second_factor_needed')
  // The code of the next interval is accepted too, also if that interval has begun meanwhile. No earlier code is.
  const code = codeOf(uri, Date.now() + 30_000)
  const answers = await Promise.all(
    [0, 1, 0, 1].map((node) => call(node, '/sign-in/code', { cookie: challenged.cookie }, { code })),
  )
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  assert.ok(answers.every(({ status }) => status === 200 || status === 401))
})

test('a list of addresses set on one node is obeyed by the other within 5 seconds', async () => {
  const { body: workspaces } = await operator('/workspaces')
  const [workspace] = workspaces['items'] as Json[]
  const { body: environments } = await operator(`/workspaces/${String(workspace?.['id'])}/environments`)
  const [environment] = environments['items'] as Json[]
  const keys = `/environments/${String(environment?.['id'])}/keys`
  const { body: key } = await operator(keys, { name: 'k', scopes: ['usage:read'] })
  const ask = () => fetch(`${nodes[1]?.url}/openapi/v1/runs`, { headers: { 'x-api-key': String(key['key']) } })
  assert.equal((await ask()).status, 200)
  await operator(`${keys}/${String(key['id'])}/change`, { allowedAddresses: ['192.0.2.1'] })
  await becomes(401, ask)
})
