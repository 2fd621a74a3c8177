import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { IssueRecordDetail, IssueRecordPage } from '@tacho/contract/issues/operator-issue-record.ts'
import type { Issue, IssuePage } from '@tacho/contract/issues/issue.ts'
import { findFailures } from '../../../src/jobs/issues/find-failures.ts'
import type { StoredEvent } from '../../../src/storage/record/events.ts'
import type { RunInReview } from '../../../src/storage/issues/issues.ts'
import { startOnBothEngines } from '../../setup/both-engines.ts'
import { eventually } from '../../setup/eventually.ts'
import { issueRecord, reviewed, submit } from '../../setup/issue-service.ts'
import { startService, type Service } from '../../setup/service.ts'
import { workDone } from '../../setup/work-done.ts'

const services = startOnBothEngines({}, ({ engine, service }) => ({ engine, service }))

/** A new environment, so that a test sees only its own issues. */
async function tenant(service: Service) {
  const { environmentId } = await service.newTenant(`tenant of ${randomUUID()}`)
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const path = `/environments/${environmentId}`
  const issues = async () => (await service.operator<IssuePage>(`${path}/issues`)).body.items
  return {
    environmentId,
    key,
    issues,
    async record(...events: object[]) {
      const { body } = await service.record(events, key)
      assert.ok(body.success, JSON.stringify(body))
    },
    /** Waits until the issues have this many occurrences together. */
    async counted(occurrences: number): Promise<Issue[]> {
      const sum = async () => (await issues()).reduce((all, issue) => all + issue.occurrences, 0)
      await eventually(async () => assert.equal(await sum(), occurrences) ?? true, `${occurrences} occurrences`)
      const found = await issues()
      return Promise.all(found.map(async ({ id }) => (await service.operator<Issue>(`${path}/issues/${id}`)).body))
    },
    /** Waits until the job has handled all queued failures. */
    settled: () => workDone(service, 'find_failures'),
    records: async () => (await service.operator<IssueRecordPage>(`${path}/issue-records`)).body.items,
    detail: async (id: string) => (await service.operator<IssueRecordDetail>(`${path}/issue-records/${id}`)).body,
    act: (issue: string, verb: string) =>
      service.operator<Issue>(`${path}/issues/${issue}/${verb}`, { method: 'POST' }),
  }
}

let clock = Date.now() - 60_000

function event(runId: string, eventType: string, payload: object, change: object = {}) {
  return {
    eventId: randomUUID(),
    clientId: 'shop-1',
    runId,
    agentId: 'shop',
    agentName: 'Shop',
    eventType,
    label: eventType,
    timestamp: (clock += 10),
    payload,
    ...change,
  }
}

const stack = (line: number) => `TimeoutError: no answer
    at getOrder (file:///app/tools/orders.ts:${line}:11)
    at async main (file:///app/main.ts:4:1)`

/** A run that fails because its tool does, as the TypeScript SDK records it. */
function failedRun(runId: string, ms: number, release = '1.4.0') {
  const message = `no answer after ${ms} ms`
  return [
    event(runId, 'USER_INPUT', { text: 'where is my order?' }),
    event(runId, 'TOOL_CALL', { toolName: 'get_order', error: `TimeoutError: ${message}`, latency: ms, release }),
    event(runId, 'SESSION_OUTCOME', {
      status: 'FAILED',
      error: `TimeoutError: ${message}`,
      exception: { type: 'TimeoutError', message, stack: stack(ms) },
    }),
  ]
}

function onBoth(name: string, run: (service: Service) => Promise<void>) {
  test(name, async (t) => {
    for (const { engine, service } of services) await t.test(engine, () => run(service))
  })
}

onBoth(
  'a call that never ran opens an issue with its reason; one that was cancelled, declined or lost opens none',
  async (service) => {
    const { record, counted, issues, settled } = await tenant(service)
    const call = (runId: string, payload: object) =>
      event(runId, 'TOOL_CALL', { toolName: 'refund', toolCallId: 'a', ...payload })
    await record(
      call('quiet', { outcome: 'cancelled', error: { message: 'aborted', type: 'AbortError' } }),
      call('quiet', { outcome: 'never_ran', reasonCode: 'declined', error: { message: 'The user declined.' } }),
      call('quiet', { outcome: 'did_not_report', error: { message: 'The session ended.' } }),
      event('quiet', 'SESSION_OUTCOME', { status: 'COMPLETED' }),
    )
    await settled()
    assert.deepEqual(await issues(), [])
    const unfit = { outcome: 'never_ran', reasonCode: 'unfit', error: { message: 'order must be a whole number' } }
    await record(
      call('circles', unfit),
      call('circles', unfit),
      event('circles', 'SESSION_OUTCOME', { status: 'COMPLETED' }),
    )
    const [issue, ...more] = await counted(2)
    assert.equal(more.length, 0)
    assert.equal(issue?.title, 'unfit in refund: order must be a whole number')
    assert.deepEqual(issue?.groups[0]?.facts, {
      detectionType: 'tool_failed',
      errorType: 'unfit',
      message: 'order must be a whole number',
      toolName: 'refund',
    })
  },
)

