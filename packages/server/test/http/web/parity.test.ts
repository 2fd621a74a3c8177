/**
 * The same script of requests against a server on each engine gives the same answers, byte for byte, except for ids, secrets
 * and signatures that the server generates.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { testDatabases, type TestDatabases } from '../../setup/postgres-server.ts'
import { reviewed } from '../../setup/issue-service.ts'
import { startService, type Answer, type Request, type Service } from '../../setup/service.ts'

const START = Date.UTC(2026, 8, 21, 14)
const HASH = 'ab'.repeat(32)
const HEADERS = ['content-type', 'etag', 'cache-control', 'retry-after', 'ratelimit-limit', 'location', 'allow']

let databases: TestDatabases
before(async () => {
  databases = await testDatabases()
})
after(() => databases.close())

interface Played {
  request: string
  status: number
  headers: Record<string, string>
  text: string
}

/** Replaces ids by numbers in order of appearance, so that the answers of two servers can be compared. */
function renamer(): (text: string) => string {
  const names = new Map<string, string>()
  const named = (kind: string) => (found: string) => {
    let name = names.get(found)
    if (name === undefined) names.set(found, (name = `<${kind} ${names.size}>`))
    return name
  }
  return (text) =>
    text
      .replaceAll(/tacho(-operator)?_[0-9a-z]+_[0-9a-z]+/g, named('credential'))
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, named('uuid'))
      // Ids of keys and tokens.
      .replaceAll(/"(id|keyId|actorId)":"[0-9a-f]{16}"/g, named('key'))
      .replaceAll(/(?<=keys\/)[0-9a-f]{16}/g, named('key in a path'))
      // The signature of a cursor; its position is compared as far as it is the same on both.
      .replaceAll(/"nextCursor":"[^"]+"/g, '"nextCursor":"<cursor>"')
      .replaceAll(/cursor=(?:ey|Ij)[^ ]+/g, 'cursor=<cursor>')
}

