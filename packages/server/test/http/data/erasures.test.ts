/**
 * Erasure over HTTP, generated from the routes tables: data with a marker in every text that a client can send is erased;
 * then no answer of any GET has the marker, and everything that is counted is what it was without the data.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'
import type { Erasure, NewErasure } from '@tacho/contract/data/erasure.ts'
import { SCOPES } from '@tacho/contract/web/route.ts'
import { parquetReadObjects } from 'hyparquet'
import { startOnBothEngines } from '../../setup/both-engines.ts'
import { openEventStream } from '../../setup/event-stream.ts'
import { eventually } from '../../setup/eventually.ts'
import { issueRecord, reviewed } from '../../setup/issue-service.ts'
import { newSpanId, newTraceId, request as otlp, span } from '../../setup/otlp-requests.ts'
import { PUBLIC_ROWS, ROWS, type Row } from '../../setup/route-samples.ts'
import { event, type Answer, type Service } from '../../setup/service.ts'

const HOUR = 3_600_000

const services = startOnBothEngines({ webhookNetworks: '127.0.0.0/8' }, (started) => started)

interface Tenant {
  service: Service
  workspaceId: string
  environmentId: string
  apiKey: string
  promptId: string
  versionId: string
  webhookId: string
  /** Known values of path and query parameters, by name. */
  known: Map<string, Set<string>>
}

const send = async (answer: Promise<Answer>, status = 200): Promise<Record<string, unknown>> => {
  const { status: is, text, body } = await answer
  assert.equal(is, status, text)
  return body as Record<string, unknown>
}

function know({ known }: Tenant, name: string, ...values: unknown[]): void {
  const set = known.get(name) ?? new Set<string>()
  for (const value of values) set.add(String(value))
  known.set(name, set)
}

const publicly = ({ service, apiKey }: Tenant, path: string, body?: unknown, client = 'poller') =>
  service.api(path, { body, headers: { 'x-api-key': apiKey, 'x-service-client-id': client } })

async function newTenant(service: Service, name: string): Promise<Tenant> {
  const { workspaceId, environmentId } = await service.newTenant(name)
  const apiKey = await service.newKey({ scopes: [...SCOPES], environmentId })
  const [workspace, environment] = [`/workspaces/${workspaceId}`, `/environments/${environmentId}`]
  const prompt = await send(service.operator(`${workspace}/prompts`, { body: { name: 'Prompt', content: 'x' } }), 201)
  const promptId = String(prompt['promptId'])
  const version = await send(service.operator(`${workspace}/prompts/${promptId}/versions/1`))
  const url = 'http://127.0.0.1:9/'
  const webhook = await send(service.operator(`${environment}/webhooks`, { body: { url } }), 201)
  await send(service.operator(`${environment}/search/settings`, { body: { enabled: true } }))
  const alert = { name: 'Cost', kind: 'cost', threshold: 0.1, windowMinutes: 1_440 }
  await send(service.operator(`${environment}/alerts`, { body: alert }), 201)
  const tenant: Tenant = {
    service,
    workspaceId,
    environmentId,
    apiKey,
    promptId,
    versionId: String(version['versionId']),
    webhookId: String(webhook['id']),
    known: new Map(),
  }
  know(tenant, 'workspaceId', workspaceId)
  know(tenant, 'environmentId', environmentId)
  know(tenant, 'promptId', promptId)
  know(tenant, 'version', '1')
  know(tenant, 'webhookId', tenant.webhookId)
  return tenant
}

