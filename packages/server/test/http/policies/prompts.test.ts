import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { configurationCalls, type ConfigurationCalls } from '../../setup/configuration-service.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'

let service: Service
let calls: ConfigurationCalls
before(async () => {
  service = await startService()
  calls = await configurationCalls(service)
})
after(() => service.close())

const NOW = Date.now()
let count = 0
const create = (body: object, path = calls.prompts) =>
  service.operator(path, { body: { name: `p${++count}`, content: 'x', ...body } })
const versionsOf = (promptId: string) => `${calls.prompts}/${promptId}/versions`
const push = (promptId: string, body: object) => service.operator(versionsOf(promptId), { body })

test('a prompt is created with its first version, whose author is the authenticated caller', async () => {
  const content = ' Sei höflich.\r\n\t🙂 '
  const given = { name: 'greeting', content, note: 'first' }
  assert.deepEqual(refusalOf(await create({ ...given, author: 'mallory' })), [400, 'invalid_request'])
  const prompt = replyOf('createPrompt', await create(given))
  assert.deepEqual([prompt.name, prompt.workspaceId, prompt.newest.version], ['greeting', calls.workspaceId, '1'])
  assert.deepEqual([prompt.newest.author, prompt.newest.note], ['first token', 'first'])
  assert.equal(prompt.newest.contentHash, hash('sha256', content))
  assert.equal(prompt.newest.contentBytes, Buffer.byteLength(content))
  const path = `${calls.prompts}/${prompt.promptId}`
  assert.deepEqual(replyOf('readPrompt', await service.operator(path)), prompt)
  const version = replyOf('readPromptVersion', await service.operator(`${path}/versions/1`))
  assert.deepEqual(version, { ...prompt.newest, content })
})

test('versions are added and never changed; equal content adds none', async () => {
  const { promptId } = await calls.newPrompt('one')
  const two = replyOf('createPromptVersion', await push(promptId, { content: 'two', note: 'why' }))
  assert.deepEqual([two.version, two.isNew, two.note], ['2', true, 'why'])
  const again = replyOf('createPromptVersion', await push(promptId, { content: 'two', note: 'other' }))
  assert.deepEqual(again, { ...two, isNew: false })
  const back = replyOf('createPromptVersion', await push(promptId, { content: 'one' }))
  assert.deepEqual([back.version, back.isNew], ['3', true])
  const list = replyOf('listPromptVersions', await service.operator(versionsOf(promptId)))
  assert.deepEqual(
    list.items.map(({ version }) => version),
    ['3', '2', '1'],
  )
  const first = replyOf('readPromptVersion', await service.operator(`${versionsOf(promptId)}/1`))
  assert.equal(first.content, 'one')
})

test('an author cannot overwrite an unseen version', async () => {
  const { promptId } = await calls.newPrompt('one')
  replyOf('createPromptVersion', await push(promptId, { content: 'two', follows: '1' }))
  const late = await push(promptId, { content: 'three', follows: '1' })
  assert.deepEqual(refusalOf(late), [409, 'conflict'])
  assert.equal((late.body as { current: { version: string } }).current.version, '2')
  // A retry equals the newest version, so it is not a conflict.
  const retry = replyOf('createPromptVersion', await push(promptId, { content: 'two', follows: '1' }))
  assert.deepEqual([retry.version, retry.isNew], ['2', false])
  for (const follows of ['0', '01', 'x', 1, '', null]) {
    assert.deepEqual(refusalOf(await push(promptId, { content: 'three', follows })), [400, 'invalid_request'])
  }
})

test('a name is unique in its workspace', async () => {
  replyOf('createPrompt', await create({ name: 'unique' }))
  assert.deepEqual(refusalOf(await create({ name: 'unique' })), [409, 'conflict'])
  replyOf('createPrompt', await create({ name: 'Unique' }))
  const foreign = await service.newTenant('names')
  replyOf('createPrompt', await create({ name: 'unique' }, `/workspaces/${foreign.workspaceId}/prompts`))
})

