import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { Tacho, ToolBlockedError, type GuardRules, type LocalPolicy } from '../../src/index.ts'
import { fakeTacho, type FakeOptions } from '../../src/testing/fake-tacho.ts'

const RUN = { agentName: 'support', agentId: 'support-1' }

function policy(action: string, condition = 'tool.name == "refund"', more: Partial<LocalPolicy> = {}): LocalPolicy {
  const policyId = `p-${action.toLowerCase()}`
  return { policyId, name: `${action} refunds`, version: '1', condition, severity: 'HIGH', action, ...more }
}

function fake(t: TestContext, options: FakeOptions = {}) {
  const service = fakeTacho({ onDiagnostic: () => undefined, ...options })
  t.after(service.close)
  return service
}

/** A guarded refund that counts how often it ran. */
function refund({ tacho }: ReturnType<typeof fakeTacho>, rules: GuardRules = {}) {
  const ran: { amount: number }[] = []
  const call = tacho.guard(
    async (input: { amount: number }) => {
      ran.push({ ...input })
      if (input.amount < 0) throw new RangeError('amount below zero')
      return `refunded ${input.amount}`
    },
    { name: 'refund', ...rules },
  )
  return { call, ran }
}

async function blockedBy(act: Promise<unknown>): Promise<ToolBlockedError> {
  const error = await act.then(
    () => assert.fail('the tool ran'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof ToolBlockedError, String(error))
  return error
}

test('a call that matches no policy runs and records one TOOL_CALL with its hash', async (t) => {
  const service = fake(t)
  const { call } = refund(service)
  const answer = await service.tacho.run(RUN, () => call({ amount: 5 }))
  assert.equal(answer, 'refunded 5')
  const hash = inputHash('refund', { amount: 5 })
  const { payload } = await service.assertEvent('TOOL_CALL', { toolName: 'refund', inputHash: hash })
  assert.deepEqual([payload['input'], payload['output']], [{ amount: 5 }, 'refunded 5'])
  assert.equal(typeof payload['latency'], 'number')
  await service.assertNoEvent('POLICY_DECISION')
})

test('WARN runs the tool and records the decision', async (t) => {
  const service = fake(t, { deployedPolicies: [policy('WARN')] })
  const { call, ran } = refund(service)
  await service.tacho.run(RUN, () => call({ amount: 5 }))
  assert.equal(ran.length, 1)
  await service.assertDecision({ action: 'WARN', toolName: 'refund', policyIds: ['p-warn'] })
})

test('BLOCK: the tool does not run, the error has a text for the model, and the recovery has the same facts', async (t) => {
  const service = fake(t, { deployedPolicies: [policy('BLOCK', 'tool.input.amount > 100.0')] })
  const { call, ran } = refund(service)
  const error = await service.tacho.run(RUN, async () => {
    const thrown = await blockedBy(call({ amount: 500 }))
    await call({ amount: 5 })
    await call({ amount: 6 })
    return thrown
  })
  assert.deepEqual([error.code, error.toolName, error.policyIds], ['policy', 'refund', ['p-block']])
  assert.match(error.modelText, /^The tool refund was not run\. A policy forbids/)
  assert.ok(!error.modelText.includes('500'))
  assert.deepEqual(ran, [{ amount: 5 }, { amount: 6 }])
  await service.assertDecision({ action: 'BLOCK', policyIds: ['p-block'] })
  await service.assertEvent('POLICY_DECISION', { input: { amount: 500 } })
  await service.assertNoEvent('TOOL_CALL', { input: { amount: 500 } })
  const [blocked, recovered, ...others] = await service.issues()
  assert.deepEqual([blocked?.recordKind, blocked?.detectionType], ['DETECTION', 'TOOL_BLOCKED'])
  assert.deepEqual([recovered?.recordKind, recovered?.detectionType], ['RECOVERY', 'TOOL_BLOCKED'])
  assert.deepEqual(recovered?.payload, blocked?.payload)
  assert.equal(recovered?.policyId, 'p-block')
  assert.notEqual(recovered?.clientRecordId, blocked?.clientRecordId)
  assert.deepEqual(others, [])
})

test('a failing tool throws its own error; TOOL_FAILED and its recovery are reported', async (t) => {
  const service = fake(t)
  const { call } = refund(service)
  await service.tacho.run(RUN, async () => {
    await assert.rejects(call({ amount: -1 }), RangeError)
    await call({ amount: 1 })
  })
  await service.assertEvent('TOOL_CALL', { error: 'RangeError: amount below zero' })
  const success = await service.assertEvent('TOOL_CALL', { input: { amount: 1 } })
  const issues = await service.issues()
  assert.equal(issues[1]?.eventId, success.eventId, 'the recovery names the call that succeeded')
  assert.deepEqual(
    issues.map(({ recordKind, detectionType, payload }) => [recordKind, detectionType, payload['reasonCode']]),
    [
      ['DETECTION', 'TOOL_FAILED', 'RangeError'],
      ['RECOVERY', 'TOOL_FAILED', 'RangeError'],
    ],
  )
})

test('a policy speaks: to the model, to the approver and in the record', async (t) => {
  const description = 'Large refunds.\nMessage: over 500 needs finance: ask ada'
  const deployedPolicies = [
    policy('BLOCK', 'tool.input.amount > 900.0', { description: 'No message here.' }),
    policy('REQUIRE_APPROVAL', 'tool.input.amount > 500.0', { description }),
    policy('WARN', 'true', { description: 'Message: not of the strictest policy' }),
  ]
  const service = fake(t, { deployedPolicies, approvals: 'reject' })
  const { call } = refund(service)
  const [asked, blocked] = await service.tacho.run(RUN, async () => [
    await blockedBy(call({ amount: 501 })),
    await blockedBy(call({ amount: 901 })),
  ])
  assert.match(asked.modelText, /A person rejected this call\. .*The policy says: over 500 needs finance: ask ada/)
  assert.equal(asked.policyMessage, 'over 500 needs finance: ask ada')
  const reason = 'policy "REQUIRE_APPROVAL refunds": over 500 needs finance: ask ada'
  assert.equal((await service.approvals())[0]?.reason, reason)
  await service.assertEvent('POLICY_DECISION', { action: 'REQUIRE_APPROVAL', reason })
  assert.equal(blocked.policyMessage, null)
  assert.doesNotMatch(blocked.modelText, /The policy says/)
  await service.assertEvent('POLICY_DECISION', { action: 'BLOCK', reason: 'policy "BLOCK refunds"' })
})

test('REQUIRE_APPROVAL: operators have the input before they decide, and the tool runs when approved', async (t) => {
  const asked: string[] = []
  const service = fake(t, {
    deployedPolicies: [policy('REQUIRE_APPROVAL')],
    approvals: async (request) => {
      asked.push(`${request.toolName} ${request.inputHash}`)
      const payload = { approvalId: request.id, inputHash: request.inputHash, input: { amount: 500 } }
      await service.assertEvent('POLICY_DECISION', { action: 'REQUIRE_APPROVAL', ...payload })
      return 'approve' as const
    },
  })
  const { call, ran } = refund(service)
  await service.tacho.run(RUN, () => call({ amount: 500 }))
  assert.deepEqual(asked, [`refund ${inputHash('refund', { amount: 500 })}`])
  assert.equal(ran.length, 1)
  const [approval] = await service.approvals()
  assert.deepEqual([approval?.policyId, approval?.agentId], ['p-require_approval', 'support-1'])
  await service.assertEvent('TOOL_CALL', { approvalId: approval?.id, inputHash: approval?.inputHash })
})

for (const [answer, code] of [
  ['reject', 'approval_rejected'],
  ['expire', 'approval_expired'],
] as const) {
  test(`REQUIRE_APPROVAL: the tool does not run after ${answer}`, async (t) => {
    const service = fake(t, { deployedPolicies: [policy('REQUIRE_APPROVAL')], approvals: answer })
    const { call, ran } = refund(service)
    const error = await service.tacho.run(RUN, () => blockedBy(call({ amount: 1 })))
    assert.equal(error.code, code)
    assert.equal(error.approvalId, (await service.approvals())[0]?.id)
    assert.deepEqual(ran, [])
    await service.assertNoEvent('TOOL_CALL')
  })
}

test('the tool runs with the approved input, even if its caller changes it during the approval', async (t) => {
  const input = { amount: 1 }
  const service = fake(t, {
    deployedPolicies: [policy('REQUIRE_APPROVAL')],
    approvals: () => {
      input.amount = 1_000_000
      return 'approve' as const
    },
  })
  const { call, ran } = refund(service)
  await service.tacho.run(RUN, () => call(input))
  assert.deepEqual(ran, [{ amount: 1 }])
  await service.assertEvent('TOOL_CALL', { input: { amount: 1 }, inputHash: inputHash('refund', { amount: 1 }) })
})

test('the tool does not run if an input that it reads elsewhere changes during the approval', async (t) => {
  const input = { amount: 1 }
  const service = fake(t, {
    deployedPolicies: [policy('REQUIRE_APPROVAL')],
    approvals: () => {
      input.amount = 1_000_000
      return 'approve' as const
    },
  })
  const call = service.tacho.guard(() => assert.fail('the tool ran'), { name: 'refund', input: () => input })
  const error = await service.tacho.run(RUN, () => blockedBy(call()))
  assert.equal(error.code, 'input_changed')
})

test('no decision in time stops the tool, and is not reported as a failure of the service', async (t) => {
  const codes: string[] = []
  const service = fake(t, {
    deployedPolicies: [policy('REQUIRE_APPROVAL')],
    approvals: () => new Promise<never>(() => undefined),
    onDiagnostic: ({ code }) => void codes.push(code),
  })
  const { call, ran } = refund(service, { approvalTimeoutMs: 1_000 })
  const error = await service.tacho.run(RUN, () => blockedBy(call({ amount: 1 })))
  assert.deepEqual([error.code, ran, codes], ['approval_timeout', [], []])
})

test('if the service is down, approvals fail and recording is not affected', async (t) => {
  const local = [policy('REQUIRE_APPROVAL')]
  const service = fake(t)
  const unconfigured = { whenUnconfigured: 'allow', configurationWaitMs: 0 } as const
  const rules = { policies: local, approvalTimeoutMs: 1_000, ...unconfigured }
  const { call, ran } = refund(service, rules)
  service.setDown(true)
  const error = await service.tacho.run(RUN, () => blockedBy(call({ amount: 1 })))
  assert.equal(error.code, 'approval_timeout')
  assert.deepEqual(ran, [])
  service.setDown(false)
  await service.tacho.run(RUN, () => service.tacho.guard(() => 'ok', { name: 'other', ...unconfigured })())
  await service.assertEvent('TOOL_CALL', { toolName: 'other' })
})

test('no guarded tool runs until policies were loaded once', async (t) => {
  const codes: string[] = []
  const service = fake(t, { onDiagnostic: ({ code }) => codes.push(code) })
  service.setDown(true)
  const { call, ran } = refund(service, { configurationWaitMs: 10 })
  const error = await service.tacho.run(RUN, () => blockedBy(call({ amount: 1 })))
  assert.deepEqual([error.code, ran], ['not_configured', []])
  assert.ok(codes.includes('guard_unconfigured'), codes.join(', '))
  service.setDown(false)
  await service.tacho.configuration.refresh()
  service.setDown(true)
  await service.tacho.run(RUN, () => call({ amount: 1 }))
  assert.equal(ran.length, 1)
  service.setDown(false)
})

test('a function with several arguments and no input is reported, and the reason says what failed', async (t) => {
  const told: string[] = []
  const service = fake(t, {
    onDiagnostic: ({ code, message }) => told.push(`${code} ${message}`),
    deployedPolicies: [
      policy('BLOCK', 'tool.input.amount > 100.0', { name: 'The "large" ones', severity: 'LOW', onError: 'act' }),
    ],
  })
  const call = service.tacho.guard(async (_id: string, _amount: number) => 'ran', { name: 'refund' })
  const error = await service.tacho.run(RUN, () => blockedBy(call('1007', 30)))
  const why = `policy "The 'large' ones" (its condition could not be evaluated: missing key "amount")`
  assert.equal(error.reason, why)
  assert.ok(
    told.some((one) => one.startsWith('guard_input refund was called with several arguments')),
    told.join('\n'),
  )
  const input = (id: string, amount: number) => ({ id, amount })
  const named = service.tacho.guard(async (_id: string, _amount: number) => 'ran', { name: 'refund', input })
  assert.equal(await service.tacho.run(RUN, () => named('1007', 30)), 'ran')
})

test('a tool may run without policies if it is told so, and that is reported', async (t) => {
  const codes: string[] = []
  const service = fake(t, { onDiagnostic: ({ code }) => codes.push(code) })
  service.setDown(true)
  const { call, ran } = refund(service, { whenUnconfigured: 'allow', configurationWaitMs: 10 })
  await service.tacho.run(RUN, () => call({ amount: 1 }))
  assert.equal(ran.length, 1)
  assert.ok(codes.includes('guard_unconfigured'), codes.join(', '))
  service.setDown(false)
})

test('a client that is turned off runs its tools', async () => {
  const tacho = new Tacho({ enabled: false })
  assert.equal(await tacho.guard(() => 'ran', { name: 'refund', configurationWaitMs: 0 })(), 'ran')
})

test('an input that is not plain JSON cannot be approved', async (t) => {
  const service = fake(t, { deployedPolicies: [policy('REQUIRE_APPROVAL')], approvals: 'approve' })
  const call = service.tacho.guard((_: { at: Date }) => 'ran', { name: 'refund' })
  const error = await service.tacho.run(RUN, () => blockedBy(call({ at: new Date() })))
  assert.deepEqual([error.code, error.inputHash], ['input_not_json', null])
  assert.deepEqual(await service.approvals(), [])
})

test('a failing condition counts by its severity and is recorded', async (t) => {
  const service = fake(t, { deployedPolicies: [policy('BLOCK', 'tool.input.nothing > 1.0')] })
  const { call } = refund(service)
  await service.tacho.run(RUN, () => blockedBy(call({ amount: 1 })))
  const { payload } = await service.assertEvent('POLICY_DECISION', { action: 'BLOCK' })
  assert.equal((payload['failures'] as unknown[]).length, 1)
})

test('a loop is reported once, and its action applies from then on', async (t) => {
  const service = fake(t, { guard: { loop: { calls: 3, action: 'BLOCK' } } })
  const { call, ran } = refund(service)
  await service.tacho.run(RUN, async () => {
    await call({ amount: 1 })
    await call({ amount: 1 })
    await call({ amount: 2 })
    assert.equal((await blockedBy(call({ amount: 1 }))).code, 'loop_detected')
    assert.equal((await blockedBy(call({ amount: 1 }))).code, 'loop_detected')
  })
  assert.equal(ran.length, 3)
  // Another run starts from zero.
  await service.tacho.run(RUN, () => call({ amount: 1 }))
  const loops = (await service.issues()).filter(({ detectionType }) => detectionType === 'LOOP_DETECTED')
  assert.deepEqual(
    loops.map(({ payload }) => payload),
    [{ toolName: 'refund', reasonCode: 'same_input' }],
  )
})

test('budgets count the calls, tokens and cost that the run recorded', async (t) => {
  const service = fake(t, { guard: { budget: { totalTokens: 100, action: 'REQUIRE_APPROVAL' } }, approvals: 'reject' })
  const { call } = refund(service)
  await service.tacho.run(RUN, async (run) => {
    run.llmCall({ model: 'm', usage: { promptTokens: 60, completionTokens: 40 } })
    await call({ amount: 1 })
    run.llmCall({ model: 'm', usage: { totalTokens: 1 } })
    assert.equal((await blockedBy(call({ amount: 2 }))).code, 'approval_rejected')
  })
  const [budget] = (await service.issues()).filter(({ detectionType }) => detectionType === 'BUDGET_EXCEEDED')
  assert.equal(budget?.payload['reasonCode'], 'totalTokens')
})

test('conditions can use the agent, usage and risk signals of the run', async (t) => {
  const condition = 'agent.id == "support-1" && run.toolCalls == 1 && run.cost > 0.5 && "injection" in risk.signals'
  const service = fake(t, { deployedPolicies: [policy('BLOCK', condition)] })
  const call = service.tacho.guard((_: object) => 'ok', { name: 'x', riskSignals: () => ['injection'] })
  await service.tacho.run(RUN, async (run) => {
    await call({})
    run.llmCall({ cost: 0.75 })
    await blockedBy(call({ again: true }))
  })
})

test('decide returns and records the decision, and runs nothing', async (t) => {
  const service = fake(t, { deployedPolicies: [policy('BLOCK')] })
  const decision = await service.tacho.run(RUN, () => service.tacho.decide({ toolName: 'refund', input: {} }))
  assert.deepEqual([decision.action, decision.policyIds], ['BLOCK', ['p-block']])
  assert.equal(decision.inputHash, inputHash('refund', {}))
  await service.assertDecision({ action: 'BLOCK' })
  assert.equal((await service.issues())[0]?.detectionType, 'TOOL_BLOCKED')
})

test('a guarded tool keeps its arguments and result; policies see its configured input', async (t) => {
  const service = fake(t, { deployedPolicies: [policy('BLOCK', 'tool.input.total > 10.0')] })
  const add = service.tacho.guard((a: number, b: number) => a + b, { name: 'add', input: (a, b) => ({ total: a + b }) })
  await service.tacho.run(RUN, async () => {
    const sum: number = await add(1, 2)
    assert.equal(sum, 3)
    await blockedBy(add(10, 2))
  })
})

test('the guard decides outside a run too', async (t) => {
  const service = fake(t, { deployedPolicies: [policy('BLOCK')] })
  const { call, ran } = refund(service)
  await blockedBy(call({ amount: 1 }))
  assert.deepEqual(ran, [])
})

for (const [name, opaque] of Object.entries({
  date: new Date(0),
  bigint: 1n,
  surrogate: '\ud800',
  map: new Map([[1, 2]]),
})) {
  test(`an input without a hash (${name}) runs only unchanged`, async (t) => {
    const service = fake(t, { deployedPolicies: [policy('BLOCK', 'tool.name == "other"')] })
    const input = { amount: 1, opaque }
    const ran: number[] = []
    let reads = 0
    const act = () => ran.push(input.amount)
    const steady = service.tacho.guard(act, { name: 'refund', input: () => input })
    const growing = service.tacho.guard(act, { name: 'refund', input: () => ({ ...input, amount: ++reads }) })
    const error = await service.tacho.run(RUN, async () => {
      await steady()
      return blockedBy(growing())
    })
    assert.deepEqual([error.code, ran], ['input_changed', [1]])
  })
}

test('an input that is not plain JSON may not change in what it holds', async (t) => {
  const service = fake(t, { deployedPolicies: [policy('BLOCK', 'tool.name == "other"')] })
  const at = new Date(0)
  const bytes = new Uint8Array(1)
  const values = new Map([[1, 2]])
  const change = {
    bytes: () => bytes.fill((bytes[0] ?? 0) + 1),
    date: () => at.setTime(at.getTime() + 1),
    map: () => values.set(1, (values.get(1) ?? 0) + 1),
  }
  for (const act of Object.values(change)) {
    const input = () => (act(), { at, bytes, values })
    const call = service.tacho.guard(() => assert.fail('the tool ran'), { name: 'refund', input })
    assert.equal((await service.tacho.run(RUN, () => blockedBy(call()))).code, 'input_changed')
  }
})