onBoth('eight failed runs are one issue with eight occurrences; resolved, it comes back', async (service) => {
  const { record, counted, act, environmentId } = await tenant(service)
  for (let run = 0; run < 8; run++) await record(...failedRun(`run-${run}`, 3_000 + run))
  const [issue, ...more] = await counted(8)
  assert.ok(issue)
  assert.equal(more.length, 0)
  assert.equal(issue.title, 'TimeoutError in get_order: no answer after …')
  assert.equal(issue.affectedRuns, 8)
  assert.equal(issue.affectedAgents, 1)
  assert.equal(Date.parse(issue.lastSeenAt) - Date.parse(issue.firstSeenAt), 7 * 30)
  assert.deepEqual(issue.groups[0]?.facts, {
    detectionType: 'tool_failed',
    errorType: 'TimeoutError',
    message: 'no answer after …',
    toolName: 'get_order',
  })
  assert.equal(issue.firstRelease, '1.4.0')
  assert.equal(issue.lastRelease, '1.4.0')

  assert.equal((await act(issue.id, 'resolve')).body.state, 'RESOLVED')
  await record(...failedRun('run-again', 2_000, '1.5.0'))
  const [again] = await counted(9)
  assert.equal(again?.state, 'OPEN')
  assert.equal(again.regressions, 1)
  assert.equal(again.firstRelease, '1.4.0')
  assert.equal(again.lastRelease, '1.5.0')
  assert.equal(again.id, issue.id)
  assert.ok(environmentId)
})

onBoth(
  'a command that ended with another code counts in no issue; a tool that failed otherwise does',
  async (service) => {
    const { record, counted, settled, issues } = await tenant(service)
    const call = (more: object) =>
      event('commands', 'TOOL_CALL', { toolName: 'Bash', error: 'Exit code 3: tests', ...more })
    await record(call({ exitCode: 3 }), call({ exitCode: -1 }))
    await settled()
    assert.deepEqual(await issues(), [])
    await record(call({ exitCode: 0 }), call({ exitCode: '3' }))
    const [issue] = await counted(2)
    assert.match(issue?.title ?? '', /Bash/)
  },
)

onBoth(
  'messages that no rule knows how to compare open 50 issues of a tool, and one for the others',
  async (service) => {
    const { record, counted } = await tenant(service)
    const letters = 'a b c d e f g h'.split(' ')
    const names = letters.flatMap((one) => letters.map((other) => `${one}${other}`))
    const error = (name: string) => ({ type: 'LookupError', message: `no ${name}` })
    await record(...names.map((name) => event('a', 'TOOL_CALL', { toolName: 'find', error: error(name) })))
    const issues = await counted(names.length)
    assert.equal(issues.length, 51)
    const all = issues.filter(({ title }) => title === 'LookupError in find: many different messages')
    assert.deepEqual(
      all.map(({ occurrences }) => occurrences),
      [names.length - 50],
    )
    assert.deepEqual(all[0]?.groups[0]?.facts, {
      detectionType: 'tool_failed',
      errorType: 'LookupError',
      message: '…',
      toolName: 'find',
    })
  },
)

onBoth('runs, tools, models and steps that fail are issues; what goes well is not', async (service) => {
  const { record, counted } = await tenant(service)
  await record(
    event('a', 'LLM_CALL', { model: 'gpt-5', error: { type: 'RateLimitError', message: 'Limit 30000, used 29000' } }),
    event('a', 'LLM_CALL', { model: 'gpt-5', output: 'fine' }),
    event('a', 'TOOL_CALL', { toolName: 'pay', error: null, output: 'the text "error" and "exception"' }),
    event('a', 'SESSION_OUTCOME', { status: 'COMPLETED' }),
    event('b', 'SESSION_OUTCOME', {
      status: 'FAILED',
      exception: { type: 'TypeError', message: "x of 'y'", stack: 'TypeError: x\n    at sum (/app/lib/sum.js:1:1)' },
    }),
    event('c', 'SESSION_OUTCOME', { status: 'FAILED' }),
    event('d', 'SESSION_OUTCOME', { status: 'CANCELLED', error: 'AbortError: stopped' }),
    event('e', 'ERROR', { message: 'the budget is spent', code: 'BUDGET' }),
    event('f', 'TOOL_CALL', { toolName: 'read_file', error: 'MCP error -32001: Request timed out' }),
  )
  const issues = await counted(5)
  assert.deepEqual(issues.map(({ title, detectionType }) => `${detectionType}: ${title}`).toSorted(), [
    'error_recorded: Error: the budget is spent',
    'model_failed: RateLimitError from gpt-5: Limit …, used …',
    'run_failed: Shop failed without an error',
    'run_failed: TypeError in sum (lib/sum.js): x of …',
    'tool_failed: read_file failed: MCP error -32001: Request timed out',
  ])
})