test('each limit holds at the limit and one past it', async () => {
  const name = '🙂'.repeat(LIMITS.nameChars)
  replyOf('createPrompt', await create({ name }))
  assert.deepEqual(refusalOf(await create({ name: `${name}x` })), [400, 'invalid_request'])
  assert.deepEqual(refusalOf(await create({ name: '' })), [400, 'invalid_request'])
  const content = `${'\u0001'.repeat(LIMITS.promptContentBytes - 2)}é`
  replyOf('createPrompt', await create({ content }))
  assert.deepEqual(refusalOf(await create({ content: `${content}x` })), [400, 'invalid_request'])
  assert.deepEqual(refusalOf(await create({ content: '' })), [400, 'invalid_request'])
  const note = 'n'.repeat(LIMITS.noteChars)
  replyOf('createPrompt', await create({ note }))
  assert.deepEqual(refusalOf(await create({ note: `${note}n` })), [400, 'invalid_request'])
  const body = `{"name":"${'x'.repeat(LIMITS.promptBodyBytes)}"}`
  assert.deepEqual(refusalOf(await service.operator(calls.prompts, { body })), [413, 'body_too_large'])
})

test('texts that cannot be stored are rejected, and searches for them find nothing', async () => {
  for (const wrong of [{ name: 'a\0b' }, { content: 'a\0b' }, { note: 'a\0b' }, { content: '\ud800' }]) {
    const body = JSON.stringify({ name: `p${++count}`, content: 'x', ...wrong })
    assert.deepEqual(refusalOf(await service.operator(calls.prompts, { body })), [400, 'invalid_request'], body)
  }
  assert.deepEqual(replyOf('listPrompts', await service.operator(`${calls.prompts}?name=%00`)).items, [])
})

test('a missing field or wrong type is reported with its place', async () => {
  for (const [body, path] of [
    [{ name: 'x' }, '/content'],
    [{ content: 'x' }, '/name'],
    [{ name: 'x', content: 1 }, '/content'],
    [{ name: 1, content: 'x' }, '/name'],
    [[], ''],
  ] as const) {
    const answer = await service.operator(calls.prompts, { body })
    assert.deepEqual(refusalOf(answer), [400, 'invalid_request'])
    const { errors } = answer.body as { errors: { path: string }[] }
    assert.equal(errors[0]?.path, path, JSON.stringify(body))
  }
})

test('prompts are found by name, and paged', async () => {
  const { name, promptId } = await calls.newPrompt()
  const found = replyOf('listPrompts', await service.operator(`${calls.prompts}?name=${encodeURIComponent(name)}`))
  assert.deepEqual([found.items.map((item) => item.promptId), found.nextCursor], [[promptId], null])
  const walk = async (limit: number) => {
    const ids: string[] = []
    let cursor: string | null = null
    do {
      const query: string = cursor === null ? '' : `&cursor=${cursor}`
      const page = replyOf('listPrompts', await service.operator(`${calls.prompts}?limit=${limit}${query}`))
      ids.push(...page.items.map((item) => item.promptId))
      cursor = page.nextCursor
    } while (cursor !== null)
    return ids
  }
  assert.deepEqual(await walk(2), await walk(200))
  const { nextCursor } = replyOf('listPrompts', await service.operator(`${calls.prompts}?limit=1`))
  for (const wrong of [`?cursor=${nextCursor}x`, `?cursor=${nextCursor}&name=x`]) {
    assert.deepEqual(refusalOf(await service.operator(calls.prompts + wrong)), [400, 'invalid_cursor'])
  }
  const other = `${versionsOf(promptId)}?cursor=${nextCursor}`
  assert.deepEqual(refusalOf(await service.operator(other)), [400, 'invalid_cursor'])
})

