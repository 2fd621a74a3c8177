/** A console whose agents ask for approvals, for the tests of the page of approvals. */
import assert from 'node:assert/strict'
import { after, afterEach, before } from 'node:test'
import type { Page } from 'playwright-core'
import type { ApprovalPage } from '@tacho/contract/approvals/operator-approval.ts'
import { inputHash as hashOf } from '../../../policy/src/input/input-hash.ts'
import { approvalCalls, CLIENT, type ApprovalCalls } from '../../../server/test/setup/approval-service.ts'
import { configurationCalls } from '../../../server/test/setup/configuration-service.ts'
import { event } from '../../../server/test/setup/service.ts'
import { HARM, startConsole, type TestConsole } from './console.ts'

export const INPUT = { to: 'ana.silva@example.com', amount: 120.5, note: HARM }

export const waitingList = (page: Page) => page.getByRole('list', { name: 'Waiting approvals' })
export const pane = (page: Page) => page.getByRole('article')

/**
 * Starts the console before the tests of a suite, and closes it after them. No request waits at the end of a test. `tacho` and
 * `calls` are empty until the tests begin.
 */
export function approvalsConsole() {
  const tacho = {} as TestConsole
  const calls = {} as ApprovalCalls
  before(async () => {
    Object.assign(tacho, await startConsole())
    Object.assign(calls, approvalCalls(tacho.service))
    const { newPolicy } = await configurationCalls(tacho.service)
    await newPolicy({ policyId: 'transfer-limit', name: 'Transfer limit', action: 'REQUIRE_APPROVAL' })
  })
  afterEach(rejectWaiting)
  after(() => tacho.close())

  /** Asks like an agent: records the step and the policy's decision with the input, and sends the request. */
  async function ask(runId: string, fields: Record<string, unknown> = {}): Promise<string> {
    const { toolName = 'transfer', input = INPUT } = fields
    const inputHash = fields['inputHash'] ?? hashOf(String(toolName), input)
    const { body, status } = await calls.ask({
      inputHash,
      runId,
      agentId: 'payer',
      policyId: 'transfer-limit',
      policyVersion: '1',
      reason: `Transfer in ${runId}`,
      ...fields,
    })
    assert.equal(status, 201)
    const decided = { action: 'REQUIRE_APPROVAL', toolName, inputHash, approvalId: body.id, input }
    await tacho.service.record([
      event({ runId, eventType: 'USER_INPUT', label: 'Pay the invoice', timestamp: Date.now() - 2_000 }),
      event({ runId, eventType: 'POLICY_DECISION', label: 'transfer', payload: decided, clientId: CLIENT }),
    ])
    return body.id
  }

  async function ran(runId: string, approvalId: string, change: Record<string, unknown> = {}): Promise<void> {
    const payload = { toolName: 'transfer', inputHash: hashOf('transfer', INPUT), approvalId, output: 'ok', ...change }
    await tacho.service.record([event({ runId, eventType: 'TOOL_CALL', label: 'transfer', payload })])
  }

  async function rejectWaiting(): Promise<void> {
    const path = `/environments/${tacho.service.environmentId}/approvals?status=PENDING`
    const { body } = await tacho.service.operator<ApprovalPage>(path)
    for (const { id } of body.items) await calls.decide(id, 'REJECTED')
  }

  return { tacho, calls, ask, ran, approvals: () => `${tacho.home}/approvals` }
}
