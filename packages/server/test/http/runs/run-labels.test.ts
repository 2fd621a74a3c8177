import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IssuePage } from '@tacho/contract/issues/issue.ts'
import { startOnBothEngines } from '../../setup/both-engines.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, type Service } from '../../setup/service.ts'
import { replyOf } from '../web/contract.ts'

const services = startOnBothEngines({}, ({ engine, service }) => ({ engine, service }))

function onBoth(name: string, run: (service: Service) => Promise<void>): void {
  test(name, async (t) => {
    for (const { engine, service } of services) await t.test(engine, () => run(service))
  })
}

const HOUR = 3_600_000
const START = Math.floor(Date.now() / HOUR) * HOUR - 2 * HOUR

/** An environment of its own. */
async function tenant(service: Service) {
  const { environmentId } = await service.newTenant(`labels ${Math.random()}`)
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const path = `/environments/${environmentId}`
  const found = async (query: string) => {
    const { items } = replyOf('listOperatorRuns', await service.operator(`${path}/runs${query}`))
    return items.map(({ runId }) => runId).toSorted()
  }
  return {
    path,
    found,
    async record(...events: object[]) {
      const { body } = await service.record(events, key)
      assert.ok(body.success, JSON.stringify(body))
    },
    async points(query: string) {
      const of = `from=${new Date(START).toISOString()}&to=${new Date(START + HOUR).toISOString()}&step=window`
      const { items } = replyOf('readUsagePoints', await service.operator(`${path}/usage/points?${of}&${query}`))
      return items.map(({ name, runs, failed, usage }) => [name, runs, failed, usage.cost])
    },
  }
}

const labelled = (runId: string, at: number, payload: object, cost: number, status = 'COMPLETED') => [
  event({ runId, timestamp: START + at, eventType: 'USER_INPUT', payload }),
  event({ runId, timestamp: START + at + 1, eventType: 'LLM_CALL', payload: { model: 'm', cost } }),
  event({ runId, timestamp: START + at + 2, eventType: 'SESSION_OUTCOME', payload: { status } }),
]

onBoth('runs have an end user, tags and metadata, and are found and summed up by them', async (service) => {
  const { record, found, points } = await tenant(service)
  await record(
    ...labelled('r1', 0, { userId: 'ann', runTags: ['beta', 'eu'], runMetadata: { task: 'refund', tries: 2 } }, 1),
    ...labelled('r2', 10, { userId: 'ann', runMetadata: { task: 'refund' } }, 0.5, 'FAILED'),
    ...labelled('r3', 20, { userId: 'bob', runTags: ['beta'], runMetadata: { task: 'order' } }, 2),
    ...labelled('r4', 30, { userId: 7, runTags: 'beta', runMetadata: ['task'] }, 4),
  )
  // The run keeps its first user. Of metadata with the same key, the latest value counts.
  await record(event({ runId: 'r3', payload: { userId: 'ann', runMetadata: { task: 'return' } } }))
  assert.deepEqual(await found('?user=ann'), ['r1', 'r2'])
  assert.deepEqual(await found('?user=ann&status=FAILED'), ['r2'])
  assert.deepEqual(await found('?user=7'), ['r4'])
  assert.deepEqual(await found('?tag=beta'), ['r1', 'r3'])
  assert.deepEqual(await found('?metadata=task%3Drefund'), ['r1', 'r2'])
  assert.deepEqual(await found('?metadata=tries'), ['r1'])
  assert.deepEqual(await found('?metadata=task%3Dorder'), [])
  assert.deepEqual(await found('?metadata=tas'), [])
  assert.deepEqual(await points('by=user&sort=cost'), [
    ['7', 1, 0, 4],
    ['bob', 1, 0, 2],
    ['ann', 2, 1, 1.5],
  ])
  assert.deepEqual(await points('by=user&user=ann'), [['ann', 2, 1, 1.5]])
  assert.deepEqual(await points('by=tag&sort=runs'), [
    ['beta', 2, 0, 3],
    ['eu', 1, 0, 1],
  ])
  assert.deepEqual(await points('by=metadata&metadata=task&sort=cost&limit=2'), [
    ['return', 1, 0, 2],
    ['refund', 2, 1, 1.5],
  ])
})