test('two versions are compared line by line', async () => {
  const { promptId } = await calls.newPrompt('Be kind.\nAnswer in English.\nBye.\n')
  await calls.pushPrompt(promptId, 'Be kind.\nAnswer in German.\nBye.\n')
  const diff = (query: string) => service.operator(`${calls.prompts}/${promptId}/diff?${query}`)
  assert.deepEqual(replyOf('diffPromptVersions', await diff('from=1&to=2')), {
    from: '1',
    to: '2',
    fields: [
      {
        field: 'content',
        exact: true,
        lines: [
          { change: 'same', text: 'Be kind.' },
          { change: 'removed', text: 'Answer in English.' },
          { change: 'added', text: 'Answer in German.' },
          { change: 'same', text: 'Bye.' },
        ],
      },
    ],
  })
  assert.deepEqual(replyOf('diffPromptVersions', await diff('from=2&to=2')).fields, [])
  assert.deepEqual(refusalOf(await diff('from=1&to=3')), [404, 'not_found'])
  for (const query of ['from=1', 'from=1&to=x', 'from=0&to=1', '']) {
    assert.deepEqual(refusalOf(await diff(query)), [400, 'invalid_request'], query)
  }
})

test('unknown and foreign prompts get the same 404', async () => {
  const { promptId } = await calls.newPrompt()
  const foreign = await service.newTenant('foreign')
  const theirs = `/workspaces/${foreign.workspaceId}/prompts`
  const paths = (prompts: string, id: string) => [
    [`${prompts}/${id}`],
    [`${prompts}/${id}/versions`],
    [`${prompts}/${id}/versions/1`],
    [`${prompts}/${id}/diff?from=1&to=1`],
    [`${prompts}/${id}/versions`, { content: 'y' }],
  ]
  for (const [index, [path, body]] of paths(theirs, promptId).entries()) {
    const one = await service.operator(path as string, { body })
    const [other] = paths(calls.prompts, UNKNOWN_ID)[index] ?? []
    const two = await service.operator(other as string, { body })
    assert.deepEqual([refusalOf(one), refusalOf(two)], Array(2).fill([404, 'not_found']), path as string)
    assert.equal((one.body as { detail: string }).detail, (two.body as { detail: string }).detail)
  }
  assert.deepEqual(refusalOf(await service.operator(`${versionsOf(promptId)}/2`)), [404, 'not_found'])
  assert.deepEqual(refusalOf(await service.operator(`${calls.prompts}/x`)), [400, 'invalid_request'])
  assert.deepEqual(refusalOf(await create({}, `/workspaces/${UNKNOWN_ID}/prompts`)), [404, 'not_found'])
  // Ids are case-insensitive.
  assert.equal(
    replyOf('readPrompt', await service.operator(`${calls.prompts}/${promptId.toUpperCase()}`)).promptId,
    promptId,
  )
})