/** Sends everything that a client can send, with the marker in every text. `named` replaces fields that the erasure omits. */
async function recordAll(tenant: Tenant, marker: string, named: Record<string, unknown> = {}): Promise<void> {
  const { service, environmentId, versionId } = tenant
  const environment = `/environments/${environmentId}`
  const text = (name: string) => `${marker} ${name}`
  const runId = text('run')
  const traceId = newTraceId()
  const ids = {
    runId,
    sessionId: text('session'),
    agentId: text('agent'),
    agentName: text('name'),
    clientId: text('client'),
    schemaVersion: text('schema'),
    ...named,
  }
  const sent = (eventType: string, hours: number, payload: object) =>
    event({
      ...ids,
      eventId: text(`${eventType} ${hours}`),
      eventType,
      label: text('label'),
      timestamp: Date.now() - hours * HOUR,
      spanId: text('span'),
      parentSpanId: text('parent'),
      payload: { user: { id: marker }, note: text('note'), [text('key')]: [text('item')], ...payload },
    })
  const model = text('model')
  const usage = { promptTokens: 11, completionTokens: 5, totalTokens: 16 }
  const tool = { toolName: text('tool'), input: { to: text('input') }, error: text('error'), latency: 7 }
  const events = [
    sent('LLM_CALL', 3, { model, latency: 40, usage, cost: 0.5, promptVersionId: versionId, prompt: text('prompt') }),
    sent('LLM_CALL', 2, { model, latency: 50, usage, promptVersionId: versionId, response: text('response') }),
    sent('LLM_CALL', 0, { model, latency: 60, usage, promptVersionId: versionId }),
    sent('TOOL_CALL', 2, { ...tool, promptVersionId: versionId }),
    sent(text('type'), 1, {}),
    sent('POLICY_DECISION', 1, { policyId: text('policy'), action: 'BLOCK', reason: text('reason') }),
    // The number 2 says that the first event of this SDK instance is missing.
    { ...sent('SESSION_OUTCOME', 0, { status: 'FAILED', error: text('failure') }), n: 'abcde2.' },
  ]
  await send(publicly(tenant, '/events/batch', events))
  const attributes = {
    'session.id': String(ids.sessionId),
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': model,
    ...(ids.agentId === null ? {} : { 'gen_ai.agent.id': String(ids.agentId) }),
    'gen_ai.agent.name': String(ids.agentName),
    [text('attribute')]: text('value'),
  }
  const spans = [span({ traceId, spanId: newSpanId(), name: text('span'), attributes })]
  const resource = { 'service.name': text('service'), 'service.instance.id': String(ids.clientId) }
  await send(publicly(tenant, '/otlp/v1/traces', otlp(spans, resource)))
  know(tenant, 'runId', runId, traceId)
  know(tenant, 'eventId', ...events.slice(1, 4).map(({ eventId }) => eventId))

  const { sessionId, clientId } = ids
  // Without an external id, the agent is known by its name.
  const agentId = ids.agentId ?? ids.agentName
  const asked = { runId, sessionId, agentId, policyId: text('policy'), toolName: text('tool'), reason: text('reason') }
  for (const n of [1, 2]) {
    const approval = { ...asked, clientRequestId: text(`request ${n}`), inputHash: `${n}b`.repeat(32) }
    const { id } = await send(publicly(tenant, '/firewall-approvals', approval, String(clientId)), 201)
    know(tenant, 'approvalId', id)
    know(tenant, 'subjectId', id)
  }
  const decided = [...(tenant.known.get('approvalId') ?? [])].at(-1)
  const decision = { decision: 'APPROVED', reason: text('decision') }
  await send(service.operator(`${environment}/approvals/${decided}/decision`, { body: decision }))

  const record = {
    runId,
    sessionId,
    agentId,
    eventId: events[1]?.['eventId'],
    policyId: text('policy'),
    sdkInstanceId: clientId,
    detectionType: text('detection'),
    payload: { toolName: text('tool'), message: text('message') },
    evidence: { [text('evidence')]: text('proof') },
  }
  for (const [n, recordKind] of ['DETECTION', 'RECOVERY'].entries()) {
    const body = issueRecord({ ...record, recordKind, clientRecordId: text(`record ${n}`), promptVersionId: versionId })
    const { recordId } = await send(publicly(tenant, '/issue-records', body), 202)
    know(tenant, 'recordId', recordId)
  }
  await reviewed(service, environmentId)
  const { items } = await send(service.operator(`${environment}/issues`))
  for (const issue of items as { id: string }[]) {
    const { id } = issue
    know(tenant, 'issueId', id)
    if (!JSON.stringify(issue).includes(marker)) continue
    await send(service.operator(`${environment}/issues/${id}/comments`, { body: { text: text('comment') } }), 201)
  }
  await send(service.operator(`${environment}/runs/${encodeURIComponent(runId)}/pin`, { method: 'POST' }))
  const simulation = { condition: 'true', action: 'BLOCK', days: 1 }
  const { id: simulationId } = await send(service.operator(`${environment}/simulations`, { body: simulation }), 202)
  know(tenant, 'simulationId', simulationId)
  await eventually(async () => {
    const { body } = await service.operator<{ status: string }>(`${environment}/simulations/${String(simulationId)}`)
    return !['QUEUED', 'RUNNING'].includes(body.status)
  }, 'the simulation')
  await publicly(tenant, '/runtime-config', undefined, String(clientId))
  await eventually(async () => {
    const { body } = await service.operator<{ items: unknown[] }>(`${environment}/search?q=${marker}`)
    return body.items.length > 0
  }, 'the search to find it')

  know(tenant, 'sessionId', sessionId)
  know(tenant, 'agent', agentId)
  know(tenant, 'q', marker, runId)
  know(tenant, 'tool', text('tool'))
  know(tenant, 'toolName', text('tool'))
  know(tenant, 'model', model)
  know(tenant, 'policyId', text('policy'))
  know(tenant, 'detectionType', text('detection'))
  know(tenant, 'status', 'FAILED', 'COMPLETED', 'PENDING', 'APPROVED', 'DONE')
  know(tenant, 'promptVersionId', versionId)
  const runs = await send(service.operator(`${environment}/runs`))
  for (const { id, agent } of runs['items'] as { id: string; agent?: { id: string } }[]) {
    know(tenant, 'runId', id)
    if (agent) know(tenant, 'agentId', agent.id)
  }
}