async function play(service: Service, tick: (ms: number) => number): Promise<Played[]> {
  const played: Played[] = []
  const rename = renamer()

  async function record(request: string, answering: Promise<Answer>): Promise<Answer> {
    const answer = await answering
    const headers = Object.fromEntries(
      HEADERS.flatMap((name) => {
        const value = answer.headers.get(name)
        return value === null ? [] : [[name, rename(value)]]
      }),
    )
    played.push({ request: rename(request), status: answer.status, headers, text: rename(answer.text) })
    return answer
  }
  async function ticking(answering: Promise<Answer>): Promise<Answer> {
    const answer = await answering
    tick(1000)
    return answer
  }
  const api = (path: string, request: Request = {}) =>
    ticking(record(`api ${path} ${JSON.stringify(request)}`, service.api(path, request)))
  const operator = (path: string, request: Request = {}) =>
    ticking(record(`operator ${path} ${JSON.stringify(request)}`, service.operator(path, request)))
  const post = (path: string, body: unknown) => api(path, { body })
  const environment = `/environments/${service.environmentId}`

  let count = 0
  const event = (change: Record<string, unknown> = {}) => ({
    eventId: `e${++count}`,
    clientId: 'client',
    runId: 'run',
    agentName: 'agent',
    eventType: 'AGENT_STEP',
    label: 'step',
    timestamp: START + count,
    ...change,
  })
  const llm = (payload: unknown, change: Record<string, unknown> = {}) =>
    event({ eventType: 'LLM_CALL', label: 'model', payload, ...change })

  // Batches: valid, repeated, differing, out of order, and with every fault.
  const first = event({ sessionId: 's 1', agentId: 'a-1' })
  await post('/events/batch', [first, event({ timestamp: START - 5000 }), first])
  await post('/events/batch', [first, { ...first, label: 'other' }])
  await post('/events/batch', [
    llm({ model: 'm-1', usage: { promptTokens: 3, completionTokens: 4 }, cost: 0.1 }),
    llm({ model: 'm-2', usage: { totalTokens: 1e9 }, cost: 0.3 }),
    llm({ model: 'm-1', usage: { promptTokens: -1 }, cost: 'x' }),
    event({ eventType: 'TOOL_CALL', payload: { toolName: 'pay', input: { amount: 1 } } }),
    event({ eventType: 'ERROR', payload: { message: 'no' } }),
  ])
  const exact = `{"z":1.0,"a":-0,"n":12345678901234567890,"u":"\\u00fc \\u0000","z":2,"__proto__":{}}`
  await api('/events/batch', {
    body: `[${JSON.stringify(event({ eventId: 'exact', payload: 0 })).replace(`"payload":0`, `"payload":${exact}`)}]`,
  })
  await post('/events/batch', [
    event({ label: undefined }),
    event({ timestamp: 0 }),
    event({ timestamp: START + 1e12 }),
    event({ runId: '' }),
    event({ eventId: 'x'.repeat(5000) }),
    event({ eventId: 'has \u0000' }),
    event({ payload: 'x'.repeat(300_000) }),
    event({ workspaceId: 'ffffffff-ffff-4fff-8fff-ffffffffffff' }),
    null,
    7,
    event({ spanId: 's', parentSpanId: 'p', schemaVersion: '1' }),
  ])
  for (const body of ['', '{', '{}', '[]', 'null', `[${Array(101).fill('{}').join()}]`])
    await api('/events/batch', { body })
  await api('/events/batch', { body: '[]', headers: { 'content-type': 'text/plain' } })
  for (const [index, runId] of ['zwei', 'ünï/ 😀', 'three', 'four'].entries()) {
    await post('/events/batch', [
      event({ runId, agentId: 'a-2', agentName: `agent ${index}`, timestamp: START + 10_000 * (index + 1) }),
      event({ runId, eventType: 'SESSION_OUTCOME', payload: { status: index % 2 === 0 ? 'COMPLETED' : 'FAILED' } }),
      event({ runId, eventType: 'SESSION_OUTCOME', payload: { status: 'ABANDONED' } }),
    ])
  }
  // Equal times: the arrival order decides.
  for (let batch = 0; batch < 3; batch++) {
    await post(
      '/events/batch',
      Array.from({ length: 7 }, () => event({ runId: 'ties', timestamp: START + 1 })),
    )
  }

  // Reading, with cursors to the end, and invalid queries.
  async function walk(path: string, read = api): Promise<void> {
    for (let last = ''; ;) {
      const from = last === '' ? '' : `${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(last)}`
      const { body } = (await read(`${path}${from}`)) as Answer<{ nextCursor?: string | null } | null>
      // Paging by arrival has no end: the last cursor waits for later events.
      if (!body?.nextCursor || body.nextCursor === last) return
      last = body.nextCursor
    }
  }
  await walk('/runs')
  await walk('/runs?limit=2')
  for (const query of [
    'status=FAILED',
    'status=RUNNING',
    'agentId=a-2',
    'agentId=%00',
    'agentId=nobody',
    'sessionId=s%201',
  ]) {
    await walk(`/runs?limit=1&${query}`)
  }
  for (const query of ['limit=0', 'limit=x', 'limit=1001', 'status=X', 'status=', 'cursor=abc', 'limit=1&limit=2']) {
    await api(`/runs?${query}`)
  }
  for (const run of [
    'run',
    'zwei',
    encodeURIComponent('ünï/ 😀'),
    'nothing',
    '%ff',
    'ffffffff-ffff-4fff-8fff-ffffffffffff',
  ]) {
    await api(`/runs/${run}`)
    await walk(`/runs/${run}/events?limit=3`)
  }
  await walk('/runs/ties/events?limit=4')

  // Operators read the same runs.
  for (const before of ['%00', '%ED%A0%80', 'nothing'])
    await operator(`${environment}/runs/run/events?order=latest&before=${before}`)
  await walk(`${environment}/runs?limit=2`, operator)
  await walk(`${environment}/runs/ties/events?limit=5`, operator)
  await walk(`${environment}/runs/ties/events?limit=5&order=arrival`, operator)
  for (const id of ['exact', 'e1', 'nothing']) {
    await operator(`${environment}/runs/run/events/${id}`)
    await operator(`${environment}/runs/run/events/${id}/trace`)
  }
  await operator(`${environment}/usage?from=${START - 3_600_000}&to=${START + 3_600_000}`)
  await operator(`${environment}/usage`)
  await operator(`${environment}/runs/nothing`)
  await operator('/environments/nothing/runs')
  await operator('/workspaces', { body: { name: 'acme' } })
  await operator('/workspaces', { body: { name: 'acme' } })
  await operator('/workspaces', { body: { name: '' } })
  await walk('/workspaces?limit=1', operator)
  const { body: made } = (await operator(`${environment}/keys`, {
    body: { name: 'k', scopes: ['usage:read'] },
  })) as Answer<{
    id: string
    key: string
  }>
  await record('a key without the scope', service.record([], made.key))
  await operator(`${environment}/keys/${made.id}/revoke`, { method: 'POST' })
  await operator(`${environment}/keys/${made.id}/revoke`, { method: 'POST' })
  await operator(`${environment}/keys/nothing/revoke`, { method: 'POST' })
  await record('no key', service.call('/openapi/v1/runs'))
  await record('no such path', service.call('/openapi/v1/nothing'))

  // Issue records.
  const issue = (change: Record<string, unknown> = {}) => ({
    sdkInstanceId: 'client',
    clientRecordId: `r${++count}`,
    recordKind: 'DETECTION',
    detectionType: 'TOOL_BLOCKED',
    agentId: 'a-1',
    detectedAt: START + count,
    payload: { toolName: 'pay', reasonCode: ' Too  MUCH ' },
    ...change,
  })
  // Review now, because an issue shows when it was opened.
  async function report(body: unknown): Promise<void> {
    await record(`report ${JSON.stringify(body)}`, service.api('/issue-records', { body }))
    await reviewed(service)
    tick(1000)
  }
  const reported = issue({ runId: 'run', eventId: 'e1' })
  await report(reported)
  await report(reported)
  await report({ ...reported, payload: {} })
  await report(issue({ promptVersionId: 'FFFFFFFF-FFFF-4FFF-8FFF-FFFFFFFFFFFF' }))
  await report(issue({ promptVersionId: 'no uuid' }))
  await report(issue({ detectionType: '' }))
  await report(issue({ detectionType: 'LOOP', agentId: 'a-2' }))
  await report(issue({ recordKind: 'RECOVERY' }))
  await operator(`${environment}/issues?detectionType=TOOL_BLOCKED`)
  await operator(`${environment}/issues?detectionType=LOOP`)
  await operator(`${environment}/issues?state=X`)

  // Approvals.
  const headers = { 'x-service-client-id': 'client' }
  const ask = (change: Record<string, unknown>) =>
    api('/firewall-approvals', {
      headers,
      body: { clientRequestId: `c${++count}`, toolName: 'pay', inputHash: HASH, ...change },
    }) as Promise<Answer<{ id: string }>>
  const asked = await ask({ clientRequestId: 'same', runId: 'run', agentId: 'a-1', reason: 'ü' })
  await ask({ clientRequestId: 'same' })
  await ask({ clientRequestId: 'same', toolName: 'other' })
  await ask({ inputHash: 'xyz' })
  const short = await ask({ timeoutMs: 1000 })
  await ask({ timeoutMs: 0 })
  const id = asked.body.id
  await api(`/firewall-approvals/${id}`, { headers })
  await api(`/firewall-approvals/${id}`, { headers: { 'x-service-client-id': 'another' } })
  await api('/firewall-approvals/nothing', { headers })
  const decide = (of: string, decision: string) =>
    operator(`${environment}/approvals/${of}/decision`, { body: { decision, reason: 'because' } })
  await decide(id, 'APPROVED')
  await decide(id, 'APPROVED')
  await decide(id, 'REJECTED')
  await decide(id, 'MAYBE')
  tick(60_000)
  await api(`/firewall-approvals/${short.body.id}`, { headers })
  await decide(short.body.id, 'APPROVED')
  await operator(`${environment}/approvals?status=APPROVED`)
  await operator(`${environment}/approvals?status=EXPIRED`)

  // Configuration.
  const { body: empty } = (await api('/runtime-config')) as Answer<{ revision: string }>
  await api('/runtime-config', { headers: { 'if-none-match': `W/"x", "${empty.revision}"` } })
  const { body: workspaces } = (await service.operator('/workspaces')) as Answer<{
    items: { id: string; name: string }[]
  }>
  const workspace = `/workspaces/${workspaces.items.find(({ name }) => name === 'default')?.id}`
  const policy = { policyId: 'p-1', condition: 'tool.name == "pay"', severity: 'HIGH', action: 'BLOCK' }
  await operator(`${workspace}/policies`, { body: policy })
  await operator(`${workspace}/policies`, { body: policy })
  await operator(`${workspace}/policies`, { body: { ...policy, policyId: 'p-2', condition: 'tool.nam ==' } })
  await operator(`${workspace}/prompts`, { body: { name: 'greeting', content: 'Hello\r\n ü\u2028' } })
  await operator(`${environment}/deployments`, { body: { items: [{ kind: 'policy', id: 'p-1', version: '1' }] } })
  await operator(`${environment}/deployments`)
  await api('/runtime-config')
  await operator('/backups/none')
  return played
}

