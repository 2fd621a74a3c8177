import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { approvalCalls, HASH, type ApprovalCalls } from '../../setup/approval-service.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'

const OTHER_HASH = 'cd'.repeat(32)

let service: Service
let calls: ApprovalCalls
before(async () => {
  service = await startService()
  calls = approvalCalls(service)
})
after(() => service.close())

async function ask(runId: string | null, fields: Record<string, unknown> = {}): Promise<string> {
  const { status, body } = await calls.ask({ runId, ...fields })
  assert.equal(status, 201)
  return body.id
}

/** Records tool calls (or other events) of a run, in this order. */
async function record(runId: string, ...payloads: Record<string, unknown>[]): Promise<string[]> {
  const events = payloads.map(({ eventType = 'TOOL_CALL', ...payload }) => event({ runId, eventType, payload }))
  assert.equal((await service.record(events)).body.success, true)
  return events.map(({ eventId }) => eventId as string)
}

const ran = { toolName: 'transfer', inputHash: HASH, output: 'done' }

const aftermath = async (id: string) =>
  replyOf(
    'readApprovalAftermath',
    await service.operator(`/environments/${service.environmentId}/approvals/${id}/aftermath`),
  )

const ofRun = async (runId: string) =>
  replyOf('listRunApprovals', await service.operator(`/environments/${service.environmentId}/runs/${runId}/approvals`))

test('after an approval: the tool ran, with which event and outcome', async () => {
  const run = randomUUID()
  const id = await ask(run)
  await calls.decide(id, 'APPROVED')
  const [first, second] = await record(run, { ...ran, approvalId: id }, { ...ran, approvalId: id, error: 'broke' })
  const { approval, calls: judged, truncated } = await aftermath(id)
  assert.deepEqual([approval.id, approval.status, truncated], [id, 'APPROVED', false])
  assert.deepEqual(
    judged.map(({ eventId, verdict, outcome, linkedBy, hashChecked }) => [
      eventId,
      verdict,
      outcome,
      linkedBy,
      hashChecked,
    ]),
    [
      [first, 'as_approved', 'output', 'approvalId', true],
      [second, 'ran_again', 'error', 'approvalId', true],
    ],
  )
  const row = await service.operator<{ id: string }>(
    `/environments/${service.environmentId}/runs/${run}/events/${first}`,
  )
  assert.equal(judged[0]?.id, row.body.id)
})

test('the tool ran after a rejection, after expiry, before anyone decided, or with another input', async () => {
  const run = randomUUID()
  const rejected = await ask(run, { toolName: 'a' })
  const expired = await ask(run, { toolName: 'b', timeoutMs: 1_000 })
  const undecided = await ask(run, { toolName: 'c' })
  const approved = await ask(run, { toolName: 'd' })
  await calls.decide(rejected, 'REJECTED')
  await calls.decide(approved, 'APPROVED')
  assert.equal((await calls.read(expired, '?wait=30')).body.status, 'EXPIRED')
  await record(
    run,
    { ...ran, toolName: 'a' },
    { ...ran, toolName: 'b' },
    { ...ran, toolName: 'c' },
    { ...ran, toolName: 'd', inputHash: OTHER_HASH },
  )
  const verdicts = async (id: string) => (await aftermath(id)).calls.map(({ verdict }) => verdict)
  assert.deepEqual(await verdicts(rejected), ['after_rejection'])
  assert.deepEqual(await verdicts(expired), ['after_expiry'])
  assert.deepEqual(await verdicts(undecided), ['before_decision'])
  assert.deepEqual(await verdicts(approved), ['other_input'])
  const whole = await ofRun(run)
  assert.deepEqual(
    whole.approvals.map(({ id }) => id),
    [rejected, expired, undecided, approved],
  )
  assert.equal(whole.calls.length, 4)
})

test('a run shows calls without approval, or with a missing or foreign one', async () => {
  const [run, other] = [randomUUID(), randomUUID()]
  const foreign = await ask(other)
  await record(
    run,
    { eventType: 'POLICY_DECISION', toolName: 'delete', inputHash: HASH, action: 'REQUIRE_APPROVAL' },
    { ...ran, toolName: 'delete' },
    { ...ran, approvalId: UNKNOWN_ID },
    { ...ran, approvalId: 'not an id' },
    { ...ran, approvalId: foreign },
    { ...ran, toolName: 'harmless' },
  )
  const { approvals, calls: judged } = await ofRun(run)
  assert.deepEqual(approvals, [])
  assert.deepEqual(
    judged.map(({ verdict, approvalId }) => [verdict, approvalId]),
    [
      ['without_approval', null],
      ['unknown_approval', UNKNOWN_ID],
      ['unknown_approval', 'not an id'],
      ['other_run', foreign],
    ],
  )
})

test('an approval of a run that is not recorded, or of no run, has no calls', async () => {
  for (const run of [randomUUID(), null]) {
    const { calls: judged, run: found } = await aftermath(await ask(run))
    assert.deepEqual([judged, found], [[], null])
  }
})

