/** Two nodes on one database: a decision on one is visible on the other. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Approval, Decision } from '@tacho/contract/approvals/approval.ts'
import type { ApprovalChanges } from '@tacho/contract/approvals/operator-approval.ts'
import { readConfig } from '../../../src/config/config.ts'
import { newApiKey, newOperatorToken } from '../../../src/domain/people/credential.ts'
import { startServer } from '../../setup/start-server.ts'
import type { RunningServer } from '../../../src/process/server.ts'
import { openEventStream } from '../../setup/event-stream.ts'
import { testDatabases, type TestDatabases } from '../../setup/postgres-server.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-nodes-'))
const apiKey = newApiKey(randomBytes).text
const authorization = `Bearer ${newOperatorToken(randomBytes).text}`
let databases: TestDatabases
let database: Awaited<ReturnType<TestDatabases['create']>>
let nodes: RunningServer[]
let approvals: string

before(async () => {
  databases = await testDatabases()
  database = await databases.create()
  const variables = { TACHO_INIT_API_KEY: apiKey, TACHO_INIT_OPERATOR_TOKEN: authorization.slice('Bearer '.length) }
  const flags = { port: '0', dataDir: directory, logLevel: 'silent', databaseUrl: database.url }
  const read = readConfig(flags, variables)
  assert.ok(read.ok, read.ok ? '' : read.faults.join('\n'))
  nodes = [await startServer(read.config), await startServer(read.config)]
  const { items: workspaces } = await operator<{ items: { id: string }[] }>(0, '/workspaces')
  const path = `/workspaces/${workspaces[0]?.id}/environments`
  const { items: environments } = await operator<{ items: { id: string }[] }>(0, path)
  approvals = `/environments/${environments[0]?.id}/approvals`
})
after(async () => {
  for (const node of nodes) await node.close()
  await database.drop()
  await databases.close()
  rmSync(directory, { recursive: true })
})

/** The body of an answer, whatever its status. */
async function call<Body>(
  node: number,
  target: string,
  headers: Record<string, string>,
  body?: unknown,
): Promise<Body> {
  const reply = await fetch(`${nodes[node]?.url}${target}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return (await reply.json()) as Body
}

function operator<Body>(node: number, target: string, body?: unknown): Promise<Body> {
  return call(node, `/operator/v1${target}`, { authorization }, body)
}

function client(node: number, rest = '', body?: unknown): Promise<Approval> {
  const headers = { 'x-api-key': apiKey, 'x-service-client-id': 'c' }
  return call(node, `/openapi/v1/firewall-approvals${rest}`, headers, body)
}

const ask = (node: number, clientRequestId: string = randomUUID()) =>
  client(node, '', { clientRequestId, toolName: 'transfer', inputHash: 'ab'.repeat(32) })

const decide = (node: number, id: string, decision: Decision) =>
  operator<Approval & { current?: Approval }>(node, `${approvals}/${id}/decision`, { decision })

test('a long poll on one node gets a decision made on the other', async () => {
  const { id } = await ask(0)
  const waiting = client(0, `/${id}?wait=30`)
  await wait(100)
  await decide(1, id, 'APPROVED')
  assert.equal((await waiting).status, 'APPROVED')
})

test('a stream of one node shows requests and decisions of the other', async () => {
  const stream = await openEventStream(`${nodes[0]?.url}/operator/v1${approvals}/stream`, { authorization })
  assert.equal((await stream.next())?.event, 'snapshot')
  const { id } = await ask(1)
  const untilTold = async (status: string) => {
    for (;;) {
      const changes = (await stream.next())?.data as ApprovalChanges | undefined
      if (changes?.items.some((item) => item.id === id && item.status === status)) return
    }
  }
  await untilTold('PENDING')
  await decide(1, id, 'REJECTED')
  await untilTold('REJECTED')
  stream.close()
})

test('one request on two nodes is one approval, and one of two decisions counts, on both', async () => {
  await Promise.all(
    Array.from({ length: 40 }, async () => {
      const request = randomUUID()
      const [one, two] = await Promise.all([ask(0, request), ask(1, request)])
      assert.equal(one.id, two.id)
      const decisions = await Promise.all([decide(0, one.id, 'APPROVED'), decide(1, one.id, 'REJECTED')])
      assert.equal(decisions.filter(({ current }) => current === undefined).length, 1)
      const told = decisions.map((each) => (each.current ?? each).status)
      const read = await Promise.all([client(0, `/${one.id}`), client(1, `/${one.id}`)])
      assert.equal(new Set([...told, ...read.map(({ status }) => status)]).size, 1)
    }),
  )
})