test('each version of a prompt has the results of its runs in one environment, counted once', async () => {
  const { promptId, name, newest } = await calls.newPrompt('one')
  await calls.pushPrompt(promptId, 'two')
  const two = replyOf('readPromptVersion', await service.operator(`${versionsOf(promptId)}/2`))
  const run = (n: number, versionId: string, status: string) => {
    const runId = `${promptId} ${versionId} ${n}`
    const payload = { promptVersionId: versionId.toUpperCase() }
    const usage = { cost: 0.5, latency: 0.5, usage: { promptTokens: 1, completionTokens: 2 } }
    return [
      event({ eventId: '1', runId, eventType: 'LLM_CALL', payload: { ...payload, ...usage }, timestamp: NOW }),
      event({ eventId: '2', runId, eventType: 'TOOL_CALL', payload: { ...payload, error: 'no' }, timestamp: NOW }),
      event({
        eventId: '3',
        runId,
        eventType: 'POLICY_DECISION',
        payload: { ...payload, action: 'BLOCK' },
        timestamp: NOW,
      }),
      event({
        eventId: '4',
        runId,
        eventType: 'POLICY_DECISION',
        payload: { ...payload, action: 'REQUIRE_APPROVAL' },
        timestamp: NOW,
      }),
      event({ eventId: '5', runId, eventType: 'SESSION_OUTCOME', payload: { status }, timestamp: NOW + n }),
    ]
  }
  // Calls without a cost. The price is 2.50 dollars for a million input tokens, and 10 for output.
  const unsent = ['gpt-4o', 'our-llama'].map((model, n) => {
    const usage = { promptTokens: 1_000, completionTokens: 100 }
    const payload = { model, usage, promptVersionId: newest.versionId }
    const runId = `${promptId} ${newest.versionId} 10`
    return event({ eventId: `unsent ${n}`, runId, eventType: 'LLM_CALL', payload, timestamp: NOW })
  })
  const events = [
    ...run(10, newest.versionId, 'COMPLETED'),
    ...run(20, newest.versionId, 'FAILED'),
    ...unsent,
    event({ eventId: 'x', payload: { promptVersionId: 'not an id' } }),
  ]
  for (let n = 0; n < 2; n++) await service.record(events)
  const path = (environmentId: string) => `/environments/${environmentId}/prompts/${promptId}/results`
  const answer = replyOf('readPromptResults', await service.operator(path(service.environmentId)))
  const none = { runs: 0, completed: 0, failed: 0, cancelled: 0, events: 0, errors: 0, blocked: 0, approvals: 0 }
  const at = new Date(NOW).toISOString()
  const ofRun = `/environments/${service.environmentId}/runs/${encodeURIComponent(`${promptId} ${newest.versionId} 10`)}`
  assert.deepEqual([answer.promptId, answer.name], [promptId, name])
  assert.deepEqual(answer.items, [
    {
      versionId: two.versionId,
      version: '2',
      note: null,
      ...none,
      lengthP50Ms: null,
      lengthP95Ms: null,
      llmLatency: null,
      toolLatency: null,
      firstAt: null,
      lastAt: null,
      usage: { promptTokens: 0, completionTokens: 0, totalTokens: 0, cost: 0 },
      estimatedCost: null,
      priceTable: null,
      unpricedCalls: 0,
      tokensPerRun: { mean: null, runs: 0 },
      costPerRun: { mean: null, runs: 0 },
      scores: [],
    },
    {
      versionId: newest.versionId,
      version: '1',
      note: null,
      runs: 2,
      completed: 1,
      failed: 1,
      cancelled: 0,
      events: 10,
      errors: 2,
      blocked: 2,
      approvals: 2,
      lengthP50Ms: 10,
      lengthP95Ms: 20,
      llmLatency: { calls: 2, p50Ms: 0.5, p95Ms: 0.5, isApproximate: false },
      toolLatency: null,
      firstAt: at,
      lastAt: at,
      usage: { promptTokens: 2_002, completionTokens: 204, totalTokens: 2_206, cost: 1 },
      estimatedCost: 0.0035,
      priceTable: replyOf('readOperatorRun', await service.operator(ofRun)).priceTable,
      unpricedCalls: 1,
      tokensPerRun: { mean: 1_103, runs: 2 },
      // One of the runs called a model without a price.
      costPerRun: { mean: 0.5, runs: 1 },
      scores: [],
    },
  ])
  // A stream without usage, and a run without a model call.
  const unknown = { runId: 'no figures', payload: { model: 'gpt-4o', promptVersionId: newest.versionId } }
  const step = { runId: 'no call', payload: { promptVersionId: newest.versionId } }
  await service.record([event({ ...unknown, eventType: 'LLM_CALL' }), event({ ...step, eventType: 'AGENT_STEP' })])
  const [, later] = replyOf('readPromptResults', await service.operator(path(service.environmentId))).items
  assert.deepEqual(
    [later?.runs, later?.tokensPerRun, later?.costPerRun],
    [4, { mean: 1_103, runs: 2 }, { mean: 0.5, runs: 1 }],
  )
  const staging = replyOf('readPromptResults', await service.operator(path(calls.staging)))
  assert.ok(staging.items.every(({ runs }) => runs === 0))
  const foreign = await service.newTenant('results')
  assert.deepEqual(refusalOf(await service.operator(path(foreign.environmentId))), [404, 'not_found'])
})