/** Operations that are not read: they need a browser at an identity provider, or copy the store. */
const OTHERS = ['startOidc', 'finishOidc', 'signInWithOidc', 'downloadBackup', 'createBackup']
const READS = ROWS.filter(({ name, route }) => route.method === 'GET' && !OTHERS.includes(name))

const STARTED = Date.now()
const day = (ms: number) => new Date(STARTED + ms).toISOString()
const FIXED: Record<string, string[]> = {
  by: ['agent', 'model', 'promptVersion', 'client'],
  step: ['hour', 'window'],
  table: ['events', 'runs'],
}

/** Every address of a GET: all values known for its path, and each known value of each query parameter by itself. */
function addressesOf({ prefix, route }: Row, { known }: Tenant): string[] {
  let paths = [prefix + route.path]
  for (const [place, name = ''] of route.path.matchAll(/\{(\w+)\}/g)) {
    const values = [...(known.get(name) ?? [])].map(encodeURIComponent)
    paths = paths.flatMap((path) => values.map((value) => path.replace(place, value)))
  }
  const query = route.query as { required?: string[]; properties?: Record<string, { format?: string }> } | undefined
  const properties = query?.properties ?? {}
  let needed = [new URLSearchParams()]
  for (const name of query?.required ?? []) {
    const isDay = properties[name]?.format === 'date-time'
    const ids = name === 'ids' ? known.get('issueId') : known.get(name)
    const values = isDay ? [day(name === 'from' ? -20 * HOUR : HOUR)] : (FIXED[name] ?? [...(ids ?? ['1'])])
    needed = needed.flatMap((one) => values.map((value) => new URLSearchParams([...one, [name, value]])))
  }
  // A Parquet file starts a thread. It has the filters of the other export.
  const isPlain = route.path.endsWith('/parquet')
  const optional = Object.keys(properties).filter((name) => !isPlain && !query?.required?.includes(name))
  const queries = needed.flatMap((one) => [
    one,
    ...optional.flatMap((name) =>
      [...(known.get(name) ?? [])].map((value) => new URLSearchParams([...one, [name, value]])),
    ),
  ])
  if (optional.includes('limit')) queries.push(...needed.map((one) => new URLSearchParams([...one, ['limit', '1']])))
  return paths.flatMap((path) => queries.map((one) => (String(one) === '' ? path : `${path}?${String(one)}`)))
}

