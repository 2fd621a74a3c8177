/** Exports of environments, and their import: the same on each engine, and from one to the other. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { LIMITS } from '@tacho/contract/limits.ts'
import { eventually } from '../../setup/eventually.ts'
import { issueRecord, reviewed } from '../../setup/issue-service.ts'
import { testDatabases, type TestDatabases } from '../../setup/postgres-server.ts'
import { populate } from '../../setup/route-samples.ts'
import { event, startService, type Answer, type Service } from '../../setup/service.ts'
import { refusalOf } from './contract.ts'

interface Exported {
  service: Service
  environmentId: string
}

let databases: TestDatabases
let source: Exported & { apiKey: string; workspaceId: string }
let whole: string
before(async () => {
  databases = await testDatabases()
  const service = await startService({ webhookNetworks: '127.0.0.0/8' })
  source = { service, ...(await filled(service)) }
  whole = await exported(source)
})
after(async () => {
  try {
    await source.service.close()
  } finally {
    await databases.close()
  }
})

/** JSON texts that an encoder would change. */
const PAYLOADS = [
  '{"z":1.0,"a":-0,"n":12345678901234567890,"u":"\\u00fc \\u0000","z":2,"__proto__":{}}',
  '{\n  "pretty": [\r\n 1,\t2 ],\n "type": "end", "payload": "\\"payload\\":" }',
  '{"spanId":"in the payload","payloadText":"own"}',
  '{ }',
]

