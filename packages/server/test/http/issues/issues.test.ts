import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { IssuePage } from '@tacho/contract/issues/issue.ts'
import { issueRecord, openedIssue, reviewed, submit } from '../../setup/issue-service.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const at = (path: string, environmentId = service.environmentId) =>
  service.operator(`/environments/${environmentId}${path}`)
const list = async (query = '') => replyOf('listIssues', await at(`/issues${query}`)).items
const types = async (query: string) => (await list(query)).map(({ detectionType }) => detectionType).toSorted()

const LISTS = ['occurrences', 'recoveries', 'runs', 'agents', 'activity'] as const
const ROUTE = {
  occurrences: 'listOccurrences',
  recoveries: 'listRecoveries',
  runs: 'listAffectedRuns',
  agents: 'listAffectedAgents',
  activity: 'listIssueActivity',
} as const

test('an issue shows what happened, how often, and why its records are grouped', async () => {
  const payload = { toolName: 'Send_Email', tools: ['b', 'a'], reasonCode: 'LIMIT', model: 'm', other: 1 }
  const given = { detectionType: 'Explained', policyId: 'p', payload }
  const issue = await openedIssue(
    service,
    issueRecord({ ...given, runId: 'r1', detectedAt: 1_790_000_000_000 }),
    issueRecord({ ...given, runId: 'r2', detectedAt: 1_780_000_000_000 }),
    issueRecord({ ...given, recordKind: 'RECOVERY' }),
  )
  const read = replyOf('readIssue', await at(`/issues/${issue.id.toUpperCase()}`))
  assert.deepEqual(read, issue)
  const { id, openedAt, stateChangedAt, groups, ...rest } = read
  assert.deepEqual(rest, {
    title: 'Explained in Send_Email with m by p: LIMIT',
    detectionType: 'explained',
    state: 'OPEN',
    stateChangedBy: null,
    ignoredUntil: null,
    firstSeenAt: new Date(1_780_000_000_000).toISOString(),
    lastSeenAt: new Date(1_790_000_000_000).toISOString(),
    occurrences: 2,
    recoveries: 1,
    affectedRuns: 2,
    affectedAgents: 1,
    regressions: 0,
    lastRegressionAt: null,
    assignee: null,
    mergedInto: null,
    mergedFrom: [],
    affectedUsers: 0,
    firstRelease: null,
    lastRelease: null,
  })
  assert.equal(openedAt, stateChangedAt)
  const [group, ...others] = groups
  assert.ok(group && others.length === 0)
  assert.match(group.fingerprint, /^v1:[0-9a-f]{64}$/)
  assert.deepEqual(group.facts, {
    detectionType: 'explained',
    model: 'm',
    policyId: 'p',
    reasonCode: 'limit',
    toolName: 'send_email',
    tools: ['a', 'b'],
  })
  assert.equal(group.mergedFrom, null)
  const occurrences = replyOf('listOccurrences', await at(`/issues/${id}/occurrences`)).items
  assert.deepEqual(
    occurrences.map(({ runId, issueId, fingerprint }) => [runId, issueId, fingerprint]),
    [
      ['r1', id, group.fingerprint],
      ['r2', id, group.fingerprint],
    ],
  )
  assert.equal(replyOf('listRecoveries', await at(`/issues/${id}/recoveries`)).items.length, 1)
})

test('issues are listed by last seen and found by state, type, agent, run and assignee', async () => {
  const one = await openedIssue(
    service,
    issueRecord({ detectionType: 'FILTER ONE', agentId: 'fa', runId: 'fr', detectedAt: 2_000 }),
  )
  const two = await openedIssue(service, issueRecord({ detectionType: 'filter two', agentId: 'fa', detectedAt: 1_000 }))
  const all = await list()
  assert.deepEqual(
    all.map(({ lastSeenAt }) => lastSeenAt),
    all
      .map(({ lastSeenAt }) => lastSeenAt)
      .toSorted()
      .toReversed(),
  )
  assert.deepEqual(await types('?agentId=fa'), ['filter one', 'filter two'])
  assert.deepEqual(
    (await list('?agentId=fa')).map(({ id }) => id),
    [one.id, two.id],
  )
  assert.deepEqual(await types('?agentId=fa&runId=fr'), ['filter one'])
  assert.deepEqual(await types(`?detectionType=${encodeURIComponent(' Filter  ONE')}`), ['filter one'])
  assert.deepEqual(await types('?detectionType=none'), [])
  await service.operator(`/environments/${service.environmentId}/issues/${two.id}/assign`, {
    body: { assignee: 'ann' },
  })
  await service.operator(`/environments/${service.environmentId}/issues/${two.id}/resolve`, { method: 'POST' })
  assert.deepEqual(await types('?agentId=fa&state=OPEN'), ['filter one'])
  assert.deepEqual(await types('?agentId=fa&state=RESOLVED'), ['filter two'])
  assert.deepEqual(await types('?agentId=fa&assignee=ann'), ['filter two'])
  assert.deepEqual(await types('?agentId=fa&assigned=false'), ['filter one'])
  assert.deepEqual(await types('?agentId=fa&assigned=true'), ['filter two'])
  assert.deepEqual(await types('?agentId=%00'), [])
  assert.deepEqual(await types('?agentId=fa&q=TWO%20filter'), ['filter two'])
  assert.deepEqual(await types('?q=%00'), [])
  for (const name of ['from', 'seenFrom']) {
    assert.deepEqual(await types(`?agentId=fa&${name}=1970-01-01T00:00:02Z`), ['filter one'])
  }
  for (const name of ['to', 'seenTo']) {
    assert.deepEqual(await types(`?agentId=fa&${name}=1970-01-01T00:00:02Z`), ['filter two'])
  }
  assert.deepEqual(await types('?agentId=fa&seenFrom=1970-01-01T00:00:03Z'), [])
  for (const query of [
    'state=open',
    'assigned=yes',
    'limit=0',
    'limit=201',
    'agentId=',
    'state=OPEN&state=OPEN',
    'seenFrom=1',
    'from=1',
  ]) {
    assert.deepEqual(refusalOf(await at(`/issues?${query}`)), [400, 'invalid_request'], query)
  }
})