onBoth('an error that passes through causes, steps and the run counts once', async (service) => {
  const { record, counted, settled } = await tenant(service)
  const exception = { type: 'TimeoutError', message: 'no answer after 5 s' }
  await record(
    event('a', 'AGENT_STEP', { error: exception }, { spanId: 'root' }),
    event('a', 'AGENT_STEP', { error: exception }, { spanId: 'step', parentSpanId: 'root' }),
    event('a', 'TOOL_CALL', { toolName: 'get_order', error: exception }, { spanId: 'tool', parentSpanId: 'step' }),
    event('a', 'ERROR', { message: 'Error: the step failed: no answer after 5 s' }),
    event('a', 'SESSION_OUTCOME', {
      status: 'FAILED',
      exception: { type: 'StepError', message: 'step 4 failed', causes: [exception] },
    }),
  )
  await settled()
  assert.equal((await counted(1))[0]?.title, 'TimeoutError in get_order: no answer after …')
  // The outcome of the run may arrive in a later request.
  await record(event('b', 'TOOL_CALL', { toolName: 'get_order', error: exception }))
  await counted(2)
  await record(event('b', 'SESSION_OUTCOME', { status: 'FAILED', exception }))
  await settled()
  assert.equal((await counted(2)).length, 1)
})

onBoth('what a client reported counts once, before and after the service saw it', async (service) => {
  const { record, counted, settled, records, detail, environmentId, key } = await tenant(service)
  const report = (eventId: string, runId: string) => {
    const facts = { toolName: 'get_order', reasonCode: 'TimeoutError' }
    return submit(service, issueRecord({ detectionType: 'TOOL_FAILED', runId, eventId, payload: facts }), key)
  }
  const [, first, firstEnd] = failedRun('first', 1_000)
  assert.ok(first && firstEnd)
  assert.equal((await report(first.eventId, 'first')).status, 202)
  await record(first, firstEnd)
  await settled()
  const [reported, ...others] = await counted(1)
  assert.equal(others.length, 0)
  // The client's report names the class and the tool. The message comes from the reported event.
  assert.equal(reported?.title, 'TimeoutError in get_order: no answer after …')
  assert.equal(reported.groups[0]?.facts.reasonCode, 'timeouterror')

  const [, second, secondEnd] = failedRun('second', 1_000)
  assert.ok(second && secondEnd)
  await record(second, secondEnd)
  await counted(2)
  const receipt = (await report(second.eventId, 'second')).body
  await reviewed(service, environmentId)
  assert.equal((await counted(2)).length, 2)
  const late = await detail(receipt.recordId)
  const counting = (await records()).find(({ origin }) => origin === 'SERVICE')
  assert.equal(late.status, 'DECIDED')
  assert.equal(late.fingerprint, null)
  assert.equal(late.sameAs, counting?.id)
  assert.equal(late.issueId, counting?.issueId)
  assert.equal(counting?.eventId, second.eventId)
})

onBoth(
  'only a failed tool gets its message from the event, and an erasure of its run takes it again',
  async (service) => {
    const { record, settled, issues, environmentId, key } = await tenant(service)
    const report = async (runId: string, detectionType: string, reasonCode: string) => {
      const failed = failedRun(runId, 1_000)
      const facts = { toolName: 'get_order', reasonCode }
      const eventId = failed[1]?.eventId ?? ''
      const body = issueRecord({ detectionType, runId, eventId, payload: facts })
      assert.equal((await submit(service, body, key)).status, 202)
      await reviewed(service, environmentId)
      await record(...failed.slice(1))
      await settled()
    }
    const titles = async () => (await issues()).map(({ title }) => title).toSorted()
    await report('one', 'TOOL_FAILED', 'ETIMEDOUT')
    await report('two', 'MY_OWN', 'x')
    const named = 'TimeoutError in get_order: no answer after …'
    assert.deepEqual(await titles(), ['My own in get_order: x', named])
    await report('three', 'TOOL_FAILED', 'ETIMEDOUT')
    assert.deepEqual(await titles(), ['My own in get_order: x', named])
    const erasure = { body: { kind: 'run', id: 'one' } }
    assert.equal((await service.operator(`/environments/${environmentId}/erasures`, erasure)).status, 201)
    await eventually(async () => !(await titles()).includes(named), 'the message to be gone')
    assert.deepEqual(await titles(), ['My own in get_order: x', 'get_order failed: ETIMEDOUT'])
  },
)

