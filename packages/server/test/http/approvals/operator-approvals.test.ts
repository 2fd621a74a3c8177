import { LIMITS } from '@tacho/contract/engine/limits.ts'
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import type { ApprovalCard } from '@tacho/contract/approvals/operator-approval.ts'
import { ASKED_LATELY } from '@tacho/server/domain/approvals/approval.ts'
import { approvalCalls, CLIENT, HASH, type ApprovalCalls } from '../../setup/approval-service.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { newPerson } from '../people/browser.ts'
import { refusalOf, replyOf, UNKNOWN_ID } from '../web/contract.ts'

const MINUTE = 60_000

let service: Service
let calls: ApprovalCalls
let jump = 0
before(async () => {
  service = await startService({}, () => Date.now() + jump)
  calls = approvalCalls(service)
})
after(() => service.close())

const approvals = (rest = '') => `/environments/${service.environmentId}/approvals${rest}`

/** A list by its query, in the shape of the contract. */
async function list(query: Record<string, string | number> = {}): Promise<ApprovalCard[]> {
  const text = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString()
  return replyOf('listApprovals', await service.operator(approvals(`?${text}`))).items
}

/** Requests an approval and returns its id. */
async function ask(fields: Record<string, unknown> = {}): Promise<string> {
  const { status, body } = await calls.ask(fields)
  assert.equal(status, 201)
  return body.id
}

const idsOf = (items: { id: string }[]) => items.map(({ id }) => id)

test("a card shows the client's request, still undecided", async () => {
  const fields = { runId: 'r', sessionId: 's', agentId: 'a', policyId: 'p', reason: 'why', timeoutMs: 90_000 }
  const id = await ask({ ...fields, clientRequestId: 'card', inputHash: HASH.toUpperCase() })
  const card = replyOf('readApproval', await service.operator(approvals(`/${id}`)))
  assert.deepEqual(card, {
    ...fields,
    agentName: null,
    id,
    status: 'PENDING',
    expiresAt: card.expiresAt,
    decidedAt: null,
    decisionReason: null,
    importedAt: null,
    approvers: 1,
    firstApproval: null,
    grantId: null,
    mayGrant: { scopes: [], why: 'the request names no policy that is in force, or another version of it' },
    clientId: CLIENT,
    clientRequestId: 'card',
    toolName: 'transfer',
    inputHash: HASH,
    createdAt: card.createdAt,
    decidedBy: null,
    askedLately: { requests: 1, capped: false, windowMs: 300_000, burst: false },
    sentence: [{ kind: 'words', text: 'Transfer' }],
    grounds: null,
    inputInShort: null,
    inputCheck: { result: 'cannot_be_checked', reason: 'not_recorded', sealed: 0 },
    ranBefore: null,
    waiting: { state: 'unknown', lastSeenAt: null, reason: null },
    toolCallId: null,
    policyVersion: null,
    askingPolicy: null,
    deciders: { people: [], more: false, tokens: 1 },
    inputPreview: null,
  })
  assert.equal(Date.parse(card.expiresAt) - Date.parse(card.createdAt), 90_000)
})

test('wherever an agent asked, its name is shown: in lists, alone, when decided, and in the audit log', async () => {
  const agentId = randomUUID()
  const body = [event({ agentId, agentName: 'Support bot' })]
  assert.equal((await service.api('/events/batch', { body })).status, 200)
  const id = await ask({ agentId, agentName: 'Somebody else' })
  const [card] = await list({ agentId })
  const one = replyOf('readApproval', await service.operator(approvals(`/${id}`)))
  const decided = replyOf('decideApproval', await calls.decide(id, 'APPROVED'))
  assert.deepEqual(
    [card, one, decided].map((each) => each?.agentName),
    Array(3).fill('Support bot'),
  )
  const { items } = replyOf('listAudit', await service.operator(`/audit?targetKind=approval&targetId=${id}`))
  assert.deepEqual(
    items.map(({ detail }) => detail['agentName']),
    ['Support bot'],
  )
})

test('an approval says who can decide it, while somebody can', async () => {
  const approver = await newPerson(service, `${randomUUID()}@example.com`, 'approver', null)
  const viewer = await newPerson(service, `${randomUUID()}@example.com`, 'viewer', null)
  const [one, other] = await Promise.all([approver, viewer].map(async (who) => replyOf('readMe', await who.get('/me'))))
  const id = await ask()
  const { deciders } = replyOf('readApproval', await service.operator(approvals(`/${id}`)))
  assert.equal(deciders?.more, false)
  const ids = deciders.people.map((person) => person.id)
  assert.deepEqual([ids.includes(one?.id ?? ''), ids.includes(other?.id ?? '')], [true, false])
  await calls.decide(id, 'APPROVED')
  assert.equal(replyOf('readApproval', await service.operator(approvals(`/${id}`))).deciders, null)
})

