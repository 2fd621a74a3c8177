import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Issue } from '@tacho/contract/issues/issue.ts'
import { issueRoutes } from '@tacho/contract/issues/issue-routes.ts'
import { eventually } from '../../setup/eventually.ts'
import { issueRecord, openedIssue, reviewed, submit } from '../../setup/issue-service.ts'
import { startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const post = (path: string, body?: unknown, environmentId = service.environmentId) =>
  service.operator(`/environments/${environmentId}/issues/${path}`, {
    method: 'POST',
    ...(body === undefined ? {} : { body }),
  })
const read = async (id: string) =>
  replyOf('readIssue', await service.operator(`/environments/${service.environmentId}/issues/${id}`))
const activity = async (id: string) =>
  replyOf('listIssueActivity', await service.operator(`/environments/${service.environmentId}/issues/${id}/activity`))
    .items
const opened = (detectionType: string, more: object = {}) =>
  openedIssue(service, issueRecord({ detectionType, ...more }))

test('an issue that is ignored until a time opens again by itself', async () => {
  const { id } = await opened('UNTIL')
  for (const until of ['soon', '', new Date(Date.now() - 1).toISOString()]) {
    assert.deepEqual(refusalOf(await post(`${id}/ignore?until=${until}`)), [400, 'invalid_request'], until)
  }
  const until = new Date(Date.now() + 500).toISOString()
  assert.equal(replyOf('ignoreIssue', await post(`${id}/ignore?until=${until}`)).ignoredUntil, until)
  await eventually(async () => (await read(id)).state === 'OPEN', 'the issue opens again')
  const [last, before] = await activity(id)
  assert.deepEqual([last?.kind, last?.actor, before?.detail], ['REOPENED', null, { until }])
})

test('an issue is resolved, ignored and reopened, each from the states that allow it; 409 shows the current one', async () => {
  const { id } = await opened('STATES')
  const steps: [verb: 'resolve' | 'ignore' | 'reopen', state: string | null][] = [
    ['reopen', null],
    ['resolve', 'RESOLVED'],
    ['resolve', null],
    ['ignore', null],
    ['reopen', 'OPEN'],
    ['ignore', 'IGNORED'],
    ['ignore', null],
    ['resolve', null],
    ['reopen', 'OPEN'],
  ]
  for (const [verb, state] of steps) {
    // `affectedUsers` is only in the answer about one issue, not in lists.
    const { affectedUsers, ...before } = await read(id)
    assert.equal(affectedUsers, 0)
    const answer = await post(`${id}/${verb}`)
    if (state === null) {
      assert.deepEqual(refusalOf(answer), [409, 'conflict'])
      assert.deepEqual((answer.body as { current: Issue }).current, before)
      continue
    }
    const issue = replyOf(`${verb}Issue`, answer)
    assert.deepEqual([issue.state, issue.stateChangedBy?.kind], [state, 'token'])
    assert.deepEqual(await read(id), { ...issue, affectedUsers })
  }
  assert.deepEqual(
    (await activity(id)).map(({ kind }) => kind),
    ['REOPENED', 'IGNORED', 'REOPENED', 'RESOLVED'],
  )
})

test('of concurrent operators, one resolves or ignores, and the others get 409', async () => {
  const { id } = await opened('RACE')
  const verbs = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? 'resolve' : 'ignore'))
  const answers = await Promise.all(verbs.map((verb) => post(`${id}/${verb}`)))
  assert.deepEqual(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, ...Array.from({ length: 19 }, () => 409)],
  )
})

test('a detection reopens a resolved issue as a regression, and does not change an ignored one', async () => {
  const { id } = await opened('BACK')
  replyOf('resolveIssue', await post(`${id}/resolve`))
  const { body } = await submit(service, issueRecord({ detectionType: 'back' }))
  await reviewed(service)
  const back = await read(id)
  assert.deepEqual([back.state, back.regressions, back.stateChangedBy, back.occurrences], ['OPEN', 1, null, 2])
  assert.equal(back.lastRegressionAt, back.stateChangedAt)
  const [regression, resolution] = await activity(id)
  assert.ok(regression && resolution)
  assert.deepEqual([regression.kind, regression.actor], ['REGRESSED', null])
  assert.deepEqual(regression.detail, {
    recordId: body.recordId,
    resolvedAt: resolution.at,
    resolvedBy: resolution.actor,
  })
  replyOf('ignoreIssue', await post(`${id}/ignore`))
  await submit(service, issueRecord({ detectionType: 'back' }))
  await reviewed(service)
  const ignored = await read(id)
  assert.deepEqual([ignored.state, ignored.occurrences, ignored.regressions], ['IGNORED', 3, 1])
})

test('an issue is assigned to a person, or to nobody', async () => {
  const { id } = await opened('ASSIGNED')
  const assign = (assignee: unknown) => post(`${id}/assign`, { assignee })
  assert.equal(replyOf('assignIssue', await assign('ann@example.org')).assignee, 'ann@example.org')
  replyOf('assignIssue', await assign('💾'.repeat(LIMITS.assigneeChars)))
  assert.equal(replyOf('assignIssue', await assign(null)).assignee, null)
  for (const bad of ['', 'x'.repeat(LIMITS.assigneeChars + 1), 7, undefined, 'a\0', '\ud800']) {
    assert.deepEqual(refusalOf(await assign(bad)), [400, 'invalid_request'])
  }
  assert.deepEqual(
    (await activity(id)).map(({ kind }) => kind),
    ['ASSIGNED', 'ASSIGNED', 'ASSIGNED'],
  )
})