test('paging by cursor returns every issue once, and a cursor is valid only for its filter', async () => {
  const met: string[] = []
  let cursor: string | null = null
  do {
    const page: IssuePage = replyOf(
      'listIssues',
      await at(`/issues?limit=1${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`),
    )
    met.push(...page.items.map(({ id }) => id))
    cursor = page.nextCursor
  } while (cursor !== null)
  assert.deepEqual(
    met,
    (await list()).map(({ id }) => id),
  )
  const { nextCursor } = replyOf('listIssues', await at('/issues?limit=1'))
  const foreign = encodeURIComponent(nextCursor ?? '')
  for (const path of [
    `/issues?state=OPEN&cursor=${foreign}`,
    `/issues/${met[0]}/runs?cursor=${foreign}`,
    `/issue-records?cursor=${foreign}`,
  ]) {
    assert.deepEqual(refusalOf(await at(path)), [400, 'invalid_cursor'])
  }
})

test('runs and agents show their recorded data', async () => {
  await service.record([event({ runId: 'recorded', agentId: 'known', agentName: 'Bot' })])
  const given = { detectionType: 'AFFECTED' }
  const { id } = await openedIssue(
    service,
    issueRecord({ ...given, runId: 'recorded', agentId: 'known' }),
    issueRecord({ ...given, runId: 'nowhere', agentId: 'nobody', detectedAt: 1 }),
  )
  const runs = replyOf('listAffectedRuns', await at(`/issues/${id}/runs`)).items
  const run = (await service.api<{ id: string; agent: { id: string } }>('/runs/recorded')).body
  assert.deepEqual(
    runs.map(({ runId, internalRunId, status, occurrences }) => [runId, internalRunId, status, occurrences]),
    [
      ['recorded', run.id, 'RUNNING', 1],
      ['nowhere', null, null, 1],
    ],
  )
  const agents = replyOf('listAffectedAgents', await at(`/issues/${id}/agents`)).items
  assert.deepEqual(
    agents.map(({ agentId, internalAgentId, name }) => [agentId, internalAgentId, name]),
    [
      ['known', run.agent.id, 'Bot'],
      ['nobody', null, null],
    ],
  )
})

test('each list of an issue is paged', async () => {
  const records = Array.from({ length: 5 }, (_, index) =>
    ['DETECTION', 'RECOVERY'].map((recordKind) =>
      issueRecord({
        detectionType: 'PAGES',
        recordKind,
        runId: `r${index}`,
        agentId: `a${index}`,
        detectedAt: 1_000 + (index % 2),
      }),
    ),
  ).flat()
  const { id } = await openedIssue(service, ...records)
  for (let comment = 0; comment < 5; comment++) {
    const path = `/environments/${service.environmentId}/issues/${id}/comments`
    replyOf('commentIssue', await service.operator(path, { body: { text: `${comment}` } }))
  }
  for (const part of LISTS) {
    const whole = replyOf(ROUTE[part], await at(`/issues/${id}/${part}`))
    assert.equal(whole.items.length, 5, part)
    assert.equal(whole.nextCursor, null)
    const met: unknown[] = []
    let cursor: string | null = null
    do {
      const query: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
      const page = replyOf(ROUTE[part], await at(`/issues/${id}/${part}?limit=2${query}`))
      met.push(...page.items)
      cursor = page.nextCursor
    } while (cursor !== null)
    assert.deepEqual(met, whole.items, part)
    for (const limit of [0, LIMITS.operatorPageMax + 1]) {
      assert.deepEqual(refusalOf(await at(`/issues/${id}/${part}?limit=${limit}`)), [400, 'invalid_request'])
    }
  }
})