onBoth('a loop in recorded tool calls opens an issue and marks its run', async (service) => {
  const { record, found, path } = await tenant(service)
  const call = (runId: string, index: number, input: object) =>
    event({
      runId,
      timestamp: START + index,
      eventType: 'TOOL_CALL',
      payload: { toolName: 'get_order', input, output: 1 },
    })
  await record(
    ...Array.from({ length: 16 }, (_, index) => call('loops', index, { id: index % 4 === 0 ? 1 : 100 + index })),
  )
  assert.deepEqual(await found('?loops=true'), [])
  await record(call('loops', 16, { id: 1 }), call('loops', 17, { id: 1 }))
  await record(...Array.from({ length: 9 }, (_, index) => call('not', index, { id: index % 4 })))
  const declined = { toolName: 'pay', input: 1, outcome: 'never_ran', reasonCode: 'declined' }
  const answers = [1, 2, 3, 4, 5].map((index) => call('not', 20 + index, {}))
  await record(...answers.map((answer) => ({ ...answer, payload: declined })))
  assert.deepEqual(await found('?loops=true'), ['loops'])
  const issues = async () => (await service.operator<IssuePage>(`${path}/issues`)).body.items
  await eventually(async () => (await issues()).length === 1, 'the issue of the loop')
  const [issue] = await issues()
  assert.equal(issue?.title, 'get_order is called again and again with the same input')
  assert.equal(issue?.occurrences, 1)
})

onBoth(
  'equal calls with members in another order are a loop, and each tool with a long name has its own',
  async (service) => {
    const { record, found, path } = await tenant(service)
    const long = 'x'.repeat(300)
    const inputs = [
      { a: 1, b: { c: 2, d: 3 } },
      { b: { d: 3, c: 2 }, a: 1 },
    ]
    for (const [runId, toolName] of [
      ['turned', 'get_order'],
      ['long', long],
      ['longer', `${long}y`],
    ]) {
      const calls = Array.from({ length: 5 }, (_, index) =>
        event({
          runId,
          timestamp: START + index,
          eventType: 'TOOL_CALL',
          payload: { toolName, input: inputs[index % 2], output: 1 },
        }),
      )
      await record(...calls)
    }
    assert.deepEqual(await found('?loops=true'), ['long', 'longer', 'turned'])
    const titles = async () =>
      (await service.operator<IssuePage>(`${path}/issues`)).body.items.map(({ title }) => title)
    await eventually(async () => (await titles()).length === 3, 'an issue for each tool')
    assert.equal((await titles()).filter((title) => title.startsWith('xxx')).length, 2)
  },
)

onBoth('the latest value of a key counts when labels have no more room', async (service) => {
  const { record, found } = await tenant(service)
  const labelled = (index: number, runMetadata: object) =>
    event({ runId: 'full', timestamp: START + index, payload: { runMetadata } })
  const long = (index: number) => `${index}`.repeat(200)
  await record(...Array.from({ length: 20 }, (_, index) => labelled(index, { [`key${index}`]: long(index % 10) })))
  await record(labelled(30, { key3: `new${long(3).slice(3)}` }), labelled(31, { key4: `${long(4)}${'y'.repeat(40)}` }))
  assert.deepEqual(await found(`?metadata=${encodeURIComponent(`key3=new${long(3).slice(3)}`)}`), ['full'])
  assert.deepEqual(await found(`?metadata=${encodeURIComponent(`key3=${long(3)}`)}`), [])
  assert.deepEqual(await found(`?metadata=${encodeURIComponent(`key4=${long(4)}`)}`), [])
})