onBoth('a call that a policy blocked, and a retried batch, add nothing', async (service) => {
  const { record, counted, settled } = await tenant(service)
  const events = failedRun('a', 1_000)
  await record(...events)
  await record(...events)
  await record(
    event('b', 'SESSION_OUTCOME', {
      status: 'FAILED',
      exception: { type: 'ToolBlockedError', message: 'refund_payment was blocked' },
    }),
  )
  await settled()
  assert.equal((await counted(1)).length, 1)
})

onBoth('titles and records hold no more than what was recorded', async (service) => {
  const { record, counted, records, detail } = await tenant(service)
  await record(
    event('a', 'TOOL_CALL', { toolName: 'get_order', error: 'TimeoutError' }),
    event('b', 'TOOL_CALL', { toolName: 'get_order', error: '[left out]' }),
    event('c', 'TOOL_CALL', { toolName: 'get_order', error: "Error: no order of 'Ada Lovelace' with 4711" }),
  )
  const titles = (await counted(3)).map(({ title }) => title).toSorted()
  assert.deepEqual(titles, [
    'Error in get_order: no order of … with …',
    'TimeoutError in get_order',
    'get_order failed',
  ])
  for (const { id } of await records()) assert.doesNotMatch(JSON.stringify((await detail(id)).payload), /Ada|4711/)
})

test('a run that the stalled rule closed is an issue, unless its end arrives first', async (t) => {
  let now = Date.now()
  const service = await startService({}, () => now)
  t.after(() => service.close())
  const path = `/environments/${service.environmentId}`
  const rule = { idleMinutes: 15, closeAs: 'FAILED' }
  assert.equal((await service.operator(`${path}/stalled-rule/change`, { body: rule })).status, 200)
  const start = (runId: string) =>
    event(runId, 'USER_INPUT', { text: 'x', release: '1.4.0' }, { agentName: 'Crawler', timestamp: now })
  await service.record([start('a'), start('b'), start('c')])
  await service.record([
    event('c', 'SESSION_OUTCOME', { status: 'COMPLETED' }, { agentName: 'Crawler', timestamp: now }),
  ])
  now += 3_600_000
  const issues = async () => {
    // The stalled rule runs once a minute.
    now += 30_000
    return (await service.operator<IssuePage>(`${path}/issues`)).body.items
  }
  await eventually(async () => (await issues())[0]?.occurrences === 2, 'two silent runs')
  const [issue, ...more] = await issues()
  assert.equal(more.length, 0)
  assert.equal(issue?.title, 'Crawler went silent: no event and no end')
  assert.equal(issue.detectionType, 'run_stalled')
  assert.equal((await service.operator<Issue>(`${path}/issues/${issue.id}`)).body.lastRelease, '1.4.0')
  assert.equal(issue.affectedRuns, 2)
  const { items } = (await service.operator<IssueRecordPage>(`${path}/issues/${issue.id}/occurrences`)).body
  assert.deepEqual(
    items
      .map(({ origin, eventId, sdkInstanceId, runId }) => `${origin} ${eventId} ${sdkInstanceId} ${runId}`)
      .toSorted(),
    ['SERVICE null shop-1 a', 'SERVICE null shop-1 b'],
  )
})

test('the events of a run are read in turns of the event loop, and their failures are stored a few at once', async () => {
  const payload = JSON.stringify({ error: { type: 'Error', message: 'no answer' } })
  const events = Array.from({ length: 50 }, (_, seq) => {
    return { seq, eventId: `${seq}`, eventType: 'TOOL_CALL', label: 'a tool', agentName: 'a', time: seq, payload }
  }) as unknown as StoredEvent[]
  const stored: number[] = []
  const storage = {
    readFailures: async () => ({ run: { runId: 'run', traits: '' }, events }) as unknown as RunInReview,
    async recordFailures(_environment: string, _run: string, failures: unknown[]) {
      stored.push(failures.length)
      return failures.length
    },
    nameReported: async () => undefined,
    recordLoops: async () => undefined,
    tellOfRun: async () => true,
  }
  const pages = { urlOf: async () => null }
  let turns = 0
  const count = () => (counting = setImmediate(() => (turns++, count())))
  let counting: NodeJS.Immediate | undefined
  count()
  const run = randomUUID()
  const item = { environmentId: randomUUID(), subjectId: `${run}/0-50`, attempts: 1, lastError: null }
  const handler = findFailures({
    storage,
    pages,
    now: Date.now,
    random: (bytes) => new Uint8Array(bytes),
  })
  const hold = { kind: handler.kind, owner: 'node', items: [item] }
  await handler.perform(item, hold, new AbortController().signal)
  clearImmediate(counting)
  assert.ok(turns >= 2 * events.length, `only ${turns} turns`)
  assert.deepEqual(stored, [20, 20, 10])
})
