import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { OperatorRun, OperatorRunPage } from '@tacho/contract/runs/operator-run.ts'
import type { StalledRule } from '@tacho/contract/runs/stalled-rule.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { event, startService, type Answer, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'

/** Run r<i> starts i seconds after this. */
const START = Date.now() - 3_600_000
const at = (seconds: number) => new Date(START + seconds * 1000).toISOString()

let service: Service
before(async () => {
  service = await startService()
  const stored = Array.from({ length: 6 }, (_, index) => [
    event({
      runId: `r${index}`,
      timestamp: START + index * 1000,
      sessionId: index < 3 ? 'session' : null,
      ...(index % 2 ? { agentId: 'odd', agentName: 'Odd' } : { agentName: 'Even' }),
    }),
    ...(index === 5 ? [event({ runId: 'r5', eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED' } })] : []),
  ])
  assert.equal((await service.record(stored.flat())).body.success, true)
})
after(() => service.close())

const runs = (query = '', environmentId = service.environmentId) =>
  service.operator(`/environments/${environmentId}/runs${query}`)
const found = async (query: string) => replyOf('listOperatorRuns', await runs(query)).items.map(({ runId }) => runId)
const read = async (id: string) => service.operator<OperatorRun>(`/environments/${service.environmentId}/runs/${id}`)

test('runs are listed by their start, newest first, with the fields that only operators see', async () => {
  const { items, nextCursor } = replyOf('listOperatorRuns', await runs())
  assert.deepEqual(
    items.map(({ runId }) => runId),
    ['r5', 'r4', 'r3', 'r2', 'r1', 'r0'],
  )
  assert.equal(nextCursor, null)
  const [r5, r4] = items
  assert.deepEqual([r5?.status, r5?.eventCount, r5?.agentId, r5?.differingRetries], ['FAILED', 2, 'odd', 0])
  assert.deepEqual([r4?.agentId, r4?.sessionId, r4?.endedAt], [null, null, null])
})

test('filters narrow by agent, session, status and start: from is included, to is not', async () => {
  const odd = replyOf('readOperatorRun', await read('r1')).agent.id
  assert.deepEqual(await found(`?agentId=${odd}`), ['r5', 'r3', 'r1'])
  assert.deepEqual(await found(`?agentId=${odd.toUpperCase()}&status=RUNNING`), ['r3', 'r1'])
  assert.deepEqual(await found('?sessionId=session'), ['r2', 'r1', 'r0'])
  assert.deepEqual(await found(`?from=${at(1)}&to=${at(3)}`), ['r2', 'r1'])
  assert.deepEqual(await found(`?from=${at(3)}&to=${at(1)}`), [])
  assert.deepEqual(await found(`?agentId=${UNKNOWN_ID}`), [])
  assert.deepEqual(await found('?sessionId=%00'), [])
})

test('a search finds runs by the start of their id, and by session and agent, within the other filters', async () => {
  assert.deepEqual(await found('?q=r'), ['r5', 'r4', 'r3', 'r2', 'r1', 'r0'])
  assert.deepEqual(await found('?q=r4'), ['r4'])
  assert.deepEqual(await found('?q=session'), ['r2', 'r1', 'r0'])
  assert.deepEqual(await found('?q=odd&status=RUNNING'), ['r3', 'r1'])
  assert.deepEqual(await found('?q=Odd'), ['r5', 'r3', 'r1'])
  assert.deepEqual(await found('?q=Even&sessionId=session'), ['r2', 'r0'])
  assert.deepEqual(await found('?q=%00'), [])
  const longest = 'é'.repeat(LIMITS.searchChars)
  assert.deepEqual(await found(`?q=${encodeURIComponent(longest)}`), [])
  for (const query of [`q=${encodeURIComponent(longest)}x`, 'q=', 'q=r&q=r']) {
    assert.deepEqual(refusalOf(await runs(`?${query}`)), [400, 'invalid_request'], query)
  }
  const first = replyOf('listOperatorRuns', await runs('?q=r&limit=4'))
  const cursor = `cursor=${encodeURIComponent(first.nextCursor ?? '')}`
  assert.deepEqual(await found(`?q=r&${cursor}`), ['r1', 'r0'])
  for (const query of [cursor, `q=r1&${cursor}`]) {
    assert.deepEqual(refusalOf(await runs(`?${query}`)), [400, 'invalid_cursor'])
  }
  const foreign = await service.newTenant('search')
  assert.deepEqual(refusalOf(await runs(`?q=r&${cursor}`, foreign.environmentId)), [400, 'invalid_cursor'])
  assert.deepEqual(replyOf('listOperatorRuns', await runs('?q=r', foreign.environmentId)).items, [])
})

test('the runs of an agent are found by its id or name, within the other filters, page by page', async () => {
  for (const agent of ['Odd', 'odd']) assert.deepEqual(await found(`?agent=${agent}`), ['r5', 'r3', 'r1'])
  assert.deepEqual(await found('?agent=Odd&q=r1'), ['r1'])
  assert.deepEqual(await found('?agent=Odd&status=FAILED'), ['r5'])
  for (const absent of ['ODD', 'Od', 'r1', '%00']) assert.deepEqual(await found(`?agent=${absent}`), [], absent)
  const first = replyOf('listOperatorRuns', await runs('?agent=Odd&limit=2'))
  const cursor = `cursor=${encodeURIComponent(first.nextCursor ?? '')}`
  assert.deepEqual(await found(`?agent=Odd&${cursor}`), ['r1'])
  assert.deepEqual(refusalOf(await runs(`?agent=Even&${cursor}`)), [400, 'invalid_cursor'])
  assert.deepEqual(refusalOf(await runs('?agent=')), [400, 'invalid_request'])
})

test('a malformed filter is refused', async () => {
  for (const query of [
    'agentId=odd',
    'status=DONE',
    'sessionId=',
    'from=yesterday',
    'to=2026-12-31T23:59:60Z',
    'limit=0',
    'minCost=-1',
    'minCost=1e3',
    'minCost=12345678',
    'minLengthMs=0',
    'hasErrors=yes',
    'hasApprovals=false',
    'promptVersionId=1',
    'tool=',
  ]) {
    assert.deepEqual(refusalOf(await runs(`?${query}`)), [400, 'invalid_request'], query)
  }
  await found(`?limit=${LIMITS.operatorPageMax}`)
  assert.deepEqual(refusalOf(await runs(`?limit=${LIMITS.operatorPageMax + 1}`)), [400, 'invalid_request'])
})

test('a cursor is valid only for its filter', async () => {
  const first = replyOf('listOperatorRuns', await runs('?limit=4'))
  const cursor = `cursor=${encodeURIComponent(first.nextCursor ?? '')}`
  assert.deepEqual(await found(`?${cursor}`), ['r1', 'r0'])
  assert.deepEqual(refusalOf(await runs(`?${cursor}&status=RUNNING`)), [400, 'invalid_cursor'])
  const foreign = await service.newTenant('cursors')
  assert.deepEqual(refusalOf(await runs(`?${cursor}`, foreign.environmentId)), [400, 'invalid_cursor'])
})

test('a run is read by its external id or its UUID, in its own environment only', async () => {
  const run = replyOf('readOperatorRun', await read('r0'))
  assert.deepEqual(replyOf('readOperatorRun', await read(run.id)), run)
  const foreign = await service.newTenant('foreign')
  const absent = [
    await read('unknown'),
    await read('%00'),
    await read(UNKNOWN_ID),
    await service.operator(`/environments/${foreign.environmentId}/runs/${run.id}`),
  ]
  for (const answer of absent) assert.deepEqual(refusalOf(answer), [404, 'not_found'])
})

test('an unknown environment has no runs, events or usage to show', async () => {
  const window = `from=${at(0)}&to=${at(1)}`
  const paths = ['runs', 'runs/r0', 'runs/r0/events', 'runs/r0/events/e', 'runs/r0/events/e/trace', `usage?${window}`]
  for (const path of paths) {
    const answer = await service.operator(`/environments/${UNKNOWN_ID}/${path}`)
    assert.deepEqual(refusalOf(answer), [404, 'not_found'], path)
    const malformed = await service.operator(`/environments/production/${path}`)
    assert.deepEqual(refusalOf(malformed), [400, 'invalid_request'], path)
  }
})

test('a running run is active, stalled by the rule of its environment, or waits for an approval', async () => {
  const { environmentId } = await service.newTenant('stalled')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const headers = { 'x-api-key': key, 'X-Service-Client-ID': 'client' }
  const ago = (minutes: number) => Date.now() - minutes * 60_000
  const sent = [
    ['fresh', 1],
    ['silent', 20],
    ['quiet', 25],
    ['waiting', 20],
  ] as const
  const body = sent.map(([runId, minutes]) => event({ runId, timestamp: ago(minutes) }))
  assert.equal((await service.api('/events/batch', { body, headers })).status, 200)
  const request = { clientRequestId: '1', toolName: 'pay', inputHash: 'ab'.repeat(32), runId: 'waiting' }
  assert.equal((await service.api('/firewall-approvals', { body: request, headers })).status, 201)

  const home = `/environments/${environmentId}`
  const activities = async () => {
    const listed = (await service.operator<OperatorRunPage>(`${home}/runs`)).body.items
    for (const run of listed) {
      const { body: one } = await service.operator<OperatorRun>(`${home}/runs/${run.runId}`)
      assert.equal(one.activity, run.activity)
    }
    // The filter and the list agree, also page by page.
    const stalled = listed.filter(({ activity }) => activity === 'STALLED').map(({ runId }) => runId)
    const filtered: string[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const query: string = `activity=STALLED&limit=1${cursor && `&cursor=${cursor}`}`
      const { body }: Answer<OperatorRunPage> = await service.operator(`${home}/runs?${query}`)
      filtered.push(...body.items.map(({ runId }) => runId))
      cursor = body.nextCursor
    }
    assert.deepEqual(filtered, stalled)
    return Object.fromEntries(listed.map(({ runId, activity }) => [runId, activity]))
  }
  const rule = (given?: object) =>
    service.operator<StalledRule>(`${home}/stalled-rule${given ? '/change' : ''}`, given && { body: given })
  const byDefault = { idleMinutes: 15, closeAs: 'FAILED', closeAfterMinutes: 60, source: 'default' }
  assert.deepEqual((await rule()).body, byDefault)
  assert.deepEqual(await activities(), {
    fresh: 'ACTIVE',
    silent: 'STALLED',
    quiet: 'STALLED',
    waiting: 'WAITING_FOR_APPROVAL',
  })
  for (const bad of [{}, { idleMinutes: 4 }, { idleMinutes: 43_201 }, { closeAs: 'COMPLETED' }, { other: 1 }]) {
    assert.equal((await rule(bad)).status, 400, JSON.stringify(bad))
  }
  assert.equal((await rule({ idleMinutes: 5 })).status, 200)
  assert.deepEqual((await rule({ idleMinutes: 43_200 })).body, {
    idleMinutes: 43_200,
    closeAs: 'FAILED',
    closeAfterMinutes: 43_200,
    source: 'environment',
  })
  assert.equal((await activities())['silent'], 'ACTIVE')

  // Its event arrived just now, so the rule leaves it open, whatever time it names.
  await rule({ idleMinutes: 5, closeAs: 'FAILED' })
  assert.equal((await activities())['silent'], 'STALLED')
  const closed = await service.operator<OperatorRun>(`${home}/runs/silent`)
  assert.deepEqual([closed.body.status, closed.body.closedByRuleAt], ['RUNNING', null])
})

test('a cancelled run says why; that is no error, and what failed before is not why', async () => {
  const sent = (runId: string, eventType: string, payload: Record<string, unknown>, ms: number) =>
    event({ runId, eventType, payload, timestamp: Date.now() - 7_200_000 + ms })
  const error = 'SIGTERM: The process was ended by SIGTERM.'
  const { body } = await service.record([
    sent('told', 'SESSION_OUTCOME', { status: 'CANCELLED', error }, 1),
    sent('told', 'TOOL_CALL', { toolName: 'bill', error: 'TimeoutError: no answer' }, 2),
    sent('untold', 'TOOL_CALL', { toolName: 'bill', error: 'TimeoutError: no answer' }, 1),
    sent('untold', 'SESSION_OUTCOME', { status: 'CANCELLED' }, 2),
  ])
  assert.equal(body.success, true)
  const told = replyOf('readOperatorRun', await read('told'))
  const { eventId, ...failure } = told.failure ?? { eventId: '' }
  assert.deepEqual(failure, { errorClass: null, message: error, place: 'run', name: null })
  assert.match(eventId, /./)
  assert.equal(told.errorCount, 1)
  const untold = replyOf('readOperatorRun', await read('untold'))
  assert.deepEqual([untold.status, untold.errorCount, untold.failure], ['CANCELLED', 1, null])
})

test('runs are sorted by what they took, and a cursor is bound to the order', async () => {
  const start = Date.now() - 60_000
  for (const n of [2, 3, 1]) {
    const sent = (eventType: string, payload: Record<string, unknown>, ms = 0) =>
      event({ runId: `sorted${n}`, sessionId: 'sorted', eventType, payload, timestamp: start + ms })
    const errors = Array.from({ length: n }, () => sent('ERROR', { message: 'It broke' }))
    const call = sent('LLM_CALL', { model: 'gpt', cost: n, usage: { totalTokens: n } })
    const { body } = await service.record([...errors, call, sent('SESSION_OUTCOME', { status: 'COMPLETED' }, n)])
    assert.equal(body.success, true)
  }
  const sorted = ['sorted3', 'sorted2', 'sorted1']
  for (const sort of ['cost', 'length', 'tokens', 'failures']) {
    assert.deepEqual(await found(`?sort=${sort}&sessionId=sorted`), sorted, sort)
    assert.deepEqual(await found(`?sort=${sort}&sessionId=sorted&minCost=2`), sorted.slice(0, 2), sort)
  }
  assert.deepEqual(await found('?sort=newest'), await found(''))
  const first = replyOf('listOperatorRuns', await runs('?sort=tokens&sessionId=sorted&limit=1'))
  const cursor = `sessionId=sorted&cursor=${encodeURIComponent(first.nextCursor ?? '')}`
  assert.deepEqual(await found(`?sort=tokens&${cursor}`), sorted.slice(1))
  for (const query of ['sort=cost&', 'sort=newest&', '']) {
    assert.deepEqual(refusalOf(await runs(`?${query}${cursor}`)), [400, 'invalid_cursor'], query)
  }
  const unsorted = ['status=RUNNING', 'activity=STALLED', 'score=a&scoreOrder=lowest'].map((one) => `${one}&sort=cost`)
  for (const query of ['sort=', 'sort=Cost', ...unsorted]) {
    assert.deepEqual(refusalOf(await runs(`?${query}`)), [400, 'invalid_request'], query)
  }
})

test('filters narrow by cost, length, errors, approvals and the names that events give', async () => {
  const start = Date.now() - 60_000
  const versionId = '0190a1b2-77a1-75f1-a257-11717a8c523d'
  const sent = (runId: string, eventType: string, payload: Record<string, unknown>, ms = 0) =>
    event({ runId, eventType, payload, timestamp: start + ms })
  const { body } = await service.record([
    sent('x1', 'LLM_CALL', { model: 'gpt', cost: 0.25, promptVersionId: versionId.toUpperCase() }),
    sent('x1', 'TOOL_CALL', { toolName: 'refund', error: null }, 2_000),
    sent('x2', 'TOOL_CALL', { toolName: 'refund', error: 'broken' }),
    sent('x2', 'ERROR', { message: 'It broke' }),
    sent('x3', 'POLICY_DECISION', { action: 'BLOCK', policyIds: ['large', 7, 'x'.repeat(300)], toolName: 'pay' }),
    sent('x3', 'TOOL_CALL', { toolName: 17, error: false }),
  ])
  assert.equal(body.success, true)
  const request = { clientRequestId: '1', toolName: 'pay', inputHash: 'ab'.repeat(32), runId: 'x3' }
  const headers = { 'X-Service-Client-ID': 'client' }
  const asked = await service.api('/firewall-approvals', { body: request, headers })
  assert.equal(asked.status, 201)
  for (const [query, ids] of [
    ['minCost=0.25', ['x1']],
    ['minCost=0.250000001', []],
    ['minLengthMs=2000', ['x1']],
    ['minLengthMs=2001', []],
    ['hasErrors=true', ['x2']],
    ['hasApprovals=true', ['x3']],
    ['tool=refund', ['x2', 'x1']],
    ['tool=refund&hasErrors=true&status=RUNNING', ['x2']],
    ['model=gpt', ['x1']],
    ['policyId=large', ['x3']],
    ['policyId=large&hasApprovals=true&q=x', ['x3']],
    [`promptVersionId=${versionId}`, ['x1']],
    ['tool=%00', []],
  ] as const) {
    const since = `from=${new Date(start).toISOString()}`
    assert.deepEqual(new Set(await found(`?${since}&${query}`)), new Set<string>(ids), query)
  }
  const { errorCount, tools, models, policyIds, promptVersionIds } = replyOf('readOperatorRun', await read('x1'))
  assert.deepEqual([errorCount, tools, models, policyIds], [0, ['refund'], ['gpt'], []])
  assert.deepEqual(promptVersionIds, [versionId])
  const failed = replyOf('readOperatorRun', await read('x2'))
  assert.deepEqual([failed.errorCount, failed.failure?.place, failed.failure?.name], [2, 'run', null])
  const first = replyOf('listOperatorRuns', await runs('?tool=refund&limit=1'))
  const cursor = `cursor=${encodeURIComponent(first.nextCursor ?? '')}`
  assert.equal((await found(`?tool=refund&${cursor}`)).length, 1)
  assert.deepEqual(refusalOf(await runs(`?tool=pay&${cursor}`)), [400, 'invalid_cursor'])
})

test('runs are sorted and filtered by the cost that is shown: sent and estimated', async () => {
  const { environmentId, workspaceId } = await service.newTenant('shown costs')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const price = { model: 'priced', input: 1_000_000, output: 0 }
  const set = await service.operator(`/workspaces/${workspaceId}/prices/set`, { body: price })
  assert.equal(set.status, 200, set.text)
  const ended = (runId: string, payload: object) => [
    event({ runId, eventType: 'LLM_CALL', payload }),
    event({ runId, eventType: 'SESSION_OUTCOME', payload: { status: 'COMPLETED' } }),
  ]
  const call = (tokens: number) => ({ model: 'priced', usage: { promptTokens: tokens, completionTokens: 0 } })
  const sent = await service.record(
    [
      ...ended('sent 3', { model: 'm', cost: 3 }),
      ...ended('estimated 5', call(5)),
      ...ended('sent 1', { model: 'm', cost: 1 }),
      ...ended('estimated 2', call(2)),
      ...ended('both 4', { model: 'm', cost: 1 }),
      event({ runId: 'both 4', eventType: 'LLM_CALL', payload: call(3) }),
      ...ended('nothing', { model: 'no price', usage: { promptTokens: 9 } }),
    ],
    key,
  )
  assert.equal(sent.body.success, true)
  const sorted = async (query: string) => {
    const names: string[] = []
    for (let cursor = '', pages = 0; pages < 10; pages++) {
      const page = replyOf('listOperatorRuns', await runs(`${query}${cursor}`, environmentId))
      names.push(...page.items.map(({ runId }) => runId))
      if (page.nextCursor === null) return names
      cursor = `&cursor=${encodeURIComponent(page.nextCursor)}`
    }
    return names
  }
  const dearest = ['estimated 5', 'both 4', 'sent 3', 'estimated 2', 'sent 1', 'nothing']
  assert.deepEqual(await sorted('?sort=cost'), dearest)
  assert.deepEqual(await sorted('?sort=cost&limit=1'), dearest)
  assert.deepEqual(await sorted('?sort=cost&minCost=3'), dearest.slice(0, 3))
  assert.deepEqual((await sorted('?minCost=2')).toSorted(), dearest.slice(0, 4).toSorted())
  assert.deepEqual((await sorted('?minCost=2&limit=1')).toSorted(), dearest.slice(0, 4).toSorted())
})
