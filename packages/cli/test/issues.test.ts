import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { IssueRecord } from '@tacho/contract/issues/operator-issue-record.ts'
import type { Issue, IssueSummary } from '@tacho/contract/issues/issue.ts'
import { API_KEY, startServer } from './tacho.ts'
import { eventually } from '../../server/test/setup/eventually.ts'

const server = await startServer()
after(() => server.stop())

const json = <Value>(...args: string[]) => server.json<Value>('issues', ...args)
const text = (...args: string[]) => server.text('issues', ...args)
const refused = (...args: string[]) => server.refused('issues', ...args)

let count = 0
async function report(detectionType: string, more: object = {}): Promise<void> {
  const reply = await fetch(`${server.url}/openapi/v1/issue-records`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': API_KEY },
    body: JSON.stringify({
      sdkInstanceId: 'cli',
      clientRecordId: `${++count}`,
      recordKind: 'DETECTION',
      detectionType,
      agentId: 'refunds',
      detectedAt: Date.now(),
      ...more,
    }),
  })
  assert.equal(reply.status, 202)
}

/** Sends one record and waits for the issue. */
async function opened(detectionType: string, more: object = {}): Promise<IssueSummary> {
  await report(detectionType, more)
  const first = async () => (await json<{ items: IssueSummary[] }>('list', '--type', detectionType)).items[0]
  return eventually(first, `an issue of ${detectionType}`)
}

test('an unknown issue is named, with the command that lists them', async () => {
  for (const id of ['nope', '019a0c44-3700-7686-a2e1-3c01640563f0']) {
    const sentence = `tacho: Unknown issue "${id}": \`tacho issues list\` shows those of the environment.\n`
    for (const args of [
      ['show', id],
      ['resolve', id],
      ['assign', id, 'ann'],
      ['comment', id, 'x'],
      ['split', id, 'v1'],
    ]) {
      const { code, stderr } = await refused(...args)
      assert.deepEqual([code, stderr], [2, sentence], args.join(' '))
    }
  }
})

test('issues are listed and filtered; show prints the facts', async () => {
  const { id } = await opened('TOOL_BLOCKED', {
    runId: 'run-1',
    policyId: 'refund-limit',
    payload: { toolName: 'refund' },
  })
  assert.match(await text('list'), new RegExp(`^LAST SEEN .*\\n.* OPEN +refund was blocked by refund-limit +${id}`))
  assert.match(
    await text('list', '--agent', 'refunds', '--run', 'run-1', '--unassigned', '--state', 'open'),
    new RegExp(id),
  )
  assert.equal(await text('list', '--agent', 'no-such-agent'), '')
  const shown = await text('show', id)
  for (const line of [
    /^OPEN {2}refund was blocked by refund-limit$/m,
    /^Grouped {3}by v1:[0-9a-f]{64} \(1 detection\)$/m,
    /^ {2}toolName +refund$/m,
    /^ {2}policyId +refund-limit$/m,
    /run run-1/,
  ]) {
    assert.match(shown, line)
  }
  const whole = await json<{ issue: Issue; occurrences: { items: IssueRecord[] } }>('show', id)
  assert.deepEqual([whole.issue.id, whole.occurrences.items.length], [id, 1])
})

test('an issue is resolved with a comment, regresses, is ignored, reopened, assigned and commented on', async () => {
  const { id } = await opened('LOOP')
  assert.match(await text('resolve', id, '--comment', 'Fixed in v14'), /is RESOLVED\.$/m)
  const again = await refused('resolve', id)
  assert.equal(again.code, 1)
  assert.match(again.stderr, /The issue is RESOLVED \(conflict/)
  assert.equal((await json<Issue>('reopen', id)).state, 'OPEN')
  assert.equal((await json<Issue>('ignore', id)).state, 'IGNORED')
  assert.equal((await json<Issue>('assign', id, 'ann@example.org')).assignee, 'ann@example.org')
  assert.equal((await json<Issue>('assign', id, '--nobody')).assignee, null)
  assert.equal((await refused('assign', id)).code, 2)
  assert.match(await text('comment', id, 'Seen\u001b[2J again'), /^Commented at/)
  const shown = await text('show', id)
  assert.match(shown, / commented: Fixed in v14/)
  assert.ok(!shown.includes('\u001b'))
})

test('issues are merged, and split by the beginning of a fingerprint', async () => {
  const [one, two] = [await opened('ONE'), await opened('TWO')]
  const merged = await json<Issue>('merge', one.id, '--into', two.id)
  assert.deepEqual([merged.id, merged.occurrences], [two.id, 2])
  const group = merged.groups.find(({ mergedFrom }) => mergedFrom === one.id)
  assert.equal((await refused('split', two.id, 'v1:')).code, 2)
  assert.equal((await refused('split', two.id, 'v2')).code, 2)
  assert.equal((await json<Issue>('split', two.id, group?.fingerprint.slice(0, 12) ?? '')).id, one.id)
})

test('records are listed, and only failed ones are retried', async () => {
  await opened('RECORDED')
  const { items, hasMore } = await json<{ items: IssueRecord[]; hasMore: boolean }>('records', '--limit', '1')
  assert.deepEqual([items.length, hasMore], [1, true])
  assert.match(await text('records', '--status', 'decided', '--kind', 'detection'), /DECIDED .* RECORDED/)
  assert.equal(await text('records', '--status', 'FAILED'), '')
  const [record] = items
  assert.match((await refused('retry', record?.id ?? '')).stderr, /The record is DECIDED/)
  assert.deepEqual(await json('retry', '--failed'), { items: [] })
  assert.equal((await refused('retry')).code, 2)
  assert.equal((await refused('list', '--state', 'closed')).code, 2)
})

test('an issue begins with the error of its latest occurrence, and its cause', async () => {
  const causes = [{ type: 'OSError', message: 'refused' }]
  const exception = {
    type: 'TimeoutError',
    message: 'no answer',
    stack: 'TimeoutError: no answer\n  at refund',
    causes,
  }
  const payload = { toolName: 'refund', error: 'TimeoutError: no answer', exception }
  const ids = { eventId: 'f1', clientId: 'cli', runId: 'failed-run', agentName: 'refunds' }
  const reply = await fetch(`${server.url}/openapi/v1/events/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': API_KEY },
    body: JSON.stringify([{ ...ids, eventType: 'TOOL_CALL', label: 'refund', timestamp: Date.now(), payload }]),
  })
  assert.equal(reply.status, 200)
  const named = { runId: 'failed-run', eventId: 'f1', payload: { toolName: 'refund', reasonCode: 'TimeoutError' } }
  const { id } = await opened('TOOL_FAILED', named)
  const shown = await text('show', id)
  assert.match(shown, /^Error {5}TimeoutError in refund: no answer\n {10}because OSError: refused\n/m)
  assert.match(shown, /`tacho runs show failed-run --stack` shows the stack\./)
})