/** Lines of an export that may have the marker: the requested filter, and names of models, which an erasure keeps. */
const ALLOWED = /^\{"type":"(export|model)".*$/gm

interface Seen {
  row: string
  address: string
  status: number
  text: string
  etag: string | null
}

async function look(tenant: Tenant, row: Row, address: string, etag?: string): Promise<Seen> {
  const { service, apiKey } = tenant
  const isPublic = PUBLIC_ROWS.includes(row)
  const headers: Record<string, string> = isPublic
    ? { 'x-api-key': apiKey, 'x-service-client-id': 'poller' }
    : { authorization: `Bearer ${service.operatorToken}` }
  if (etag !== undefined) headers['if-none-match'] = etag
  if (row.route.path.endsWith('/stream')) {
    const stream = await openEventStream(service.url + address, headers)
    const first = await stream.next()
    stream.close()
    return { row: row.name, address, status: stream.status, text: JSON.stringify(first), etag: null }
  }
  if (row.route.path.endsWith('/parquet')) {
    const reply = await fetch(service.url + address, { headers })
    const text = JSON.stringify(await rowsOfParquet(await reply.arrayBuffer()))
    return { row: row.name, address, status: reply.status, text, etag: null }
  }
  const { status, headers: received, text } = await service.call(address, { headers })
  return { row: row.name, address, status, text, etag: received.get('etag') }
}

function rowsOfParquet(file: ArrayBuffer): Promise<Record<string, unknown>[]> {
  const compressors = { ZSTD: (data: Uint8Array) => zstdDecompressSync(data) }
  return parquetReadObjects({ file, compressors }).then((rows) =>
    rows.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? String(value) : value]),
      ),
    ),
  )
}

/** Sends every GET. `again`: also repeats earlier requests with their ETags, and follows their cursors. */
async function lookEverywhere(tenant: Tenant, again: readonly Seen[] = []): Promise<Seen[]> {
  const asked = new Map<string, { row: Row; address: string; etag?: string }>()
  for (const row of READS) for (const address of addressesOf(row, tenant)) asked.set(address, { row, address })
  for (const { row: name, address, text, etag } of again) {
    const row = READS.find((one) => one.name === name && address.startsWith(one.prefix))
    if (row === undefined) continue
    // `after` is the mark from which an export continues.
    const [, kind, cursor] = /"(nextCursor|after)":("(?:[^"\\]|\\.)+")/.exec(text) ?? []
    if (cursor !== undefined) {
      const name = kind === 'after' ? 'after' : 'cursor'
      const further = `${name}=${encodeURIComponent(JSON.parse(cursor) as string)}`
      const next = `${address}${address.includes('?') ? '&' : '?'}${further}`
      asked.set(next, { row, address: next })
    }
    asked.set(address, { row, address })
    if (etag !== null) asked.set(`${address} ${etag}`, { row, address, etag })
  }
  const seen: Seen[] = []
  const work = async (waiting: Iterable<{ row: Row; address: string; etag?: string }>) => {
    for (const { row, address, etag } of waiting) seen.push(await look(tenant, row, address, etag))
  }
  // A workspace can run two exports at the same time.
  const { exports = [], others = [] } = Object.groupBy(asked.values(), ({ row }) =>
    row.route.path.includes('export') ? 'exports' : 'others',
  )
  const rest = others.values()
  await Promise.all([work(exports), ...Array.from({ length: 5 }, () => work(rest))])
  return seen
}

/** All counts and sums, without the times of the requests. */
async function sums({ service, environmentId, promptId }: Tenant): Promise<string[]> {
  const environment = `/environments/${environmentId}`
  const window = `from=${encodeURIComponent(day(-20 * HOUR))}&to=${encodeURIComponent(day(HOUR))}`
  const paths = [
    `/usage?${window}`,
    ...['agent', 'model', 'promptVersion'].map((by) => `/usage/points?${window}&step=window&by=${by}`),
    ...['agent', 'client'].map((by) => `/completeness?${window}&by=${by}`),
    `/unpriced-models?${window}`,
    `/prompts/${promptId}/results`,
  ]
  const answers = await Promise.all(paths.map((path) => service.operator(environment + path)))
  return answers.map(({ status, text }) => {
    assert.equal(status, 200, text)
    return text.replaceAll(/"(from|to)":"[^"]*"/g, '')
  })
}

/** The routes whose answers show what a client sent. */
const SHOWING =
  'listRuns readRun listRunEvents readApproval listOperatorRuns readOperatorRun listEventRows listRunProblems searchRun readEvent traceEvent readUsage readUsagePoints readCompleteness listApprovals listApprovalGroups streamApprovals readApprovalAftermath listRunApprovals listIssues readIssue listOccurrences listRecoveries listAffectedRuns listAffectedAgents listIssueActivity listIssueRecords readIssueRecord searchEvents readSimulation listUnpricedModels exportEnvironment exportRun exportParquet'.split(
    ' ',
  )

