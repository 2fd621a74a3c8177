/** A run as an HTML page, and runs and events as Parquet. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { issueRecord, reviewed } from '../../setup/issue-service.ts'
import { event, startService, type Answer, type Service } from '../../setup/service.ts'
import { refusalOf } from '../web/contract.ts'

let source: { service: Service; environmentId: string; workspaceId: string; apiKey: string }
before(async () => {
  const service = await startService()
  const tenant = await service.newTenant('acme')
  const apiKey = await service.newKey({
    scopes: ['events:write', 'policies:read'],
    environmentId: tenant.environmentId,
  })
  source = { service, ...tenant, apiKey }
})
after(() => source.service.close())

/** The page of a run in the source's environment. */
async function pageOf(runId: string, query = ''): Promise<Answer> {
  const { service, environmentId } = source
  const answer = await service.operator(`/environments/${environmentId}/runs/${encodeURIComponent(runId)}/html${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer
}

/** The only tags that the page may contain; everything else must be text. */
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
  // No attribute contains a client's text, and the page loads nothing.
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
  // Digits, escapes and large texts are shown as they were sent.
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
  assert.doesNotMatch(text, /class="note"|class="why"/)

  // Payloads are shown up to exactly 8 MiB.
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

test('the page of a failed run says why at its top; its message only with payloads', async () => {
  const { service, apiKey } = source
  const runId = 'why'
  const error = { type: 'TimeoutError', message: 'no answer for ada' }
  const call = { eventType: 'TOOL_CALL', payload: { toolName: 'get_order', error } }
  const end = { eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED', error } }
  const sent = [call, end].map((one, index) =>
    event({ runId, eventId: `${index}`, timestamp: Date.now() + index, ...one }),
  )
  await service.record(sent, apiKey)
  const whyIn = (text: string) => /<p class="why">.*?<bdi>([^<]*)<\/bdi>/s.exec(text)?.[1]
  const whole = (await pageOf(runId, '?payloads=true')).text
  assert.equal(whyIn(whole), 'TimeoutError in get_order: no answer for ada')
  assert.match(whole, /<small><bdi>TimeoutError: no answer for ada</)
  const { text } = await pageOf(runId)
  assert.equal(whyIn(text), 'TimeoutError in get_order')
  assert.doesNotMatch(text, /for ada<\/bdi><\/p>/)
})

test('a viewer reads the page of a run, of the own environment only', async () => {
  const { service, environmentId } = source
  const other = await service.newTenant('other page')
  const path = (environment: string, run: string) => `/environments/${environment}/runs/${run}/html`
  assert.equal((await service.operator(path(other.environmentId, 'tree'))).status, 404)
  assert.equal((await service.operator(path(environmentId, 'never'))).status, 404)
  assert.equal((await service.operator(`${path(environmentId, 'tree')}?payloads=yes`)).status, 400)
})

const DIGITS = '{"toolName":"search","n":1.0,"big":12345678901234567890,"latency":7.5,"error":"no"}'

/** Rows of a Parquet file, read by another library than the one that wrote it. */
async function rowsOf(
  table: string,
  query = '',
  environmentId = source.environmentId,
): Promise<Record<string, unknown>[]> {
  const bytes = await parquetOf(table, query, environmentId)
  const file = new Uint8Array(bytes).buffer
  return parquetReadObjects({ file, compressors: { ZSTD: (data) => zstdDecompressSync(data) } })
}

async function parquetOf(table: string, query = '', environmentId = source.environmentId): Promise<Buffer> {
  const { service } = source
  const address = `${service.url}/operator/v1/environments/${environmentId}/export/parquet?table=${table}${query}`
  const reply = await fetch(address, { headers: { authorization: `Bearer ${service.operatorToken}` } })
  assert.equal(reply.status, 200)
  return Buffer.from(await reply.arrayBuffer())
}

async function recordForAnalysis(runId: string): Promise<{ environmentId: string; now: number }> {
  const { service } = source
  const { environmentId } = await service.newTenant(runId)
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const now = Date.now()
  const sent = event({ runId, eventId: 'tool', timestamp: now, eventType: 'TOOL_CALL', payload: 0, spanId: 's' })
  const call = { model: 'm-1', usage: { promptTokens: 3, completionTokens: 4 }, cost: 0.1, latency: 20 }
  const texts = { label: 'ünï \u202e "', agentName: 'Ägent', sessionId: 'x\ny' }
  await service.record(`[${JSON.stringify(sent).replace('"payload":0', `"payload":${DIGITS}`)}]`, key)
  await service.record(
    [
      event({ runId, eventId: 'call', timestamp: now + 1, eventType: 'LLM_CALL', payload: call, ...texts }),
      event({
        runId,
        eventId: 'odd',
        timestamp: now + 2,
        payload: { __proto__: null, toString: 1 },
        eventType: 'constructor',
      }),
      event({ runId, eventId: 'end', timestamp: now + 9, eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED' } }),
    ],
    key,
  )
  return { environmentId, now }
}

test('events and runs of a filter are Parquet tables with the values that were sent', async () => {
  const { environmentId, now } = await recordForAnalysis('analysis')
  const events = await rowsOf('events', '', environmentId)
  assert.deepEqual(
    events.map(({ eventId }) => eventId),
    ['tool', 'call', 'odd', 'end'],
  )
  const [tool, call] = events
  assert.equal(tool?.['payload'], DIGITS)
  const facts = ({ runId, toolName, model, isError, latency, totalTokens, cost, spanId }: Record<string, unknown>) => [
    runId,
    toolName,
    model,
    isError,
    latency,
    totalTokens,
    cost,
    spanId,
  ]
  assert.deepEqual(facts(tool ?? {}), ['analysis', 'search', null, true, 7.5, null, null, 's'])
  assert.deepEqual(facts(call ?? {}), ['analysis', null, 'm-1', false, 20, 7n, 0.1, null])
  assert.deepEqual([call?.['label'], call?.['agentName'], call?.['sessionId']], ['ünï \u202e "', 'Ägent', 'x\ny'])
  assert.deepEqual(call?.['timestamp'], new Date(now + 1))
  const runs = await rowsOf('runs', '&status=FAILED', environmentId)
  assert.equal(runs.length, 1)
  const { runId, endedAt, tools, models, eventCount, totalTokens, cost, pinnedAt } = runs[0] ?? {}
  assert.deepEqual(
    [runId, endedAt, tools, models, eventCount, totalTokens, cost, pinnedAt],
    ['analysis', new Date(now + 9), ['search'], ['m-1'], 4n, 7n, 0.1, null],
  )
  for (const table of ['events', 'runs']) assert.deepEqual(await rowsOf(table, '&status=CANCELLED', environmentId), [])
  const path_ = `/environments/${environmentId}/export/parquet`
  assert.deepEqual(refusalOf(await source.service.operator(path_)), [400, 'invalid_request'])
  assert.equal((await source.service.operator(`${path_}?table=constructor`)).status, 400)
})

const LABELS = { userId: 'customer-7', runTags: ['beta', 'eu'], runMetadata: { task: 'refund', tries: 2 } }

test('what is not known is null in a Parquet file, and a run has what the list shows', async () => {
  const { service } = source
  const { environmentId } = await service.newTenant('unknown is null')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const call = (runId: string, eventId: string, payload: object) =>
    event({ runId, eventId, eventType: 'LLM_CALL', payload: { model: 'own', ...payload } })
  const error = { type: 'TimeoutError', message: 'too late' }
  await service.record(
    [
      call('r1', 'none', {}),
      call('r1', 'failed', { error }),
      call('r1', 'zero', { usage: { promptTokens: 0, completionTokens: 0 }, cost: 0 }),
      call('r1', 'side', { usage: { promptTokens: 7 }, cost: 0.5 }),
      call('r1', 'lost', { usage: { promptTokens: 7, completionTokens: 'many' } }),
      call('r1', 'total', { usage: { totalTokens: 9 }, cost: 0.25 }),
      event({ runId: 'r1', eventId: 'asked', eventType: 'USER_INPUT', payload: { text: 'Why?' } }),
      event({ runId: 'r1', eventId: 'end', eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED', error } }),
      event({
        runId: 'r1',
        eventId: 'score',
        eventType: 'SCORE',
        label: 'good',
        payload: { name: 'good', value: 0.5 },
      }),
      call('r2', 'priced', { model: 'gpt-4o', usage: { promptTokens: 1_000, completionTokens: 10 } }),
      event({ runId: 'r3', eventId: 'step' }),
      event({ runId: 'r2', eventId: 'labels', payload: LABELS }),
    ],
    key,
  )
  const events = new Map((await rowsOf('events', '', environmentId)).map((row) => [row['eventId'], row]))
  const counts = ['none', 'failed', 'zero', 'side', 'lost', 'total', 'priced', 'step'].map((id) => {
    const { promptTokens, completionTokens, totalTokens, cost } = events.get(id) ?? {}
    return [id, promptTokens, completionTokens, totalTokens, cost]
  })
  assert.deepEqual(counts, [
    ['none', null, null, null, null],
    ['failed', null, null, null, null],
    ['zero', 0n, 0n, 0n, 0],
    ['side', 7n, null, 7n, 0.5],
    ['lost', 7n, null, null, null],
    ['total', null, null, 9n, 0.25],
    ['priced', 1_000n, 10n, 1_010n, null],
    ['step', null, null, null, null],
  ])
  const runs = new Map((await rowsOf('runs', '', environmentId)).map((row) => [row['runId'], row]))
  const [first, second, third] = ['r1', 'r2', 'r3'].map((id) => runs.get(id))
  assert.equal(first?.['cost'], 0.75)
  const labels = [second, third].map((run) => [run?.['userId'], run?.['tags'], run?.['metadata']])
  assert.deepEqual(labels, [
    ['customer-7', ['beta', 'eu'], '{"task":"refund","tries":"2"}'],
    [null, [], null],
  ])
  assert.deepEqual(
    [second?.['cost'], typeof second?.['estimatedCost'], second?.['totalTokens']],
    [null, 'number', 1_010n],
  )
  assert.deepEqual([third?.['cost'], third?.['totalTokens'], third?.['failureErrorClass']], [null, null, null])
  const { title, failureErrorClass, failureMessage, completeness, scores } = first ?? {}
  assert.deepEqual(
    [title, failureErrorClass, failureMessage, completeness],
    ['Why?', 'TimeoutError', 'too late', 'UNKNOWN'],
  )
  assert.deepEqual(
    (JSON.parse(String(scores)) as { name: string; mean: number }[]).map(({ name, mean }) => [name, mean]),
    [['good', 0.5]],
  )
  const listed = await service.operator<{ items: Record<string, unknown>[] }>(`/environments/${environmentId}/runs`)
  assert.equal(listed.body.items.find(({ runId }) => runId === 'r1')?.['title'], title)
  const metadata = parquetMetadata(new Uint8Array(await parquetOf('runs', '', environmentId)).buffer)
  const times = metadata.schema.filter(({ name }) => ['startedAt', 'endedAt', 'receivedAt'].includes(name))
  assert.deepEqual(
    times.map(({ logical_type: type }) => type),
    Array(3).fill({ type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' }),
  )
})

test('a Parquet file of many row groups has every event once', { timeout: 900_000 }, async () => {
  const { service } = source
  const { environmentId } = await service.newTenant('row groups')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  // Enough rows for more than one row group.
  const payload = { text: 'x'.repeat(200_000) }
  for (let sent = 0; sent < 30; sent++) {
    const events = Array.from({ length: 5 }, (_, index) =>
      event({ runId: `r${sent % 7}`, eventId: `${sent} ${index}`, payload }),
    )
    assert.equal((await service.record(events, key)).body.accepted, 5)
  }
  const rows = await rowsOf('events', '', environmentId)
  assert.equal(new Set(rows.map(({ eventId }) => eventId)).size, 150)
  assert.equal(rows.length, 150)
})

/** Other readers decide whether it is Parquet: DuckDB, and pandas with Arrow. */
const PYTHON = process.env['TACHO_TEST_PYTHON'] ?? 'python3'
const withoutReaders =
  spawnSync(PYTHON, ['-c', 'import duckdb, pandas, pyarrow']).status === 0
    ? false
    : 'needs a Python with duckdb, pandas and pyarrow: set TACHO_TEST_PYTHON'
const READ = `
import duckdb, json, pandas, sys
events, runs = sys.argv[1:]
sums = duckdb.sql(f"select eventId, payload->>'$.big', totalTokens, cost, isError, epoch_ms(timestamp) from '{events}' order by timestamp").fetchall()
lists = duckdb.sql(f"select runId, tools, models, status, epoch_ms(endedAt) from '{runs}'").fetchall()
frame = pandas.read_parquet(events)
print(json.dumps([sums, lists, frame.payload[0], str(frame.timestamp.dtype), len(pandas.read_parquet(runs))]))
`

test('DuckDB and pandas read the Parquet files', { skip: withoutReaders }, async () => {
  const { environmentId, now } = await recordForAnalysis('readers')
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-parquet-'))
  try {
    const files: string[] = []
    for (const table of ['events', 'runs']) {
      const file = path.join(folder, `${table}.parquet`)
      writeFileSync(file, await parquetOf(table, '', environmentId))
      files.push(file)
    }
    const { stdout, stderr } = spawnSync(PYTHON, ['-c', READ, ...files], { encoding: 'utf8' })
    assert.deepEqual(JSON.parse(stdout || `"${stderr.slice(-500).replaceAll(/[^ -~]|["\\\\]/g, ' ')}"`), [
      [
        ['tool', '12345678901234567890', null, null, true, now],
        ['call', null, 7, 0.1, false, now + 1],
        ['odd', null, null, null, false, now + 2],
        ['end', null, null, null, false, now + 9],
      ],
      [['readers', ['search'], ['m-1'], 'FAILED', now + 9]],
      DIGITS,
      'datetime64[ms, UTC]',
      1,
    ])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
