import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import type { AuditEntry } from '@tacho/contract/people/audit.ts'
import type { CreatedOperatorToken } from '@tacho/contract/people/token.ts'
import { approvalCalls, HASH, type ApprovalCalls } from '../../setup/approval-service.ts'
import { startService, type Answer, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'

let service: Service
let calls: ApprovalCalls
let workspaceId: string
let jump = 0
before(async () => {
  service = await startService({}, () => Date.now() + jump)
  calls = approvalCalls(service)
  const { body } = await service.operator<{ items: { id: string }[] }>('/workspaces')
  workspaceId = body.items[0]?.id ?? ''
})
after(() => service.close())

const approvals = (rest: string) => `/environments/${service.environmentId}/approvals${rest}`

async function ask(fields: Record<string, unknown> = {}): Promise<string> {
  const { status, body } = await calls.ask(fields)
  assert.equal(status, 201)
  return body.id
}

const decide = (id: string, body: unknown, token?: string) =>
  service.operator(approvals(`/${id}/decision`), {
    body,
    ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
  })

const decideMany = (body: unknown) => service.operator(approvals('/decisions'), { body })

const statusOf = async (id: string) => (await calls.read(id)).body.status

/** The audit entries about approvals, newest first, as [action, target, detail]. */
async function audited(): Promise<AuditEntry[]> {
  const page = replyOf('listAudit', await service.operator(`/workspaces/${workspaceId}/audit?limit=200`))
  return page.items.filter(({ action }) => action.startsWith('approval.'))
}

async function newToken(role: Role): Promise<CreatedOperatorToken> {
  const path = `/workspaces/${workspaceId}/tokens`
  return (await service.operator<CreatedOperatorToken>(path, { body: { name: `a ${role}`, role } })).body
}

/** A rejection that leaves the approval unchanged. */
async function assertPending(id: string, answer: Answer, status: number): Promise<void> {
  assert.equal(answer.status, status, answer.text)
  assert.equal(await statusOf(id), 'PENDING')
}

test('the client gets a decision with its time and reason, operators also get who decided', async () => {
  const id = await ask({ agentId: 'agent', runId: 'run', policyId: 'policy' })
  const token = await newToken('approver')
  const decided = replyOf('decideApproval', await decide(id, { decision: 'APPROVED', reason: 'known' }, token.token))
  assert.deepEqual(decided.decidedBy, { kind: 'token', id: token.id, name: 'a approver', via: null })
  assert.deepEqual([decided.status, decided.decisionReason], ['APPROVED', 'known'])
  assert.ok(decided.decidedAt)
  const { id: _, ...told } = (await calls.read(id)).body
  const { status, expiresAt, decidedAt, decisionReason } = decided
  assert.deepEqual(told, { status, expiresAt, decidedAt, decisionReason })
  const [entry] = await audited()
  assert.deepEqual([entry?.action, entry?.target.id, entry?.actor.id], ['approval.approve', id, token.id])
  const detail = { toolName: 'transfer', inputHash: HASH, agentId: 'agent', policyId: 'policy', runId: 'run' }
  assert.deepEqual(entry?.detail, { ...detail, agentName: null, reason: 'known' })
})

test('a reason may be left out, and has at most 2000 characters', async () => {
  const most = LIMITS.decisionReasonChars
  for (const reason of [undefined, null, '', 'é'.repeat(most)]) {
    const decided = replyOf('decideApproval', await decide(await ask(), { decision: 'REJECTED', reason }))
    assert.equal(decided.decisionReason, reason ?? null)
  }
  const id = await ask()
  for (const reason of ['x'.repeat(most + 1), 'a\0b', 'a\ud800', 7]) {
    await assertPending(id, await decide(id, { decision: 'APPROVED', reason }), 400)
  }
})

test('a decided or expired approval cannot be decided: 409 with the current state, and an audit entry', async () => {
  const [decided, expired] = [await ask(), await ask({ timeoutMs: 1_000 })]
  await decide(decided, { decision: 'REJECTED', reason: 'first' })
  jump += 1_000
  for (const [id, status] of [
    [decided, 'REJECTED'],
    [expired, 'EXPIRED'],
  ] as const) {
    const answer = await decide(id, { decision: 'APPROVED', reason: 'late' })
    assert.deepEqual(refusalOf(answer), [409, 'conflict'])
    const { current } = answer.body as { current: { id: string; status: string } }
    assert.deepEqual([current.id, current.status], [id, status])
    assert.equal(await statusOf(id), status)
    const [entry] = await audited()
    assert.deepEqual([entry?.action, entry?.target.id], ['approval.approve.refused', id])
    assert.equal(entry?.detail['status'], status)
  }
})

test('the same decision is rejected the second time', async () => {
  const id = await ask()
  assert.equal((await decide(id, { decision: 'APPROVED' })).status, 200)
  assert.equal((await decide(id, { decision: 'APPROVED' })).status, 409)
})

test('a GET never decides', async () => {
  const id = await ask()
  const paths = [`/${id}/decision`, `/${id}/decision?decision=APPROVED`, `/${id}?decision=APPROVED`, '/decisions']
  for (const path of paths) await service.operator(approvals(path))
  for (const path of paths.slice(0, 2)) await assertPending(id, await service.operator(approvals(path)), 405)
  await service.api(`/firewall-approvals/${id}?status=APPROVED`)
  assert.equal(await statusOf(id), 'PENDING')
})

test('neither a viewer nor an API key can decide', async () => {
  const id = await ask()
  const viewer = (await newToken('viewer')).token
  await assertPending(id, await decide(id, { decision: 'APPROVED' }, viewer), 403)
  const page = replyOf('listAudit', await service.operator(`/workspaces/${workspaceId}/audit?limit=1`))
  const [entry] = page.items
  assert.deepEqual([entry?.action, entry?.actor.name], ['endpoint.call.refused', 'a viewer'])
  assert.deepEqual([entry?.detail['needs'], entry?.detail['approvalId']], ['approver', id])
  await assertPending(id, await decide(id, { decision: 'APPROVED' }, service.apiKey), 401)
  const headers = { authorization: `Bearer ${viewer}` }
  const many = await service.operator(approvals('/decisions'), { body: { decision: 'APPROVED', ids: [id] }, headers })
  await assertPending(id, many, 403)
  assert.equal((await service.operator(approvals(`/${id}`), { headers })).status, 200)
})

test('a name in the body is ignored: the decision belongs to the authenticated caller', async () => {
  const id = await ask()
  for (const name of ['decidedBy', 'deciderId', 'decider', 'status', 'now']) {
    await assertPending(id, await decide(id, { decision: 'APPROVED', [name]: 'somebody else' }), 400)
    await assertPending(id, await decideMany({ decision: 'APPROVED', ids: [id], [name]: 'somebody else' }), 400)
  }
  const [entry] = await audited()
  assert.deepEqual([entry?.action, entry?.target.kind], ['approval.decide.refused', 'approval'])
  assert.ok(!JSON.stringify(entry).includes('somebody else'))
  for (const decision of ['PENDING', 'EXPIRED', 'approved', '', null, undefined]) {
    await assertPending(id, await decide(id, { decision }), 400)
  }
})

test('several of one tool and input are decided together, each with an outcome and an audit entry of its own', async () => {
  const toolName = randomUUID()
  const [one, two, three] = [await ask({ toolName }), await ask({ toolName }), await ask({ toolName })]
  await decide(two, { decision: 'APPROVED' })
  const ids = [one.toUpperCase(), two, UNKNOWN_ID, three, one]
  const { items, more } = replyOf('decideApprovals', await decideMany({ decision: 'REJECTED', reason: 'no', ids }))
  assert.equal(more, false)
  assert.deepEqual(
    items.map(({ id, outcome, approval }) => [id, outcome, approval?.status ?? null]),
    [
      [one, 'decided', 'REJECTED'],
      [two, 'refused', 'APPROVED'],
      [three, 'decided', 'REJECTED'],
      [UNKNOWN_ID, 'not_found', null],
    ],
  )
  const entries = (await audited()).slice(0, 3).map(({ action, target }) => `${action} ${target.id}`)
  const expected = [`approval.reject ${one}`, `approval.reject ${three}`, `approval.reject.refused ${two}`]
  assert.deepEqual(new Set(entries), new Set(expected))
})

test('all pending approvals for a tool and input are decided at once, and no others', async () => {
  const toolName = randomUUID()
  const same = [await ask({ toolName }), await ask({ toolName }), await ask({ toolName, timeoutMs: 1_000 })]
  const others = [await ask({ toolName, inputHash: 'cd'.repeat(16) }), await ask()]
  jump += 1_000
  const body = { decision: 'APPROVED', toolName, inputHash: HASH.toUpperCase() }
  const { items } = replyOf('decideApprovals', await decideMany(body))
  assert.deepEqual(new Set(items.map(({ id }) => id)), new Set(same))
  assert.deepEqual(await Promise.all(same.map(statusOf)), ['APPROVED', 'APPROVED', 'EXPIRED'])
  assert.deepEqual(await Promise.all(others.map(statusOf)), ['PENDING', 'PENDING'])
  assert.deepEqual(replyOf('decideApprovals', await decideMany(body)), { items: [], more: false })
})

test('ids of different tools or inputs are not decided together', async () => {
  const [one, two] = [await ask(), await ask({ inputHash: 'cd'.repeat(16) })]
  assert.deepEqual(refusalOf(await decideMany({ decision: 'APPROVED', ids: [one, two] })), [409, 'conflict'])
  assert.deepEqual(await Promise.all([one, two].map(statusOf)), ['PENDING', 'PENDING'])
})

test('either ids or tool and input are given, at most 200 ids', async () => {
  const id = await ask()
  const wrong = [
    {},
    { ids: [] },
    { ids: [id], toolName: 'transfer', inputHash: HASH },
    { ids: [id], toolName: 'transfer' },
    { toolName: 'transfer' },
    { inputHash: HASH },
    { ids: ['x'] },
    { ids: Array.from({ length: LIMITS.decisionsMax + 1 }, () => randomUUID()) },
  ]
  for (const which of wrong) {
    assert.deepEqual(refusalOf(await decideMany({ decision: 'APPROVED', ...which })), [400, 'invalid_request'])
  }
  const most = Array.from({ length: LIMITS.decisionsMax - 1 }, () => randomUUID())
  const { items } = replyOf('decideApprovals', await decideMany({ decision: 'APPROVED', ids: [...most, id] }))
  assert.equal(items.length, LIMITS.decisionsMax)
  assert.equal(await statusOf(id), 'APPROVED')
})

test('at most 200 are decided at once by tool and input, oldest deadlines first; the answer says there are more', async () => {
  const toolName = randomUUID()
  const ids = await Promise.all(Array.from({ length: LIMITS.decisionsMax + 1 }, () => ask({ toolName })))
  const body = { decision: 'REJECTED', toolName, inputHash: HASH }
  const first = replyOf('decideApprovals', await decideMany(body))
  assert.deepEqual([first.items.length, first.more], [LIMITS.decisionsMax, true])
  const second = replyOf('decideApprovals', await decideMany(body))
  assert.deepEqual([second.items.length, second.more], [1, false])
  assert.deepEqual(new Set(await Promise.all(ids.map(statusOf))), new Set(['REJECTED']))
})
