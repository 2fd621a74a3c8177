import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { approvalCalls, CLIENT, HASH, type ApprovalCalls } from '../../setup/approval-service.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { replyOf } from '../web/contract.ts'

let service: Service
let calls: ApprovalCalls
before(async () => {
  service = await startService()
  calls = approvalCalls(service)
})
after(() => service.close())

async function ask(runId: string): Promise<string> {
  const { status, body } = await calls.ask({ runId, toolName: 'refund' })
  assert.equal(status, 201)
  return body.id
}

/** Records a POLICY_DECISION with exactly this payload text. */
async function record(runId: string, payload: string, given: object = {}): Promise<string> {
  const sent = event({ runId, clientId: CLIENT, eventType: 'POLICY_DECISION', ...given, payload: 'PAYLOAD' })
  const body = JSON.stringify([sent]).replace('"PAYLOAD"', () => payload)
  assert.equal((await service.record(body)).body.success, true)
  return sent['eventId'] as string
}

const payloadOf = (approvalId: string, input: string) =>
  `{"toolName":"refund","inputHash":"${HASH.toUpperCase()}","approvalId":"${approvalId}","input":${input}}`

async function preview(id: string) {
  const path = `/environments/${service.environmentId}/approvals/${id}`
  return replyOf('readApproval', await service.operator(path)).inputPreview
}

test('operators see the exact input text that the client recorded for the approval', async () => {
  const run = randomUUID()
  const id = await ask(run)
  assert.equal(await preview(id), null)
  const input = '{"account": 9007199254740993, "amount":1.0,"note":"\\u00e4"}'
  const eventId = await record(run, payloadOf(id, input))
  const shown = await preview(id)
  assert.deepEqual([shown?.json, shown?.isTruncated, shown?.eventId], [input, false, eventId])
  assert.equal(shown?.bytes, Buffer.byteLength(input))
})

test('input from another run or a later event is not shown', async () => {
  const [run, other] = [randomUUID(), randomUUID()]
  const id = await ask(run)
  await record(other, payloadOf(id, '"of another run"'))
  assert.equal(await preview(id), null)
  await record(run, payloadOf(id, '"first"'))
  await record(run, payloadOf(id, '"later"'), { timestamp: Date.now() - 60_000 })
  assert.equal((await preview(id))?.json, '"first"')
})

test('a long input is cut at its limit', async () => {
  const run = randomUUID()
  const [whole, cut] = [await ask(run), await ask(run)]
  const fitting = `"${'x'.repeat(LIMITS.inputPreviewChars - 2)}"`
  await record(run, payloadOf(whole, fitting))
  await record(run, payloadOf(cut, `${fitting} `.replace('x', 'xx')))
  const [shown, shortened] = [await preview(whole), await preview(cut)]
  assert.deepEqual([shown?.json.length, shown?.isTruncated], [LIMITS.inputPreviewChars, false])
  assert.deepEqual([shortened?.json.length, shortened?.isTruncated], [LIMITS.inputPreviewChars, true])
  assert.equal(shortened?.bytes, LIMITS.inputPreviewChars + 1)
})

test('an input that the client had to shorten says so', async () => {
  const run = randomUUID()
  const [whole, cut] = [await ask(run), await ask(run)]
  await record(run, payloadOf(whole, '{"tachoShortened":true}'))
  await record(run, payloadOf(cut, '{"text":"x…"}').replace(/\}$/, ',"tachoShortened":{"originalBytes":300000}}'))
  assert.deepEqual([(await preview(whole))?.isShortened, (await preview(cut))?.isShortened], [false, true])
})

test('an approval without a recorded run has no input to show', async () => {
  assert.equal(await preview(await ask(randomUUID())), null)
  const { body } = await calls.ask({ runId: null })
  assert.equal(await preview(body.id), null)
})