test('pending approvals are ordered by deadline, oldest first; all others newest first', async () => {
  const toolName = randomUUID()
  const minutes = [3, 1, 2]
  const ids: string[] = []
  for (const each of minutes) ids.push(await ask({ toolName, timeoutMs: each * MINUTE }))
  const [three, one, two] = ids
  assert.deepEqual(idsOf(await list({ toolName, status: 'PENDING' })), [one, two, three])
  assert.deepEqual(idsOf(await list({ toolName })), ids.toReversed())
  await calls.decide(two ?? '', 'REJECTED')
  assert.deepEqual(idsOf(await list({ toolName, status: 'PENDING' })), [one, three])
  assert.deepEqual(idsOf(await list({ toolName, status: 'REJECTED' })), [two])
})

test('each page continues where the previous one ended, in either order', async () => {
  const toolName = randomUUID()
  for (let n = 0; n < 7; n++) await ask({ toolName })
  for (const query of [{ toolName }, { toolName, status: 'PENDING' }]) {
    const whole = idsOf(await list({ ...query, limit: 200 }))
    assert.equal(whole.length, 7)
    const walked: string[] = []
    let cursor: string | null = null
    do {
      const text: string = new URLSearchParams({ ...query, limit: '3', ...(cursor ? { cursor } : {}) }).toString()
      const page = replyOf('listApprovals', await service.operator(approvals(`?${text}`)))
      walked.push(...idsOf(page.items))
      cursor = page.nextCursor
    } while (cursor !== null)
    assert.deepEqual(walked, whole)
  }
})

test('a cursor is valid only for its filter', async () => {
  const toolName = randomUUID()
  for (let n = 0; n < 2; n++) await ask({ toolName })
  const first = replyOf('listApprovals', await service.operator(approvals(`?toolName=${toolName}&limit=1`)))
  const refused = await service.operator(approvals(`?limit=1&cursor=${first.nextCursor}`))
  assert.deepEqual(refusalOf(refused), [400, 'invalid_cursor'])
})

test('the list can be filtered by tool, hash, agent, policy and run', async () => {
  const [toolName, agentId, policyId, runId] = Array.from({ length: 4 }, () => randomUUID())
  const inputHash = 'cd'.repeat(20)
  const id = await ask({ toolName, agentId, policyId, runId, inputHash })
  await ask()
  for (const query of [{ toolName }, { agentId }, { policyId }, { runId }, { inputHash: inputHash.toUpperCase() }]) {
    assert.deepEqual(idsOf(await list(query as Record<string, string>)), [id])
  }
  assert.deepEqual(await list({ toolName: 'nobody' }), [])
  assert.deepEqual(await list({ toolName: 'a\0b' }), [])
  for (const query of ['status=DONE', 'status=', 'limit=0', 'limit=201', 'toolName=', 'toolName=a&toolName=b']) {
    assert.deepEqual(refusalOf(await service.operator(approvals(`?${query}`))), [400, 'invalid_request'], query)
  }
})

test('the list has what would run in short, as the client recorded it for this very request', async () => {
  const toolName = randomUUID()
  const runId = randomUUID()
  const decided = (approvalId: string, more: object) =>
    event({
      runId,
      clientId: CLIENT,
      eventType: 'POLICY_DECISION',
      payload: { action: 'REQUIRE_APPROVAL', toolName, inputHash: HASH, approvalId, ...more },
    })
  const [shell, long, edit, silent] = [
    await ask({ toolName, runId }),
    await ask({ toolName, runId }),
    await ask({ toolName, runId }),
    await ask({ toolName, runId }),
  ]
  await service.record([
    decided(shell, { input: { command: 'cat .env\u202e' } }),
    decided(shell, { input: { command: 'a later word' } }),
    decided(long, { input: { text: 'x'.repeat(10_000) } }),
    decided(edit, { input: { file_path: 'a.ts', old_string: 'a', new_string: 'b' } }),
    decided(silent, { input: { command: 'other hash' }, inputHash: 'ef'.repeat(32) }),
  ])
  const found = new Map((await list({ toolName })).map(({ id, inputInShort }) => [id, inputInShort]))
  assert.equal(found.get(shell), '$ cat .env\u202e')
  assert.equal(found.get(edit), 'a.ts +1 −1')
  assert.equal(found.get(silent), null)
  assert.equal(found.get(long), `${JSON.stringify({ text: 'x'.repeat(10_000) }).slice(0, LIMITS.inputInShortChars)}…`)
})