test('a comment has 1 to 10,000 code points, gets its author from the token, and is stored unchanged', async () => {
  const { id } = await opened('COMMENTED')
  const comment = (text: unknown) => post(`${id}/comments`, { text })
  const forged = await post(`${id}/comments`, { text: 'first', actor: { name: 'somebody else' } })
  assert.deepEqual(refusalOf(forged), [400, 'invalid_request'])
  const made = replyOf('commentIssue', await comment('  first\n<b>'))
  assert.deepEqual([made.kind, made.text, made.actor?.kind], ['COMMENTED', '  first\n<b>', 'token'])
  assert.deepEqual(await activity(id), [made])
  replyOf('commentIssue', await comment('💾'.repeat(LIMITS.commentChars)))
  for (const bad of ['', 'x'.repeat(LIMITS.commentChars + 1), null, 7, 'a\0', '\ud800']) {
    assert.deepEqual(refusalOf(await comment(bad)), [400, 'invalid_request'])
  }
})

test('a merge moves all records to the other issue, later ones too, and a split moves them out again', async () => {
  const [from, into] = [await opened('MERGE FROM', { runId: 'a' }), await opened('MERGE INTO', { runId: 'b' })]
  const merged = replyOf('mergeIssue', await post(`${from.id}/merge`, { into: into.id.toUpperCase() }))
  assert.deepEqual([merged.id, merged.occurrences, merged.affectedRuns, merged.mergedFrom], [into.id, 2, 2, [from.id]])
  assert.equal((await read(from.id)).mergedInto, into.id)
  await submit(service, issueRecord({ detectionType: 'MERGE FROM', runId: 'c' }))
  await reviewed(service)
  assert.equal((await read(into.id)).occurrences, 3)
  const group = merged.groups.find(({ mergedFrom }) => mergedFrom === from.id)
  assert.equal(group?.facts.detectionType, 'merge from')

  const split = replyOf('splitIssue', await post(`${into.id}/split`, { fingerprints: [group.fingerprint] }))
  assert.deepEqual([split.id, split.occurrences, split.affectedRuns, split.mergedInto], [from.id, 2, 2, null])
  assert.deepEqual([(await read(into.id)).occurrences, (await read(into.id)).mergedFrom], [1, []])
})

test('an invalid merge or split is rejected and changes nothing', async () => {
  const [one, two] = [await opened('CYCLE ONE'), await opened('CYCLE TWO')]
  const fingerprint = one.groups[0]?.fingerprint ?? ''
  const merge = (from: string, into: unknown) => post(`${from}/merge`, { into })
  const split = (from: string, fingerprints: unknown) => post(`${from}/split`, { fingerprints })
  assert.deepEqual(refusalOf(await merge(one.id, one.id)), [409, 'conflict'])
  assert.deepEqual(refusalOf(await split(one.id, [fingerprint])), [409, 'conflict'])
  for (const into of [UNKNOWN_ID, 'x', null])
    assert.deepEqual(refusalOf(await merge(one.id, into)), [400, 'invalid_request'])
  for (const bad of [[], ['x'], [fingerprint, fingerprint], 'x', [7]]) {
    assert.deepEqual(refusalOf(await split(one.id, bad)), [400, 'invalid_request'], JSON.stringify(bad))
  }
  const many = Array.from({ length: LIMITS.issueFingerprints + 1 }, (_, index) => `v1:${index}`)
  assert.deepEqual(refusalOf(await split(one.id, many)), [400, 'invalid_request'])
  assert.deepEqual([await read(one.id), await activity(one.id)], [one, []])

  replyOf('mergeIssue', await merge(one.id, two.id))
  assert.deepEqual(refusalOf(await merge(two.id, one.id)), [409, 'conflict'])
  for (const answer of [
    await merge(one.id, two.id),
    await split(one.id, [fingerprint]),
    await post(`${one.id}/resolve`),
    await post(`${one.id}/assign`, { assignee: 'ann' }),
  ]) {
    assert.deepEqual(refusalOf(answer), [409, 'conflict'])
    assert.deepEqual((answer.body as { current: object }).current, { mergedInto: two.id })
  }
})

test('an unknown issue and one of another tenant get the same 404 on every endpoint', async () => {
  const { environmentId } = await service.newTenant('elsewhere')
  const { id, groups } = await opened('FOREIGN')
  const asked: [string, unknown][] = [
    ['resolve', undefined],
    ['ignore', undefined],
    ['reopen', undefined],
    ['assign', { assignee: 'x' }],
    ['comments', { text: 'x' }],
    ['merge', { into: id }],
    ['split', { fingerprints: [groups[0]?.fingerprint] }],
  ]
  for (const [verb, body] of asked) {
    assert.deepEqual(refusalOf(await post(`${UNKNOWN_ID}/${verb}`, body)), [404, 'not_found'], verb)
    assert.deepEqual(refusalOf(await post(`${id}/${verb}`, body, environmentId)), [404, 'not_found'], verb)
    const get = await service.operator(`/environments/${service.environmentId}/issues/${id}/${verb}`)
    assert.equal(get.status, 405, 'nothing is changed by a GET')
  }
  assert.deepEqual(await activity(id), [])
})

test('only a failed record is retried', async () => {
  const { body } = await submit(service, issueRecord({ detectionType: 'RETRY' }))
  await reviewed(service)
  const path = `/environments/${service.environmentId}/issue-records/${body.recordId}/retry`
  const answer = await service.operator(path, { method: 'POST' })
  assert.deepEqual(refusalOf(answer), [409, 'conflict'])
  assert.equal((answer.body as { current: { status: string } }).current.status, 'DECIDED')
})

test('viewers read and approvers triage', () => {
  for (const [name, { method, access }] of Object.entries(issueRoutes)) {
    assert.equal(access, method === 'GET' ? 'viewer' : 'approver', name)
  }
})