/** A tenant with rows in every table that an export has. */
async function filled(service: Service): Promise<{ environmentId: string; workspaceId: string; apiKey: string }> {
  const { workspaceId, environmentId, apiKey, ids } = await populate(service, 'acme')
  const record = (events: unknown) => service.record(events, apiKey)
  const now = Date.now()
  for (const [index, payload] of PAYLOADS.entries()) {
    const sent = event({ runId: `exact ${index}`, timestamp: now - index, payload: 0, sessionId: `s${index}` })
    const { body } = await record(`[${JSON.stringify(sent).replace('"payload":0', `"payload":${payload}`)}]`)
    assert.equal(body.accepted, 1)
  }
  const run = (runId: string, change: Record<string, unknown>) => event({ runId, agentId: 'a-1', ...change })
  const call = { model: 'm-1', usage: { promptTokens: 3, completionTokens: 4 }, cost: 0.1, latency: 120 }
  const first = run('mixed', {
    timestamp: now,
    eventType: 'LLM_CALL',
    payload: { ...call, promptVersionId: ids['promptId'] },
  })
  // Arrives out of order, in several requests, with a differing retry, a second session and a second outcome.
  await record([first, run('mixed', { timestamp: now - 9_000, sessionId: 'later' })])
  await record([{ ...first, label: 'differs' }, run('mixed', { sessionId: 'other', spanId: 's', parentSpanId: 'p' })])
  const failed = run('mixed', { eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED' }, timestamp: now + 5 })
  await record([
    failed,
    run('mixed', { eventType: 'SESSION_OUTCOME', payload: { status: 'COMPLETED' }, timestamp: now }),
  ])
  await record([run('mixed', { eventType: 'ERROR', payload: { message: 'no' }, agentName: 'renamed' })])
  for (let sent = 0; sent < 13; sent++) {
    const step = (index: number) => ({
      runId: 'long',
      eventType: 'TOOL_CALL',
      payload: { toolName: `tool ${index % 7}` },
    })
    await record(Array.from({ length: 100 }, (_, index) => event({ ...step(index), timestamp: now - index * sent })))
  }
  const operator = async (path: string, body: object) => {
    const answer = await service.operator<Record<string, string>>(path, { body })
    assert.ok(answer.status < 300, answer.text)
    return answer.body
  }
  const at = `/environments/${environmentId}`
  await operator(`${at}/approvals/${ids['approvalId']}/decision`, { decision: 'APPROVED', reason: 'fine' })
  await operator(`${at}/issues/${ids['issueId']}/comments`, { text: 'Seen\nbefore' })
  const pretty = JSON.stringify(issueRecord({ runId: 'mixed', payload: { toolName: 'pay' } }), null, 1)
  await service.api('/issue-records', { body: pretty, headers: { 'x-api-key': apiKey } })
  await reviewed(service, environmentId)
  await operator(`/workspaces/${workspaceId}/prompts/${ids['promptId']}/versions`, { content: 'Hello\r\n ü\u2028' })
  await operator(`${at}/runs/long/pin`, {})
  const items = [
    { kind: 'policy', id: ids['policyId'], version: '1' },
    { kind: 'prompt', id: ids['promptId'], version: '2' },
  ]
  await operator(`${at}/deployments`, { items })
  await archiveSome(service, workspaceId, environmentId)
  return { environmentId, workspaceId, apiKey }
}

/** Archives a prompt, a policy, and an agent with a given name. */
async function archiveSome(service: Service, workspaceId: string, environmentId: string): Promise<void> {
  const act = async (path: string, body: object) => {
    const { status, text } = await service.operator(path, { body })
    assert.ok(status < 300, text)
  }
  const at = `/workspaces/${workspaceId}`
  const prompt = await service.operator<{ promptId: string }>(`${at}/prompts`, { body: { name: 'old', content: 'x' } })
  await act(`${at}/prompts/${prompt.body.promptId}/archive`, {})
  await act(`${at}/policies`, { policyId: 'old', condition: 'true', severity: 'LOW', action: 'WARN' })
  await act(`${at}/policies/old/archive`, {})
  const agents = `/environments/${environmentId}/agents`
  const { items } = (await service.operator<{ items: { id: string; agentId: string | null }[] }>(agents)).body
  const agent = items.find(({ agentId }) => agentId === 'a-1') ?? assert.fail('no agent a-1')
  await act(`${agents}/${agent.id}/rename`, { name: 'Refunds' })
  await act(`${agents}/${agent.id}/archive`, {})
}

const pathOf = ({ environmentId }: Exported, query = '') => `/environments/${environmentId}/export${query}`

async function exported(from: Exported, query = ''): Promise<string> {
  const answer = await from.service.operator(pathOf(from, query))
  assert.equal(answer.status, 200, answer.text)
  return answer.text
}

const linesOf = (text: string): string[] => text.split('\n').slice(0, -1)
const typeOf = (line: string): string => (JSON.parse(line) as { type: string }).type
const ofType = (text: string, type: string) =>
  linesOf(text)
    .filter((line) => typeOf(line) === type)
    .map((line) => JSON.parse(line) as Record<string, unknown>)

/** The line of its run comes before the events of each request. */
function requestsOf(text: string, most = 700): string[][] {
  const requests: string[][] = []
  let run: string | null = null
  for (const line of linesOf(text)) {
    if (typeOf(line) === 'run') run = line
    const last = requests.at(-1)
    if (last && last.length < most) last.push(line)
    else requests.push(run !== null && typeOf(line) === 'event' ? [run, line] : [line])
  }
  return requests
}

async function restore(into: Exported, requests: string[][], resume = false) {
  const sums = { written: 0, known: 0 }
  for (const lines of requests) {
    const answer = await send(into, lines, resume)
    assert.equal(answer.status, 200, answer.text)
    sums.written += answer.body.written
    sums.known += answer.body.known
  }
  return sums
}

function send(into: Exported, lines: string[], resume = false): Promise<Answer<{ written: number; known: number }>> {
  return into.service.operator(`/environments/${into.environmentId}/import`, { body: { lines, resume } })
}

/** What people see of the environment, beyond the lines. */
async function views({ service, environmentId }: Exported): Promise<string[]> {
  const range = `from=${new Date(Date.now() - 86_400_000).toISOString()}&to=${new Date(Date.now() + 7_200_000).toISOString()}`
  const paths = [
    '/runs',
    `/usage?${range}`,
    '/issues',
    '/approvals',
    '/deployments',
    '/deployments/changes',
    '/run-views',
    '/agents?archived=true',
  ]
  paths.push(`/usage/points?${range}&step=day&by=agent`, `/usage/points?${range}&step=day&by=model`)
  const answers = await Promise.all(paths.map((path) => service.operator(`/environments/${environmentId}${path}`)))
  return answers.map(({ status, text }, index) => {
    assert.equal(status, 200, `${paths[index]}: ${text}`)
    return text.replaceAll(environmentId, '<environment>').replaceAll(/"nextCursor":"[^"]+"/g, '')
  })
}

test(
  'an export that is imported into an empty installation is exported again byte for byte, on and between both engines',
  { timeout: 600_000 },
  async () => {
    const expected = await views(source)
    let text = whole
    // From the embedded engine into itself: the import that is repeated, below.
    for (const engine of ['postgres', 'postgres', 'sqlite']) {
      const database = engine === 'postgres' ? await databases.create() : null
      const service = await startService(database ? { databaseUrl: database.url } : {})
      try {
        const target = { service, ...(await service.newTenant('acme')) }
        await restore(target, requestsOf(text))
        text = await exported(target)
        assert.equal(text === whole, true, `${engine}: ${firstDifference(text, whole)}`)
        assert.deepEqual(await views(target), expected)
      } finally {
        await service.close()
        await database?.drop()
      }
    }
  },
)

function firstDifference(one: string, other: string): string {
  const [left, right] = [one.split('\n'), other.split('\n')]
  const at = left.findIndex((line, index) => line !== right[index])
  return `${left[at]?.slice(0, 500)}\n${right[at]?.slice(0, 500)}`
}

test('an export has every table of an environment, and events as they were sent, in the order of their arrival', () => {
  const types = new Set(linesOf(whole).map(typeOf))
  const rows = ['prompt', 'promptVersion', 'policy', 'policyVersion', 'deployment', 'deploymentChange', 'configuration']
  rows.push('runView', 'agent', 'model', 'run', 'event', 'approval', 'issueRecord', 'issue', 'issueFingerprint')
  assert.deepEqual(types, new Set(['export', ...rows, 'issueAffected', 'issueActivity', 'mark', 'end']))
  const texts = ofType(whole, 'event').map((line) => line['payloadText'])
  assert.ok(texts.includes(PAYLOADS[1]))
  for (const payload of [PAYLOADS[0], PAYLOADS[2], PAYLOADS[3]]) assert.ok(whole.includes(`"payload":${payload}}\n`))
  const mixed = ofType(whole, 'event').filter(({ runId }) => runId === 'mixed')
  assert.deepEqual(
    mixed.map(({ sessionId = null }) => sessionId),
    [null, 'later', 'other', null, null, null],
  )
  assert.equal(ofType(whole, 'run').find(({ runId }) => runId === 'mixed')?.['differingRetries'], 1)
})

test('an export says what is archived, and which names operators gave', () => {
  const archived = (type: string) => ofType(whole, type).filter(({ archivedAt }) => typeof archivedAt === 'number')
  assert.deepEqual(
    archived('prompt').map(({ name }) => name),
    ['old'],
  )
  assert.deepEqual(
    archived('policy').map(({ id }) => id),
    ['old'],
  )
  assert.deepEqual(
    archived('agent').map(({ externalId, displayName }) => [externalId, displayName]),
    [['a-1', 'Refunds']],
  )
})

test('the last line has the counts and the checksum of all lines but the marks', () => {
  let sha256 = ''
  const counts: Record<string, number> = {}
  const lines = linesOf(whole)
  for (const line of lines.slice(0, -1)) {
    const type = typeOf(line)
    if (type === 'mark') {
      assert.equal((JSON.parse(line) as { sha256: string }).sha256, sha256)
      continue
    }
    sha256 = createHash('sha256').update(`${sha256}${line}\n`).digest('hex')
    counts[type] = (counts[type] ?? 0) + 1
  }
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  assert.deepEqual(JSON.parse(lines.at(-1) ?? ''), { type: 'end', lines: total, counts, sha256 })
})

test('an export continues after each of its marks with the same bytes', async () => {
  const marks = ofType(whole, 'mark')
  assert.ok(marks.length >= 1)
  for (const { after: at } of marks) {
    const rest = whole.slice(whole.indexOf(`"after":"${String(at)}"}\n`) + String(at).length + 12)
    assert.equal((await exported(source, `?after=${String(at)}`)) === rest, true)
  }
  for (const damaged of ['x', Buffer.from('{"place":{}}').toString('base64url')]) {
    assert.equal((await source.service.operator(pathOf(source, `?after=${damaged}`))).status, 400)
  }
})

test('a filter of the list of runs chooses the runs of an export', async () => {
  const runs = async (query: string) => ofType(await exported(source, query), 'run').map(({ runId }) => runId)
  assert.deepEqual(await runs('?status=FAILED'), ['mixed'])
  assert.deepEqual(await runs('?tool=tool%203'), ['long'])
  assert.deepEqual(await runs('?sessionId=nothing'), [])
  assert.equal((await source.service.operator(pathOf(source, '?status=WRONG'))).status, 400)
})

test('an import can be repeated; it refuses an environment that has other rows', async () => {
  const service = await startService()
  const target = { service, ...(await service.newTenant('acme')) }
  const requests = requestsOf(whole)
  const { written, known } = await restore(target, requests.slice(0, 2))
  assert.ok(written > 0)
  assert.equal(known, 0)
  assert.deepEqual(refusalOf(await send(target, requests[0] ?? [])), [409, 'conflict'])
  await restore(target, requests, true)
  assert.equal((await restore(target, requests, true)).written, 0)
  assert.equal((await exported(target)) === whole, true)

  const events = linesOf(whole).filter((line) => typeOf(line) === 'run' || typeOf(line) === 'event')
  const [run = '', one = ''] = events
  const changed = one.replace(/"label":"[^"]*"/, '"label":"changed"')
  const refused = async (lines: string[], reason: RegExp) => {
    const { status, text } = await send(target, lines, true)
    assert.ok(status === 409 || status === 400, text)
    assert.match(text, reason)
  }
  await refused([run, changed], /lines\[0\]: event .* is stored with other content/)
  await refused([run.replace(/"id":"./, '"id":"f'), one], /another run has its id/)
  await refused([one], /without the line of its run/)
  await refused([run, one.replace('"eventId":"', '"eventId":7,"was":"')], /lines\[1\] is not a valid event/)
  await refused(['{"type":"export","version":2}'], /another version/)
  await refused(['{"type":"runs"}'], /unknown type/)
  await refused(['{"type":'], /not a line of an export/)
  const agent = linesOf(whole).find((line) => typeOf(line) === 'agent') ?? ''
  await refused([agent.replace(/"name":"[^"]*"/, '"name":"changed"')], /another agent is stored/)
  const [place] = one.match(/"payload.*$/) ?? ['']
  const payload = (text: string) => one.replace(place, text)
  await refused([run, payload('"payloadText":"{"}')], /lines\[1\] has an invalid payload/)
  await refused([run, payload('"payloadText":"[]"}')], /lines\[1\]/)
  await refused(
    [run, payload(`"payloadText":${JSON.stringify(`${'['.repeat(90_000)}${']'.repeat(90_000)}`)}}`)],
    /lines\[1\]/,
  )
  await refused([run, one.replace(/"receivedAt":\d+/, '"receivedAt":1e20')], /lines\[1\]/)
  await refused([run, one.replace(/"timestamp":\d+/, '"timestamp":-1')], /lines\[1\]/)
  await refused([run, one.replace(/"receivedAt":\d+/, '"receivedAt":-1')], /lines\[1\]/)
  await refused(['{"type":"constructor"}'], /unknown type/)
  await refused(['{"type":"__proto__","__proto__":{"type":"run"}}'], /unknown type/)
  const record = linesOf(whole).find((line) => typeOf(line) === 'issueRecord') ?? ''
  await refused([record.replace(/"payload(Text)?":.*$/, '"payloadText":"{","evidence":{}}')], /invalid payload/)
  await refused([record.replace(/"id":"[^"]*"/, '"id":"constructor"')], /invalid id|another issueRecord/)
  // What readers could not read.
  for (const [type, member] of [
    ['run', 'status'],
    ['approval', 'status'],
    ['issue', 'state'],
    ['issueRecord', 'recordKind'],
    ['deployment', 'kind'],
  ] as const) {
    const line = { ...ofType(whole, type)[0], [member]: 'constructor' }
    await refused([JSON.stringify(line)], new RegExp(`lines\\[0\\] has an invalid ${member}`))
  }
  // What no table can hold.
  const { createdAt, ...request } = ofType(whole, 'approval')[0] ?? assert.fail('no approval')
  for (const wrong of [{}, { createdAt: 'now' }, { createdAt: null }]) {
    await refused([JSON.stringify({ ...request, ...wrong })], /lines\[0\] has an invalid createdAt/)
  }
  await refused([JSON.stringify({ ...request, createdAt, toolName: 7 })], /lines\[0\] has an invalid toolName/)
  await refused(['{"type":"prompt"}'], /lines\[0\] has an invalid id/)
  const bare = { ...(JSON.parse(run) as object), payloadsRemoved: 1 }
  for (const traits of ['tool:{', 'tool:7', 7]) {
    await refused([JSON.stringify({ ...bare, traits })], /lines\[0\] has invalid traits/)
  }
  for (const uncosted of ['{', '7', '[7]', '[["m","x"]]', '[["m",-1]]', 7]) {
    await refused([JSON.stringify({ ...bare, uncosted })], /lines\[0\] has an invalid uncosted/)
  }
  // Nothing of the refused lines was written.
  assert.equal((await exported(target)) === whole, true)
  await service.close()
})

test('an import neither reads nor changes a prompt of another workspace', async () => {
  const { service } = source
  const target = { service, ...(await service.newTenant('another')) }
  const { promptId } = ofType(whole, 'promptVersion')[0] ?? assert.fail('no prompt')
  const versions = ofType(whole, 'promptVersion').filter((version) => version['promptId'] === promptId)
  const rows = [
    { ...versions[0], type: 'promptVersion', number: 99, id: '00000000-0000-4000-8000-000000000099' },
    { ...ofType(whole, 'deployment').find(({ kind }) => kind === 'prompt') },
    { ...ofType(whole, 'deploymentChange').find(({ kind }) => kind === 'prompt') },
  ]
  for (const row of rows) {
    const { status, text } = await send(target, [JSON.stringify(row)], true)
    assert.equal(status, 409, text)
    assert.match(text, /lines\[0\]: the workspace does not have its prompt/)
  }
  const deployed = await service.operator<{ items: object[] }>(`/environments/${target.environmentId}/deployments`)
  assert.deepEqual(deployed.body.items, [])
  const listed = `/workspaces/${source.workspaceId}/prompts/${String(promptId)}/versions`
  assert.equal((await service.operator<{ items: object[] }>(listed)).body.items.length, versions.length)
})

test('an admin exports, only an owner imports, and both are in the audit log', async () => {
  const { service, workspaceId, environmentId } = source
  const token = async (role: string) => {
    const { body } = await service.operator<{ token: string }>(`/workspaces/${workspaceId}/tokens`, {
      body: { name: role, role },
    })
    return { authorization: `Bearer ${body.token}` }
  }
  const [approver, admin] = [await token('approver'), await token('admin')]
  assert.equal((await service.operator(pathOf(source), { headers: approver })).status, 403)
  assert.equal((await service.operator(pathOf(source, '?status=FAILED'), { headers: admin })).status, 200)
  const lines = ['{"type":"export","version":1}']
  const path = `/environments/${environmentId}/import`
  assert.equal((await service.operator(path, { headers: admin, body: { lines } })).status, 403)
  assert.equal((await send(source, lines, true)).status, 200)
  const { body } = await service.operator<{ items: { action: string; detail: object }[] }>(
    `/workspaces/${workspaceId}/audit`,
  )
  const found = body.items.filter(({ action }) => action.startsWith('environment.')).slice(0, 2)
  assert.deepEqual(
    found.map(({ action, detail }) => ({ action, detail })),
    [
      { action: 'environment.import', detail: { resumed: true } },
      { action: 'environment.export', detail: { filters: ['status'], resumed: false } },
    ],
  )
})

test('readers of one workspace leave places to others; one that goes away, or loses its access, releases its export', async () => {
  const { service } = source
  const { environmentId, workspaceId } = await service.newTenant('large')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  // More than the buffers of a connection hold.
  const payload = { text: 'x'.repeat(200_000) }
  for (let sent = 0; sent < 20; sent++) {
    const recorded = await service.record(
      Array.from({ length: 5 }, () => event({ payload })),
      key,
    )
    assert.equal(recorded.body.accepted, 5)
  }
  const path = pathOf({ service, environmentId })
  const open = async (token = service.operatorToken) => {
    const headers = { authorization: `Bearer ${token}` }
    const sent = request(`${service.url}/operator/v1${path}`, { headers }).end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    return answer
  }
  const readers = await Promise.all(Array.from({ length: LIMITS.exportsOfWorkspaceAtOnce }, () => open()))
  assert.deepEqual(refusalOf(await service.operator(`${path}?status=FAILED`)), [503, 'overloaded'])
  assert.equal((await service.operator(`${pathOf(source)}?status=FAILED`)).status, 200)
  for (const reader of readers) reader.destroy()
  const isFree = async () => (await service.operator(`${path}?status=FAILED`)).status === 200
  await eventually(isFree, 'a free place')

  const tokens = `/workspaces/${workspaceId}/tokens`
  const { body: admin } = await service.operator<{ id: string; token: string }>(tokens, {
    body: { name: 'leaves', role: 'admin' },
  })
  const cut = await open(admin.token)
  assert.equal((await service.operator(`${tokens}/${admin.id}/revoke`, { body: {} })).status, 200)
  await assert.rejects(readText(cut), /aborted/)
  await eventually(isFree, 'the place of the revoked token')
})

test('an import that is damaged on the wire is refused, and writes nothing', async () => {
  const { service } = source
  const { environmentId } = await service.newTenant('damaged')
  const path = `${service.url}/operator/v1/environments/${environmentId}/import`
  const text = JSON.stringify({ lines: linesOf(whole).slice(0, 500) })
  const headers = { authorization: `Bearer ${service.operatorToken}`, 'content-type': 'application/json' }
  const packed = gzipSync(text)
  const garbage = Buffer.from(packed)
  garbage.fill(0xff, packed.length >> 1)
  const bodies: [Buffer, string, number, string][] = [
    [garbage, 'gzip', 400, 'invalid_encoding'],
    [packed.subarray(0, packed.length - 20), 'gzip', 400, 'invalid_encoding'],
    [Buffer.from(text), 'gzip', 400, 'invalid_encoding'],
    [Buffer.from(text.slice(0, text.length >> 1)), 'identity', 400, 'invalid_json'],
    [gzipSync(Buffer.alloc(LIMITS.restoreBodyBytes + 1, ' ')), 'gzip', 413, 'body_too_large'],
    [zstdCompressSync(Buffer.alloc(20 * LIMITS.restoreBodyBytes)), 'zstd', 413, 'body_too_large'],
    [Buffer.from(text), 'constructor', 415, 'unsupported_media_type'],
    [
      Buffer.from(JSON.stringify({ lines: Array(LIMITS.restoredLines + 1).fill('{}') })),
      'identity',
      400,
      'invalid_request',
    ],
  ]
  for (const [body, encoding, status, code] of bodies) {
    const sent = { method: 'POST', headers: { ...headers, 'content-encoding': encoding }, body: new Uint8Array(body) }
    const reply = await fetch(path, sent)
    assert.deepEqual([reply.status, ((await reply.json()) as { code: string }).code], [status, code], encoding)
  }
  // The connection ends in the middle of the body.
  const cut = request(path, { method: 'POST', headers: { ...headers, 'content-length': text.length } })
  cut.on('error', () => undefined)
  cut.write(text.slice(0, text.length >> 1))
  await once(cut, 'socket')
  cut.destroy()
  assert.doesNotMatch(await exported({ service, environmentId }), /"type":"(run|event|agent)"/)
})

const REAL_RUNS = fileURLToPath(new URL('../../../../../../shared/data/tau-airline/runs.jsonl', import.meta.url))

test(
  '150 real runs are imported into an empty installation and exported again byte for byte',
  { skip: existsSync(REAL_RUNS) ? false : 'there are no real runs here', timeout: 240_000 },
  async () => {
    const { service } = source
    const real = { service, ...(await service.newTenant('real')) }
    const key = await service.newKey({ scopes: ['events:write'], environmentId: real.environmentId })
    const kinds = new Map([
      ['assistant', 'LLM_CALL'],
      ['tool', 'TOOL_CALL'],
      ['user', 'USER_INPUT'],
    ])
    const base = Date.now() - 3_600_000
    let events: object[] = []
    for (const [index, line] of readFileSync(REAL_RUNS, 'utf8').trim().split('\n').entries()) {
      const { messages, reward } = JSON.parse(line) as { messages: { role: string }[]; reward: number }
      const runId = `conversation ${index}`
      const steps = messages.map((message, at) => {
        const usage = message.role === 'assistant' ? { usage: { promptTokens: at, completionTokens: 7 } } : {}
        return event({
          runId,
          timestamp: base + at,
          eventType: kinds.get(message.role) ?? 'AGENT_STEP',
          payload: { ...message, ...usage },
        })
      })
      const status = reward === 1 ? 'COMPLETED' : 'FAILED'
      steps.push(event({ runId, timestamp: base + steps.length, eventType: 'SESSION_OUTCOME', payload: { status } }))
      events.push(...steps)
    }
    for (; events.length > 0; events = events.slice(100)) {
      const { body } = await service.record(events.slice(0, 100), key)
      assert.equal(body.success, true)
    }
    const text = await exported(real)
    assert.equal(ofType(text, 'run').length, 150)
    const database = await databases.create()
    const empty = await startService({ databaseUrl: database.url })
    try {
      const target = { service: empty, ...(await empty.newTenant('real')) }
      await restore(target, requestsOf(text, LIMITS.restoredLines))
      const again = await exported(target)
      assert.equal(again === text, true, firstDifference(again, text))
    } finally {
      await empty.close()
      await database.drop()
    }
  },
)