test('an unknown issue and one of another tenant get the same 404; a malformed id is reported', async () => {
  const { environmentId } = await service.newTenant('elsewhere')
  const { id } = await openedIssue(service, issueRecord({ detectionType: 'MINE' }))
  for (const part of ['', ...LISTS.map((name) => `/${name}`)]) {
    for (const [issue, environment] of [
      [UNKNOWN_ID, service.environmentId],
      [id, environmentId],
    ] as const) {
      assert.deepEqual(refusalOf(await at(`/issues/${issue}${part}`, environment)), [404, 'not_found'], part)
    }
    assert.deepEqual(refusalOf(await at(`/issues/x${part}`)), [400, 'invalid_request'])
    assert.deepEqual(refusalOf(await at(`/issues/${id}${part}`, UNKNOWN_ID)), [404, 'not_found'])
  }
  assert.deepEqual((await at('/issues', environmentId)).body, { items: [], nextCursor: null })
})

test('records are listed with their status, latest received first', async () => {
  const ids: string[] = []
  for (const recordKind of ['DETECTION', 'RECOVERY'])
    ids.push((await submit(service, issueRecord({ recordKind }))).body.recordId)
  await reviewed(service)
  const records = async (query: string) => replyOf('listIssueRecords', await at(`/issue-records?${query}`)).items
  assert.deepEqual(
    (await records('limit=2')).map(({ id }) => id),
    ids.toReversed(),
  )
  assert.deepEqual(
    (await records('limit=1&recordKind=DETECTION&status=DECIDED')).map(({ id }) => id),
    ids.slice(0, 1),
  )
  assert.deepEqual(await records('status=FAILED'), [])
  const { nextCursor } = replyOf('listIssueRecords', await at('/issue-records?limit=1'))
  const next = replyOf(
    'listIssueRecords',
    await at(`/issue-records?limit=1&cursor=${encodeURIComponent(nextCursor ?? '')}`),
  )
  assert.equal(next.items[0]?.id, ids[0])
  for (const query of ['status=decided', 'recordKind=x', 'limit=0']) {
    assert.deepEqual(refusalOf(await at(`/issue-records?${query}`)), [400, 'invalid_request'])
  }
  const [id] = ids
  const { environmentId } = await service.newTenant('no records')
  replyOf('readIssueRecord', await at(`/issue-records/${id}`))
  for (const path of [`/issue-records/${id}`, `/issue-records/${id}/retry`]) {
    const method = path.endsWith('retry') ? 'POST' : 'GET'
    const foreign = await service.operator(`/environments/${environmentId}${path}`, { method })
    assert.deepEqual(refusalOf(foreign), [404, 'not_found'])
  }
})

test('issues can be listed by their first detection, and those of few agents name them; an end user has issues', async () => {
  const { environmentId } = await service.newTenant('first seen')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const start = Date.now() - 3_600_000
  const failed = (runId: string, agentId: string, minute: number, userId: string) =>
    event({
      runId,
      agentId,
      timestamp: start + minute * 60_000,
      eventType: 'ERROR',
      payload: { message: `broken ${agentId === 'b' ? 'pipe' : 'disk'}`, userId },
    })
  // The issue of `a` is older, and is seen again last.
  await service.record([failed('r1', 'a', 1, 'ann'), failed('r2', 'b', 2, 'bob'), failed('r3', 'a', 3, 'ann')], key)
  const path = `/environments/${environmentId}/issues`
  const list = async (query: string) => replyOf('listIssues', await service.operator(`${path}${query}`)).items
  const detections = async () => (await list('')).reduce((sum, { occurrences }) => sum + occurrences, 0)
  await eventually(async () => (await detections()) === 3, 'the three detections of two issues')
  const agents = async (query: string) => (await list(query)).map(({ agentIds }) => agentIds.join())
  assert.deepEqual(await agents(''), ['a', 'b'])
  assert.deepEqual(await agents('?sort=firstSeen'), ['b', 'a'])
  const iso = (minute: number) => new Date(start + minute * 60_000).toISOString()
  assert.deepEqual(await agents(`?sort=firstSeen&firstFrom=${iso(2)}`), ['b'])
  assert.deepEqual(await agents(`?firstTo=${iso(2)}`), ['a'])
  assert.deepEqual(await agents(`?sort=firstSeen&from=${iso(3)}`), ['a'])
  assert.deepEqual(
    [await agents('?user=ann'), await agents('?user=bob'), await agents('?user=eve')],
    [['a'], ['b'], []],
  )
  const first = replyOf('listIssues', await service.operator(`${path}?sort=firstSeen&limit=1`))
  const next = `?sort=firstSeen&limit=1&cursor=${encodeURIComponent(first.nextCursor ?? '')}`
  assert.deepEqual([first.items[0]?.agentIds, await agents(next)], [['b'], ['a']])
})