/** Kinds that run on PostgreSQL too. The conformance suite of the stores covers every kind on both engines. */
const ON_POSTGRES = ['a session', 'an agent']
const KINDS: [string, (marker: string) => NewErasure, (marker: string) => Record<string, unknown>][] = [
  ['a run', (marker) => ({ kind: 'run', id: `${marker} run` }), () => ({})],
  ['a session', (marker) => ({ kind: 'session', id: `${marker} session` }), () => ({})],
  ['an agent', (marker) => ({ kind: 'agent', id: `${marker} agent` }), () => ({})],
  ['an agent by name', (marker) => ({ kind: 'agent', id: `${marker} name` }), () => ({ agentId: null })],
  ['a client', (marker) => ({ kind: 'client', id: `${marker} client` }), () => ({})],
  ['a user in a payload', (marker) => ({ kind: 'user', id: marker, field: ['user', 'id'] }), () => ({})],
]

/** The entry of a client that loads its configuration names no run, so only the erasure of the client removes it. */
const mayShow = (row: string, erased: string) => row === 'listConfigurationClients' && erased !== 'a client'

for (const [what, subjectOf, named] of KINDS) {
  test(`after the erasure of ${what}, no answer has anything of it`, { timeout: 900_000 }, async () => {
    for (const { engine, service } of services) {
      if (engine === 'postgres' && !ON_POSTGRES.includes(what)) continue
      const tenant = await newTenant(service, `${engine} ${what}`)
      const own = new Map(tenant.known)
      await recordAll(tenant, 'kept')
      tenant.known = own
      const before = await sums(tenant)
      const marker = `zq${randomBytes(5).toString('hex')}`
      await recordAll(tenant, marker, named(marker))
      assert.notDeepEqual(await sums(tenant), before)
      const shown = await lookEverywhere(tenant)
      const missing = SHOWING.filter((name) => !shown.some(({ row, text }) => row === name && text.includes(marker)))
      assert.deepEqual(missing, [], `${engine}: these show nothing before the erasure`)

      const environment = `/environments/${tenant.environmentId}`
      const view = { name: 'Its runs', query: { q: subjectOf(marker).id } }
      const headers = { 'idempotency-key': `view of ${marker}` }
      const saved = await send(service.operator(`${environment}/run-views`, { body: view, headers }), 201)
      await send(service.operator(`${environment}/run-views/${String(saved['id'])}/change`, { body: view }))
      know(tenant, 'runViewId', saved['id'])

      const erasures = `${environment}/erasures`
      const erase = async (body: NewErasure) => {
        const key = { 'idempotency-key': randomBytes(8).toString('hex') }
        const { text } = await service.operator<Erasure>(erasures, { body, headers: key })
        return JSON.parse(text) as Erasure
      }
      const first = await erase(subjectOf(marker))
      assert.notEqual(first.effectiveAt, null, JSON.stringify(first))
      // Erase the runs of traces separately: their ids have no marker.
      const rest: Erasure[] = []
      for (const runId of tenant.known.get('runId') ?? []) {
        if (
          /^[0-9a-f]{32}$/.test(runId) &&
          shown.some(({ address, text }) => address.endsWith(`/runs/${runId}`) && text.includes(marker))
        )
          rest.push(await erase({ kind: 'run', id: runId }))
      }
      const retry = await service.operator(`${environment}/run-views`, { body: { ...view, query: {} }, headers })
      assert.equal(retry.status, 201, 'The kept reply is gone')
      for (const erasure of [first, ...rest]) {
        const check = async () => {
          const seen = await lookEverywhere(tenant, shown)
          const leaks = seen.filter(
            ({ row, text }) => !mayShow(row, what) && text.replaceAll(ALLOWED, '').includes(marker),
          )
          const told = leaks.map(({ row, status, address, text }) => {
            const at = text.indexOf(marker)
            return `${row} ${status} ${address.slice(0, 160)}: …${text.slice(Math.max(0, at - 90), at + 60)}…`
          })
          assert.deepEqual(told, [], engine)
          assert.deepEqual(await sums(tenant), before, engine)
        }
        if (erasure === first) await check()
        await eventually(async () => {
          const { body } = await service.operator<Erasure>(`${erasures}/${erasure.id}`)
          return body.status === 'DONE'
        }, 'the physical removal')
        if (erasure === (rest.at(-1) ?? first)) await check()
      }
    }
  })
}
