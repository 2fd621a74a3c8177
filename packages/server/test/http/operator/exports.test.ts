/** Exports of environments, and their import: the same on each engine, and from one to the other. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { after, before, test } from 'node:test'
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
  return { environmentId, workspaceId, apiKey }
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
  // Nothing of the refused lines was written.
  assert.equal((await exported(target)) === whole, true)
  await service.close()
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

test('readers of one workspace leave places to others; one that goes away releases its export', async () => {
  const { service } = source
  const { environmentId } = await service.newTenant('large')
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
  const headers = { authorization: `Bearer ${service.operatorToken}` }
  const open = async () => {
    const sent = request(`${service.url}/operator/v1${path}`, { headers }).end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    return answer
  }
  const readers = await Promise.all(Array.from({ length: LIMITS.exportsOfWorkspaceAtOnce }, open))
  assert.deepEqual(refusalOf(await service.operator(`${path}?status=FAILED`)), [503, 'overloaded'])
  assert.equal((await service.operator(`${pathOf(source)}?status=FAILED`)).status, 200)
  for (const reader of readers) reader.destroy()
  await eventually(async () => (await service.operator(`${path}?status=FAILED`)).status === 200, 'a free place')
})

/** The page of a run in the source's environment. */
async function pageOf(runId: string, query = ''): Promise<Answer> {
  const { service, environmentId } = source
  const answer = await service.operator(`/environments/${environmentId}/runs/${encodeURIComponent(runId)}/html${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer
}

/** Everything that the page itself writes; the rest is text. */
const TAGS = new Set(
  '!doctype html head meta title style body main header p h1 h2 dl div dt dd bdi span ul li ol details summary time b small svg rect pre footer'.split(
    ' ',
  ),
)

test('a run is one HTML page without a script, and every text of clients in it is escaped', async () => {
  const { service, apiKey } = source
  const hostile = '</pre></title><script>alert(1)</script><img src=x onerror="alert(2)"> & \u202eexe.txt\u2069 \u0085'
  const deep = `${'['.repeat(199)}${'1,'.repeat(1_000)}2${']'.repeat(199)}`
  const texts = [
    JSON.stringify({ text: hostile, error: hostile, model: hostile, toolName: hostile, message: hostile }),
    `{"deep":${deep}}`,
    `{"large":"${'QUJD'.repeat(65_530)}"}`,
    '{"nul":"\\u0000 \\ud800 \\u003cscript>", "__proto__":{"model":"x"}, "constructor":1, "digits":1.000000000000000001}',
  ]
  const runId = `hostile ${hostile}`
  for (const [index, payload] of texts.entries()) {
    for (const eventType of ['LLM_CALL', 'TOOL_CALL', 'ERROR', 'constructor', '<script>']) {
      const names = { label: hostile, agentName: hostile, sessionId: hostile, agentId: hostile }
      const sent = event({ runId, eventId: `${eventType} ${index}`, ...names, eventType, payload: 0 })
      const { body } = await service.record(
        `[${JSON.stringify(sent).replace('"payload":0', `"payload":${payload}`)}]`,
        apiKey,
      )
      assert.equal(body.accepted, 1, JSON.stringify(body))
    }
  }
  const asked = { clientRequestId: 'html', toolName: hostile, reason: hostile, inputHash: 'cd'.repeat(32), runId }
  const headers = { 'x-api-key': apiKey, 'x-service-client-id': hostile.replaceAll(/[^ -~]/g, '') }
  assert.equal((await service.api('/firewall-approvals', { body: asked, headers })).status, 201)

  const { text, headers: answered } = await pageOf(runId, '?payloads=true')
  const body = text.slice(text.indexOf('</style>'))
  const tags = new Set([...text.matchAll(/<\/?([^\s>/]+)/g)].map(([, name = '']) => name.toLowerCase()))
  assert.deepEqual([...tags.difference(TAGS)], [])
  // No attribute has a text of a client, and nothing is loaded.
  const attributes = new Set(
    [...body.matchAll(/<[a-z0-9]+((?: [a-zA-Z-]+="[^"<>]*")*) ?\/?>/g)].flatMap(([, some = '']) =>
      [...some.matchAll(/ ([a-zA-Z-]+)=/g)].map(([, name]) => name),
    ),
  )
  assert.deepEqual(
    [...attributes].toSorted((one = '', other = '') => (one < other ? -1 : 1)),
    ['aria-hidden', 'class', 'height', 'preserveAspectRatio', 'tabindex', 'viewBox', 'width', 'x'],
  )
  // oxlint-disable-next-line no-control-regex
  assert.doesNotMatch(text, /[\0-\b\v-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
  const policy = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(text)?.[1]?.replaceAll('&#39;', "'")
  assert.match(policy ?? '', /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'$/)
  assert.equal(answered.get('content-security-policy'), `${policy}; sandbox`)
  assert.match(answered.get('content-disposition') ?? '', /^attachment; filename="tacho-run-[0-9a-f-]+\.html"$/)
  const style = /<style>([^<]*)<\/style>/.exec(text)?.[1] ?? ''
  assert.ok(policy?.includes(`'sha256-${createHash('sha256').update(style).digest('base64')}'`))
  // Digits, escapes and large texts are those that were sent.
  for (const part of ['1.000000000000000001', '\\u0000 \\ud800 \\u003cscript&gt;', 'QUJD'.repeat(65_530), deep]) {
    assert.ok(body.includes(part), part.slice(0, 50))
  }
  assert.match(body, /PENDING/)
  assert.doesNotMatch((await pageOf(runId)).text, /QUJD|1\.0000|<pre/)
})

test('the page of a run has outcome, tree, cost and issues; it says what it leaves out', async () => {
  const { service, apiKey, environmentId } = source
  const runId = 'tree'
  const now = Date.now()
  const step = (at: number, change: Record<string, unknown>) => event({ runId, timestamp: now + at, ...change })
  const call = { model: 'unknown', usage: { promptTokens: 3, completionTokens: 4 }, cost: 0.25, latency: 20 }
  const failed = { eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED' } }
  await service.record(
    [
      step(0, { label: 'outer', spanId: 'a' }),
      step(5, {
        eventId: 'caught',
        label: 'inner',
        spanId: 'b',
        parentSpanId: 'a',
        eventType: 'LLM_CALL',
        payload: call,
      }),
      step(9, { label: 'circle', spanId: 'c', parentSpanId: 'c' }),
      step(10, { ...failed, label: 'the end' }),
    ],
    apiKey,
  )
  const record = issueRecord({ runId, eventId: 'caught' })
  await service.api('/issue-records', { body: record, headers: { 'x-api-key': apiKey } })
  await reviewed(service, environmentId)
  const { text } = await pageOf(runId, '?payloads=true')
  for (const part of [
    /chip bad">FAILED</,
    /<h2>Issues<\/h2>/,
    /0\.25/,
    /7 \(3 prompt, 4 completion\)/,
    /class="d1 llm_call"/,
    /20 ms/,
  ]) {
    assert.match(text, part)
  }
  assert.deepEqual(
    [...text.matchAll(/class="label"><bdi>([^<]+)/g)].map(([, label]) => label),
    ['outer', 'inner', 'circle', 'the end'],
  )
  assert.doesNotMatch(text, /class="note"/)

  // Payloads of 8 MiB, and not one byte more.
  const large = { text: 'y'.repeat(LIMITS.payloadBytes - '{"text":""}'.length) }
  const most = LIMITS.runFilePayloadBytes / LIMITS.payloadBytes
  for (let sent = 0; sent < most; sent++) {
    await service.record([event({ runId: 'large page', timestamp: now + sent, payload: large })], apiKey)
  }
  const whole = await pageOf('large page', '?payloads=true')
  assert.doesNotMatch(whole.text, /class="note"/)
  await service.record([event({ runId: 'large page', timestamp: now + most, payload: {} })], apiKey)
  const cut = await pageOf('large page', '?payloads=true')
  assert.match(cut.text, /It has the payloads of the first 32 events: together they have at most 8 MiB\./)
  assert.equal(cut.text.match(/<pre/g)?.length, most)

  const many = LIMITS.runFileEvents / LIMITS.batchEvents
  for (let sent = 0; sent <= many; sent++) {
    const events = Array.from({ length: sent === many ? 1 : LIMITS.batchEvents }, (_, index) =>
      event({ runId: 'long page', timestamp: now - 100_000 + sent * 100 + index }),
    )
    if (sent === many) assert.doesNotMatch((await pageOf('long page')).text, /class="note"/)
    await service.record(events, apiKey)
  }
  const long = await pageOf('long page')
  assert.match(long.text, /This file shows the first 10,000 of 10,001 events\./)
  assert.equal(long.text.match(/<li /g)?.length, LIMITS.runFileEvents)
})

test('a viewer reads the page of a run, of the own environment only', async () => {
  const { service, environmentId } = source
  const other = await service.newTenant('other page')
  const path = (environment: string, run: string) => `/environments/${environment}/runs/${run}/html`
  assert.equal((await service.operator(path(other.environmentId, 'mixed'))).status, 404)
  assert.equal((await service.operator(path(environmentId, 'never'))).status, 404)
  assert.equal((await service.operator(`${path(environmentId, 'mixed')}?payloads=yes`)).status, 400)
})
