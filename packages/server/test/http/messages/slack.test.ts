/** Decisions by buttons in Slack. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { Role } from '@tacho/contract/web/route.ts'
import { CLIENT, HASH } from '../../setup/approval-service.ts'
import { eventually } from '../../setup/eventually.ts'
import { event } from '../../setup/service.ts'
import { slackService } from '../../setup/slack-service.ts'
import { newPerson, openBrowser } from '../people/browser.ts'
import { replyOf } from '../web/contract.ts'

const {
  service,
  calls,
  webhook,
  workspace,
  messages,
  passTime,
  home,
  newWebhook,
  press,
  newApproval,
  stateOf,
  codeOf,
  links,
  newLinkedPerson,
  auditOf,
} = slackService()

test('the message of a request has buttons that name the approval, and a question before approving', async () => {
  const { id } = await newApproval({ toolName: 'refund' })
  const found = () =>
    messages.find(({ path, body }) => path === '/services/T/B/main' && JSON.stringify(body).includes(id))
  const { body } = await eventually(found, 'the message')
  const actions = body.blocks?.find((block) => (block as { type: string }).type === 'actions')
  const { elements } = actions as { elements: { action_id: string; value: string; confirm?: object }[] }
  assert.deepEqual(
    elements.map(({ action_id: action, value, confirm }) => [action, value, confirm !== undefined]),
    [
      ['tacho_approve', id, true],
      ['tacho_reject', id, false],
    ],
  )
})

test('a person links a Slack user once, and then decides in Slack as in the console', async () => {
  const email = 'ada@example.com'
  const ada = await newPerson(service, email, 'approver', workspace.id)
  const { id } = await newApproval({ toolName: 'refund' })
  const code = codeOf(await press(id, { user: 'U-ada' }))
  assert.equal((await stateOf(id)).status, 'PENDING')

  const stranger = await newPerson(service, 'viewer@example.com', 'viewer', workspace.id)
  assert.equal((await stranger.post(`${links()}/confirm`, { code })).status, 403)
  assert.equal((await openBrowser(service).post(`${links()}/confirm`, { code })).status, 401)
  assert.equal((await service.operator(`${links()}/confirm`, { body: { code } })).status, 403)
  const opened = await ada.post<{ userId: string; userName: string }>(`${links()}/open`, { code })
  assert.deepEqual([opened.body.userId, opened.body.userName], ['U-ada', 'name of U-ada'])
  const linked = replyOf('confirmSlackLink', await ada.post(`${links()}/confirm`, { code }))
  assert.deepEqual([linked.userId, linked.operator.email], ['U-ada', email])
  assert.equal((await ada.post(`${links()}/confirm`, { code })).status, 404, 'a code works once')
  assert.equal((await stateOf(id)).status, 'PENDING', 'a link decides nothing')

  const [message, ...more] = await press(id, { user: 'U-ada' })
  assert.deepEqual(more, [])
  const told = JSON.stringify(message)
  assert.equal(message?.replace_original, true)
  for (const part of ['Approval decided', 'APPROVED', email, 'refund', 'over 100']) assert.ok(told.includes(part), part)
  assert.ok(!told.includes('tacho_approve'), 'without buttons')
  const { status, decidedBy } = await stateOf(id)
  assert.deepEqual([status, decidedBy?.name, decidedBy?.kind, decidedBy?.via], ['APPROVED', email, 'operator', 'slack'])
  assert.equal((await calls.read(id)).body.status, 'APPROVED')
  const [entry] = await auditOf(id)
  const { slack: by } = (entry?.detail ?? {}) as { slack: Record<string, string> }
  assert.deepEqual(
    [entry?.action, entry?.actor.name, by['userId'], by['webhookId']],
    ['approval.approve', email, 'U-ada', webhook.id],
  )
})

test('a later press, and a request that is sent again, say what was decided and change nothing', async () => {
  const [bob, eve] = [await newLinkedPerson('bob'), await newLinkedPerson('eve', 'owner')]
  const { id } = await newApproval()
  await press(id, { user: bob.user, act: 'reject' })
  for (const { user } of [eve, bob]) {
    const [replaced, told] = await press(id, { user, count: 2 })
    assert.ok(JSON.stringify(replaced).includes('REJECTED'))
    assert.deepEqual([told?.response_type, told?.text.includes(`rejected by ${bob.email}`)], ['ephemeral', true])
  }
  assert.deepEqual([(await stateOf(id)).status, (await stateOf(id)).decidedBy?.name], ['REJECTED', bob.email])
  assert.deepEqual((await auditOf(id)).map(({ action }) => action).toSorted(), [
    'approval.approve.refused',
    'approval.approve.refused',
    'approval.reject',
  ])
})

test('of two people, the first is told that another must approve, and a Slack user is the linked account', async () => {
  const [kim, lea] = [await newLinkedPerson('kay'), await newLinkedPerson('lea')]
  const policy = {
    policyId: 'two-people',
    condition: 'true',
    severity: 'HIGH',
    action: 'REQUIRE_APPROVAL',
    approvers: 2,
  }
  assert.equal((await service.operator(`/workspaces/${workspace.id}/policies`, { body: policy })).status, 201)
  const items = [{ kind: 'policy', id: 'two-people', version: '1' }]
  assert.equal((await service.operator(`${home()}/deployments`, { body: { items } })).status, 200)
  const { id } = await newApproval({ policyId: 'two-people' })
  const [first] = await press(id, { user: kim.user })
  assert.match(first?.text ?? '', /Another person must approve it too/)
  const asksAgain = () =>
    messages.find(
      ({ body }) => body.text.startsWith('Approval requested') && JSON.stringify(body).includes(`by ${kim.email}`),
    )
  const told = JSON.stringify(await eventually(asksAgain, 'the message for the second person'))
  assert.ok(told.includes('tacho_approve') && told.includes('Approved first'), told)
  const [again] = await press(id, { user: kim.user })
  assert.match(again?.text ?? '', /somebody else must approve/)
  assert.equal((await calls.read(id)).body.status, 'PENDING')
  const [message] = await press(id, { user: lea.user })
  assert.ok(JSON.stringify(message).includes('APPROVED'))
  assert.equal((await calls.read(id)).body.status, 'APPROVED')
})

test('what was decided in the console is told in Slack, also to a webhook that asked for requests only', async () => {
  const { id } = await newApproval()
  await calls.decide(id, 'APPROVED', 'known customer')
  const found = () =>
    messages.find(({ body }) => body.text.startsWith('Approval decided') && JSON.stringify(body).includes(id))
  const { path, body } = await eventually(found, 'the outcome')
  assert.equal(path, '/services/T/B/main')
  assert.ok(JSON.stringify(body).includes('known customer'))
  const carol = await newLinkedPerson('carol')
  const [replaced, told] = await press(id, { user: carol.user, act: 'reject', count: 2 })
  assert.ok(JSON.stringify(replaced).includes('APPROVED'))
  assert.ok(told?.text.includes('approved'))
})

test('a message that showed no input approves none that came later, and the case of an id does not matter', async () => {
  const nia = await newLinkedPerson('nia')
  const shows = await newWebhook('/services/shows', { showsInput: true })
  const runId = randomUUID()
  const { id } = await newApproval({ runId })
  const found = () => messages.find(({ path, body }) => path === '/services/shows' && JSON.stringify(body).includes(id))
  const { body } = await eventually(found, 'the message, which waits a moment for the input')
  assert.ok(JSON.stringify(body).includes(`"value":"${id} unseen"`))
  const payload = { approvalId: id, toolName: 'transfer', inputHash: HASH, input: { to: 'Ada' } }
  const decision = event({ runId, clientId: CLIENT, eventType: 'POLICY_DECISION', payload })
  assert.equal((await service.api('/events/batch', { body: [decision] })).status, 200)
  const [told] = await press(`${id} unseen`, { user: nia.user })
  assert.match(told?.text ?? '', /recorded after this message/)
  assert.equal((await stateOf(id)).status, 'PENDING')
  await press(`${id.toUpperCase()} unseen`, { user: nia.user, act: 'reject' })
  assert.equal((await stateOf(id)).status, 'REJECTED')
  const other = await newApproval()
  await press(other.id.toUpperCase(), { user: nia.user })
  assert.equal((await stateOf(other.id)).status, 'APPROVED')
  await service.operator(`${home()}/webhooks/${shows.id}/remove`, { body: {} })
})

test('a request that is withdrawn says so in the channel, and a later press replaces the message', async () => {
  const max = await newLinkedPerson('max')
  const runId = randomUUID()
  const { id } = await newApproval({ runId })
  const payload = { approvalId: id, toolName: 'transfer', inputHash: HASH, reason: 'timeout' }
  const gone = event({ runId, clientId: CLIENT, eventType: 'APPROVAL_WITHDRAWN', payload })
  assert.equal((await service.api('/events/batch', { body: [gone] })).status, 200)
  const found = () =>
    messages.find(({ body }) => body.text.startsWith('Approval withdrawn') && JSON.stringify(body).includes(id))
  const { path, body } = await eventually(found, 'the withdrawal')
  assert.equal(path, '/services/T/B/main')
  assert.ok(JSON.stringify(body).includes('nothing will run') && !JSON.stringify(body).includes('tacho_approve'))
  const [replaced, told] = await press(id, { user: max.user, count: 2 })
  assert.ok(replaced?.replace_original && JSON.stringify(replaced).includes('nothing will run'))
  assert.match(told?.text ?? '', /nothing will run/)
})

test('two who press at the same time make one decision', async () => {
  const [one, two] = [await newLinkedPerson('one'), await newLinkedPerson('two')]
  const { id } = await newApproval()
  const told = await Promise.all([
    press(id, { user: one.user, act: 'approve' }),
    press(id, { user: two.user, act: 'reject' }),
  ])
  const { status, decidedBy } = await stateOf(id)
  assert.equal(decidedBy?.name, status === 'APPROVED' ? one.email : two.email)
  for (const [replaced] of told) assert.ok(JSON.stringify(replaced).includes(status))
  const actions = (await auditOf(id)).map(({ action }) => action)
  assert.deepEqual(
    actions.toSorted(),
    status === 'APPROVED'
      ? ['approval.approve', 'approval.reject.refused']
      : ['approval.approve.refused', 'approval.reject'],
  )
})

test('the role counts that the person has when the button is pressed', async () => {
  const { user, link: linked } = await newLinkedPerson('dan')
  const { id } = await newApproval()
  const role = (to: Role | 'remove') =>
    to === 'remove'
      ? service.operator(`/workspaces/${workspace.id}/operators/${linked.operator.id}/remove`, { body: {} })
      : service.operator(`/workspaces/${workspace.id}/operators/${linked.operator.id}/role`, { body: { role: to } })
  assert.equal((await role('viewer')).status, 200)
  const [lowered] = await press(id, { user })
  assert.deepEqual([lowered?.response_type, lowered?.text.includes('the role approver')], ['ephemeral', true])
  assert.equal((await stateOf(id)).status, 'PENDING')
  const [entry] = await auditOf(id)
  assert.deepEqual([entry?.action, entry?.actor.id], ['approval.decide.refused', linked.operator.id])
  assert.equal((await role('remove')).status, 200)
  const [gone] = await press(id, { user })
  assert.ok(gone?.text.includes('the role approver'))
  assert.equal((await stateOf(id)).status, 'PENDING')
})

test('an approval that expired stays so, and one that never existed is told of as that', async () => {
  const ivy = await newLinkedPerson('ivy')
  const { id } = await newApproval({ timeoutMs: 60_000 })
  passTime(61_000)
  const [replaced, told] = await press(id, { user: ivy.user, count: 2 })
  assert.ok(JSON.stringify(replaced).includes('expired undecided'))
  assert.ok(told?.text.includes('expired undecided'))
  assert.equal((await stateOf(id)).status, 'EXPIRED')
  for (const unknown of ['00000000-0000-7000-8000-000000000000', 'no id', '__proto__']) {
    const [message] = await press(unknown, { user: ivy.user })
    assert.ok(message?.text.includes('does not exist'))
  }
})