onBoth('spans of OpenTelemetry name the end user, tags and metadata', async (service) => {
  const { environmentId } = await service.newTenant(`spans ${Math.random()}`)
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const span = (traceId: string, spanId: string, parentSpanId: string, attributes: Record<string, unknown>) => ({
    traceId,
    spanId,
    parentSpanId,
    name: 'step',
    startTimeUnixNano: `${START}000000`,
    endTimeUnixNano: `${START + 5}000000`,
    attributes: Object.entries(attributes).map(([name, value]) => ({
      key: name,
      value: Array.isArray(value)
        ? { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } }
        : { stringValue: value },
    })),
  })
  const [one, other] = ['1'.repeat(32), '2'.repeat(32)]
  const spans = [
    span(one, 'a'.repeat(16), '', { 'user.id': 'ann', 'tag.tags': ['beta'], metadata: '{"task":"refund"}' }),
    span(one, 'b'.repeat(16), 'a'.repeat(16), { 'tag.tags': ['step'], 'user.id': 'bob' }),
    span(other, 'c'.repeat(16), '', {
      'langfuse.user.id': 'bob',
      'langfuse.trace.tags': '["eu"]',
      'langfuse.trace.metadata.task': 'order',
    }),
  ]
  const sent = await service.api('/otlp/v1/traces', {
    method: 'POST',
    headers: { 'x-api-key': key },
    body: { resourceSpans: [{ resource: { attributes: [] }, scopeSpans: [{ spans }] }] },
  })
  assert.equal(sent.status, 200, JSON.stringify(sent.body))
  const found = async (query: string) => {
    const list = await service.operator(`/environments/${environmentId}/runs${query}`)
    return replyOf('listOperatorRuns', list).items.map(({ runId }) => runId)
  }
  assert.deepEqual(await found('?user=ann'), [one])
  assert.deepEqual(await found('?user=bob'), [other])
  assert.deepEqual([await found('?tag=beta'), await found('?tag=step'), await found('?tag=eu')], [[one], [], [other]])
  assert.deepEqual([await found('?metadata=task%3Drefund'), await found('?metadata=task%3Dorder')], [[one], [other]])
})

onBoth('a loop in spans of OpenTelemetry finds the run and opens an issue', async (service) => {
  const { environmentId } = await service.newTenant(`loops ${Math.random()}`)
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const call = (traceId: string, number: number, input: object) => ({
    traceId,
    spanId: `${traceId.slice(0, 8)}${String(number).padStart(8, '0')}`,
    name: 'execute_tool search',
    startTimeUnixNano: `${START + number * 10}000000`,
    endTimeUnixNano: `${START + number * 10 + 5}000000`,
    attributes: Object.entries({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'search',
      'gen_ai.tool.call.arguments': JSON.stringify(input),
    }).map(([name, stringValue]) => ({ key: name, value: { stringValue } })),
  })
  const [looping, other] = ['3'.repeat(32), '4'.repeat(32)]
  const spans = [1, 2, 3, 4, 5].flatMap((n) => [call(looping, n, { order: 1 }), call(other, n, { order: n })])
  const sent = await service.api('/otlp/v1/traces', {
    method: 'POST',
    headers: { 'x-api-key': key },
    body: { resourceSpans: [{ resource: { attributes: [] }, scopeSpans: [{ spans }] }] },
  })
  assert.equal(sent.status, 200, JSON.stringify(sent.body))
  const list = await service.operator(`/environments/${environmentId}/runs?loops=true`)
  assert.deepEqual(
    replyOf('listOperatorRuns', list).items.map(({ runId, loops }) => [runId, loops]),
    [[looping, ['search']]],
  )
  const issue = await eventually(async () => {
    const { body } = await service.operator<IssuePage>(
      `/environments/${environmentId}/issues?detectionType=LOOP_DETECTED`,
    )
    return body.items[0]
  }, 'the issue of the loop')
  assert.deepEqual([issue.occurrences, issue.affectedRuns], [1, 1])
})

onBoth('tags and metadata leave room for what finds the run otherwise', async (service) => {
  const { record, found } = await tenant(service)
  const runTags = Array.from({ length: 50 }, (_, index) => `${index}${'x'.repeat(110)}`)
  await record(event({ runId: 'full', timestamp: START, payload: { runTags } }))
  const payload = { toolName: 'get_order', input: {} }
  await record(
    ...[1, 2, 3, 4, 5].map((index) =>
      event({ runId: 'full', timestamp: START + index, eventType: 'TOOL_CALL', payload }),
    ),
  )
  assert.deepEqual(await found('?tool=get_order'), ['full'])
  assert.deepEqual(await found('?loops=true'), ['full'])
})