test('an approval whose run id is the internal id of another run does not take its calls', async () => {
  const run = randomUUID()
  await record(run, ran)
  const { run: internal } = await ofRun(run)
  const { calls: judged, run: found } = await aftermath(await ask(internal))
  assert.deepEqual([judged, found], [[], null])
})

test('a run with more tool calls than the search bound says so', async () => {
  const run = randomUUID()
  const id = await ask(run)
  for (let batch = 0; batch < 51; batch++) await record(run, ...Array.from({ length: 100 }, () => ({ toolName: 'x' })))
  await record(run, { ...ran, approvalId: id })
  const { calls: judged, truncated } = await aftermath(id)
  assert.deepEqual([judged, truncated], [[], true])
})

test('an unknown run, or one of another environment, is not found', async () => {
  const run = randomUUID()
  await record(run, ran)
  const { environmentId } = await service.newTenant('aftermath elsewhere')
  for (const path of [
    `/environments/${service.environmentId}/runs/${randomUUID()}/approvals`,
    `/environments/${environmentId}/runs/${run}/approvals`,
  ]) {
    assert.deepEqual(refusalOf(await service.operator(path)), [404, 'not_found'])
  }
})

test('an approved request whose tool ran with another input instead did not run, and took another way', async () => {
  const [run, sessionId] = [randomUUID(), randomUUID()]
  const id = await ask(run, { toolName: 'a', sessionId })
  await calls.decide(id, 'APPROVED')
  const [way] = await record(run, { ...ran, toolName: 'a', inputHash: OTHER_HASH, approvalId: id })
  const path = `/environments/${service.environmentId}/approvals/hindsight?session=${sessionId}`
  const { items } = replyOf('listApprovalHindsight', await service.operator(path))
  assert.deepEqual(
    items.map(({ hindsight, call }) => [hindsight, call?.eventId, call?.verdict]),
    [['another_way', way, 'other_input']],
  )
})

test('closed requests in hindsight: whether each ran, when, how it went, or another way was taken', async () => {
  const { environmentId } = service
  const session = randomUUID()
  const asked = (run: string, toolName: string) => ask(run, { toolName, sessionId: session })
  const [run, other] = [randomUUID(), randomUUID()]
  const ids = {
    ran: await asked(run, 'a'),
    failed: await asked(run, 'b'),
    ran_before: await asked(run, 'c'),
    ran_anyway: await asked(run, 'd'),
    another_way: await asked(run, 'e'),
    not_run: await asked(run, 'f'),
    not_known: await asked(other, 'g'),
  }
  const waiting = await asked(run, 'h')
  await record(run, { ...ran, toolName: 'c', approvalId: ids.ran_before })
  for (const word of ['ran', 'failed', 'ran_before', 'not_known'] as const) await calls.decide(ids[word], 'APPROVED')
  for (const word of ['ran_anyway', 'another_way', 'not_run'] as const) await calls.decide(ids[word], 'REJECTED')
  const declined = { error: 'declined', output: undefined, outcome: 'never_ran', reasonCode: 'declined' }
  const [, , , way] = await record(
    run,
    { ...ran, toolName: 'a', approvalId: ids.ran },
    { ...ran, toolName: 'b', approvalId: ids.failed, output: undefined, error: 'broke' },
    { ...ran, toolName: 'd', approvalId: ids.ran_anyway },
    { ...ran, toolName: 'e', inputHash: OTHER_HASH },
    { ...ran, ...declined, toolName: 'f', approvalId: ids.not_run },
  )
  const path = `/environments/${environmentId}/approvals/hindsight?session=${session}`
  const list = async (rest = '') => replyOf('listApprovalHindsight', await service.operator(`${path}${rest}`))
  const { items, nextCursor } = await list()
  assert.equal(nextCursor, null)
  assert.deepEqual(Object.fromEntries(items.map(({ approval, hindsight }) => [hindsight, approval.id])), ids)
  assert.equal(items.length, Object.keys(ids).length)
  assert.ok(items.every(({ approval }) => approval.id !== waiting))
  const shown = Object.fromEntries(items.map(({ hindsight, call, message }) => [hindsight, { call, message }]))
  assert.deepEqual([shown['another_way']?.call?.eventId, shown['failed']?.call?.outcome], [way, 'error'])
  assert.deepEqual([shown['not_run']?.call, shown['not_known']?.call], [null, null])
  assert.match(shown['ran_before']?.message ?? '', /before a person decided/)
  // Read page by page. Calls of another session are not listed.
  const first = await list('&limit=3')
  const rest = await list(`&limit=25&cursor=${first.nextCursor}`)
  assert.deepEqual([...first.items, ...rest.items], items)
  assert.deepEqual((await list('&toolName=zzz')).items, [])
  assert.deepEqual(refusalOf(await service.operator(`${path}&limit=26`)), [400, 'invalid_request'])
})
