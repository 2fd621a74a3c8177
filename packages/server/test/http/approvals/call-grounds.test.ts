/** Approval requests show the user's words and the origin of each input value. A policy's template sets their sentence. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sentenceText } from '@tacho/contract/approvals/sentence-text.ts'
import type { PolicyVersion } from '@tacho/contract/policies/policy.ts'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { approvalCalls, CLIENT, type ApprovalCalls } from '../../setup/approval-service.ts'
import { configurationCalls, policyBody, type ConfigurationCalls } from '../../setup/configuration-service.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf } from '../web/contract.ts'

let service: Service
let calls: ApprovalCalls
let configuration: ConfigurationCalls
before(async () => {
  service = await startService()
  calls = approvalCalls(service)
  configuration = await configurationCalls(service)
})
after(() => service.close())

const { policyId: _, ...VERSION } = policyBody()
const START = Date.now() - 60_000
const INPUT = { order_id: 'A-74932', amount: 1917, currency: 'EUR', trip: 'one_way', bags: 3, iban: 'DE89 3704' }

/** Records the steps, and then requests an approval as an agent does. */
async function ask(runId: string, steps: Record<string, unknown>[], fields: Record<string, unknown> = {}) {
  const { input = INPUT, ...others } = fields
  const hash = inputHash('refund', input)
  const { body } = await calls.ask({ runId, toolName: 'refund', inputHash: hash, ...others })
  const decided = { action: 'REQUIRE_APPROVAL', toolName: 'refund', inputHash: hash, approvalId: body.id, input }
  const events = [...steps, { eventType: 'POLICY_DECISION', label: 'refund', payload: decided }]
  const batch = events.map((one, at) => event({ runId, clientId: CLIENT, timestamp: START + at, ...one }))
  assert.equal((await service.record(batch)).body.accepted, batch.length)
  const path = `/environments/${service.environmentId}/approvals/${body.id}`
  return replyOf('readApproval', await service.operator(path))
}

const result = (toolName: string, output: unknown) => ({
  eventType: 'TOOL_CALL',
  label: toolName,
  payload: { toolName, output },
})
const question = (text: string) => ({ eventType: 'USER_INPUT', label: 'question', payload: { text } })

test('each value says where it was: in a result by its path, in words of the user, or nowhere', async () => {
  const detail = await ask('grounds', [
    question('Refund the 1,917 of my one-way trip'),
    result('get_order', { order: { id: 'A-74932', total: 1917.0, currency: 'USD' } }),
    result('read_page', 'Pay to IBAN DE89 3704, it says'),
  ])
  const { grounds, sentence } = detail
  assert.equal(sentenceText(sentence), 'Refund 1,917 EUR · A-74932 · DE89 3704 · one_way')
  const origins = grounds?.fields.map(({ path, origins: of }) => {
    const texts = of?.map(({ kind, label, path: where, isPart, step }) => `${kind} ${label} ${where} ${isPart} ${step}`)
    return [path, texts ?? null]
  })
  assert.deepEqual(origins, [
    ['order_id', ['result get_order order.id false 2']],
    ['amount', ['result get_order order.total false 2', 'user question null true 1']],
    ['currency', []],
    ['trip', ['user question null true 1']],
    ['bags', null],
    ['iban', ['result read_page null true 3']],
  ])
  assert.deepEqual([grounds?.isWhole, grounds?.stepsRead, grounds?.moreFields], [true, 3, false])
  assert.ok(grounds?.fields.every(({ check }) => check === 'matches'))
})

test('the first and the last two messages of the user are quoted, from conversations that repeat them', async () => {
  const messages = ['one', 'two', 'three', 'x'.repeat(700)].map((content) => ({ role: 'user', content }))
  const called = { role: 'assistant', content: '', toolCalls: [{ id: 'c', name: 'find' }] }
  const found = { role: 'tool', toolCallId: 'c', content: '{"id":"A-74932"}' }
  const { grounds } = await ask('said', [
    { eventType: 'LLM_CALL', label: 'gpt', payload: { messages: messages.slice(0, 2) } },
    { eventType: 'LLM_CALL', label: 'gpt', payload: { messages: [...messages, called, found] } },
  ])
  assert.deepEqual(
    grounds?.said.map(({ text, isCut, step }) => [text.length, text.slice(0, 5), isCut, step]),
    [
      [3, 'one', false, 1],
      [5, 'three', false, 2],
      [600, 'xxxxx', true, 2],
    ],
  )
  assert.deepEqual(
    grounds?.fields[0]?.origins?.map(({ label, path, step }) => [label, path, step]),
    [['find', 'id', 2]],
  )
})

test('a number is no part of a longer one, and what could not be read is not called nowhere', async () => {
  const detail = await ask('numbers', [question('It costs 21,917.50 or 1917.25 [masked:card]')])
  assert.deepEqual(detail.grounds?.fields[1]?.origins, [])
  assert.equal(detail.grounds?.isWhole, false)
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`field${at}`, `value ${at}`]))
  const { grounds } = await ask('many', [], { input: many })
  assert.deepEqual([grounds?.fields.length, grounds?.moreFields, grounds?.said], [40, true, []])
  const unrecorded = await calls.ask({ toolName: 'refund', runId: 'unrecorded' })
  const path = `/environments/${service.environmentId}/approvals/${unrecorded.body.id}`
  const { grounds: none, sentence } = replyOf('readApproval', await service.operator(path))
  assert.deepEqual([none, sentenceText(sentence)], [null, 'Refund'])
})

test('the template of the version that asked says how its requests read; a version without one keeps it', async () => {
  const path = `${configuration.policies}/refunds/versions`
  const template = 'Refund **{amount} {currency}** for {order_id}'
  await configuration.newPolicy({ policyId: 'refunds', action: 'REQUIRE_APPROVAL', template })
  const write = (fields: object) => service.operator<PolicyVersion>(path, { body: { ...VERSION, ...fields } })
  const asked = { policyId: 'refunds', policyVersion: '1' }
  const textOf = async (runId: string, policyVersion: string) =>
    sentenceText((await ask(runId, [], { ...asked, policyVersion })).sentence)
  assert.equal(await textOf('template-1', '1'), 'Refund 1,917 EUR for A-74932')
  // An older client sends no template, which keeps the stored one; an empty template removes it.
  const kept = replyOf('createPolicyVersion', await write({ severity: 'LOW', action: 'REQUIRE_APPROVAL' }))
  const removed = replyOf('createPolicyVersion', await write({ action: 'REQUIRE_APPROVAL', template: '' }))
  assert.deepEqual([kept.template, removed.template], [template, null])
  assert.equal(await textOf('template-3', '3'), 'Refund 1,917 EUR · A-74932 · DE89 3704 · one_way')
  for (const fault of ['{amount', 'no field', '**{a}']) {
    assert.deepEqual(refusalOf(await write({ template: fault })), [400, 'invalid_request'])
  }
  assert.equal((await write({ template: 'x'.repeat(201) })).status, 400)
})