test('an overdue approval is never shown as PENDING, in any list, group or card', async () => {
  const toolName = randomUUID()
  const ids = [await ask({ toolName, timeoutMs: 1_000 }), await ask({ toolName, timeoutMs: 60_000 })]
  jump += 1_000
  assert.deepEqual(idsOf(await list({ toolName, status: 'PENDING' })), ids.slice(1))
  assert.deepEqual(idsOf(await list({ toolName, status: 'EXPIRED' })), ids.slice(0, 1))
  jump += 59_000
  const groups = replyOf('listApprovalGroups', await service.operator(approvals('/groups')))
  assert.ok(!groups.items.some((group) => group.toolName === toolName))
  const card = replyOf('readApproval', await service.operator(approvals(`/${ids[1]}`)))
  assert.deepEqual([card.status, card.decidedAt, card.decisionReason, card.decidedBy], ['EXPIRED', null, null, null])
})

test('the queue groups what waits for the same tool and input, oldest deadline first', async () => {
  const [one, two] = [randomUUID(), randomUUID()]
  await ask({ toolName: two, runId: 'r1', agentId: 'a1', policyId: 'p', timeoutMs: 3 * MINUTE })
  await ask({ toolName: two, runId: 'r2', agentId: 'a1', policyId: 'p', timeoutMs: 2 * MINUTE })
  await ask({ toolName: one, timeoutMs: MINUTE })
  const { items, more } = replyOf('listApprovalGroups', await service.operator(approvals('/groups')))
  const groups = items.filter(({ toolName }) => toolName === one || toolName === two)
  assert.equal(more, false)
  assert.deepEqual(
    groups.map(({ toolName, requests, runs, agents, policies }) => [toolName, requests, runs, agents, policies]),
    [
      [one, 1, 0, 1, 0],
      [two, 2, 2, 1, 1],
    ],
  )
})

test('a card shows how many requests its agent made recently, and marks many as a burst', async () => {
  const agentId = randomUUID()
  const id = await ask({ agentId })
  const asked = async () => replyOf('readApproval', await service.operator(approvals(`/${id}`))).askedLately
  for (let n = 2; n < ASKED_LATELY.burst; n++) await ask({ agentId })
  assert.deepEqual(await asked(), { requests: 19, capped: false, windowMs: 300_000, burst: false })
  await ask({ agentId })
  assert.deepEqual(await asked(), { requests: 20, capped: false, windowMs: 300_000, burst: true })
  await ask({ agentId: null })
  assert.equal((await asked()).requests, 20)
  jump += ASKED_LATELY.windowMs + 1_000
  assert.deepEqual(await asked(), { requests: 0, capped: false, windowMs: 300_000, burst: false })
})

test('approvals of another environment are not found', async () => {
  const id = await ask()
  const other = await service.newTenant('approvals elsewhere')
  const path = `/environments/${other.environmentId}/approvals`
  assert.deepEqual(replyOf('listApprovals', await service.operator(path)).items, [])
  assert.deepEqual(replyOf('listApprovalGroups', await service.operator(`${path}/groups`)).items, [])
  for (const unknown of [`${path}/${id}`, approvals(`/${UNKNOWN_ID}`)]) {
    assert.deepEqual(refusalOf(await service.operator(unknown)), [404, 'not_found'])
    assert.deepEqual(refusalOf(await service.operator(`${unknown}/aftermath`)), [404, 'not_found'])
    const body = { decision: 'APPROVED' }
    assert.deepEqual(refusalOf(await service.operator(`${unknown}/decision`, { body })), [404, 'not_found'])
  }
  assert.deepEqual(refusalOf(await service.operator(approvals('/not-an-id'))), [400, 'invalid_request'])
  assert.equal((await calls.read(id)).body.status, 'PENDING')
})

test('requests are listed by the time they were asked, their session, and the end user of their run', async () => {
  const { environmentId } = service
  const [session, user, run] = [randomUUID(), randomUUID(), randomUUID()]
  await service.record([event({ runId: run, payload: { userId: user } })])
  const early = await ask({ sessionId: session })
  const start = Date.now() + jump
  jump += MINUTE
  const late = await ask({ sessionId: session, runId: run })
  const found = async (query: Record<string, string>) => idsOf(await list(query))
  const middle = new Date(start + MINUTE / 2).toISOString()
  assert.deepEqual(await found({ session }), [late, early])
  assert.deepEqual(await found({ session, from: middle }), [late])
  assert.deepEqual(await found({ session, to: middle }), [early])
  assert.deepEqual(await found({ session, status: 'PENDING', to: middle }), [early])
  assert.deepEqual(await found({ user }), [late])
  assert.deepEqual([await found({ user: 'nobody' }), await found({ session: 'none' })], [[], []])
  const misspelt = await service.operator(`/environments/${environmentId}/approvals?sesion=x`)
  assert.match(JSON.stringify(misspelt.body), /did you mean session\?/)
  assert.deepEqual(refusalOf(await service.operator(approvals('?from=yesterday'))), [400, 'invalid_request'])
})