async function answers(flags: Record<string, string>): Promise<Played[]> {
  let now = START + 1_000_000
  const service = await startService(flags, () => now)
  try {
    return await play(service, (ms) => (now += ms))
  } finally {
    await service.close()
  }
}

test('both engines answer every request the same way', { timeout: 900_000 }, async () => {
  const database = await databases.create()
  try {
    const [embedded, shared] = [await answers({}), await answers({ databaseUrl: database.url })]
    assert.ok(embedded.length > 120, `${embedded.length} requests`)
    const differing = embedded.filter((answer, index) => !isDeepStrictEqual(answer, shared[index]))
    assert.deepEqual(
      shared.filter((answer, index) => !isDeepStrictEqual(answer, embedded[index])),
      differing,
    )
    assert.equal(shared.length, embedded.length)
    // Most requests of the script succeed.
    const good = embedded.filter(({ status }) => status < 300)
    assert.ok(good.length > embedded.length / 2, `${good.length} of ${embedded.length} went well`)
  } finally {
    await database.drop()
  }
})

test('a store in a database explains how to back it up instead', async () => {
  const database = await databases.create()
  const service = await startService({ databaseUrl: database.url })
  const { status, text } = await service.operator('/backups', { method: 'POST' })
  assert.equal(status, 409)
  assert.match(text, /pg_basebackup .*docs\/operations\.md/)
  await service.close()
  await database.drop()
})
