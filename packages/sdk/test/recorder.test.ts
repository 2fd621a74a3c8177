/** `Recorder`, the small entry, records like `Tacho`, but has no guards, prompts or issue records. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tacho, type TachoOptions } from '../src/index.ts'
import { recordClient } from '../src/integrations/openai.ts'
import { Recorder } from '../src/record.ts'
import { acceptAll, simulate } from './simulation.ts'

const OPTIONS = { apiKey: 'key', baseUrl: 'http://tacho.test', compression: 'never', agentName: 'small' } as const

function recorder(more: TachoOptions = {}) {
  const simulation = simulate(acceptAll)
  const codes: string[] = []
  const tacho = new Recorder({ ...OPTIONS, ...more, onDiagnostic: ({ code }) => codes.push(code) }, simulation.runtime)
  const events = async () => {
    await simulation.pass(2_000)
    return simulation.requests.flatMap((request) => request.events)
  }
  return { ...simulation, tacho, codes, events }
}

test('a Recorder records what Tacho records', async () => {
  const small = recorder()
  const whole = simulate(acceptAll)
  const clients = [small.tacho, new Tacho({ ...OPTIONS, onDiagnostic: () => undefined }, whole.runtime)]
  for (const tacho of clients) {
    const failing = tacho.run({ runId: 'r', sessionId: 's' }, (run) => {
      run.userInput('my key is sk-AbCdEf0123456789AbCdEf')
      run.span('search', (span) => span.set({ hits: 1 }))
      run.llmCall({ model: 'm', usage: { promptTokens: 1 } })
      tacho.record({ type: 'NOTE', label: 'inside' })
      run.score('helpful', true)
      throw new RangeError('on purpose')
    })
    await assert.rejects(failing, RangeError)
    void tacho.withRun(() => 1)
    tacho.score('r', 'good', 3, 'later')
  }
  await whole.pass(2_000)
  const [fromSmall, fromWhole] = [await small.events(), whole.requests.flatMap(({ events }) => events)].map((events) =>
    events.map(({ eventType, label, payload }) => {
      const { exception: _, ...others } = payload as Record<string, unknown>
      return { eventType, label, payload: others }
    }),
  )
  assert.deepEqual(fromSmall, fromWhole)
  assert.equal(fromSmall?.length, 8)
  assert.deepEqual(fromSmall?.[0]?.payload, { text: 'my key is [masked:credential]' })
})

test('the integrations that record take a Recorder, also where a call of a model never ran', async () => {
  const { tacho, events } = recorder()
  const answer = (message: object, finish: string) => ({
    model: 'm',
    choices: [{ message: { role: 'assistant', ...message }, finish_reason: finish }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  })
  const cut = { id: 'call_1', type: 'function', function: { name: 'pay', arguments: '{"amount": 5' } }
  const answers = [answer({ tool_calls: [cut] }, 'length'), answer({ content: 'done' }, 'stop')]
  const client = recordClient({ chat: { completions: { create: async (_: object) => answers.shift() } } }, tacho)
  await tacho.run(async () => {
    await client.chat.completions.create({ model: 'm', messages: [], tools: [{ function: { name: 'pay' } }] })
    const tried = { role: 'assistant', tool_calls: [cut] }
    const told = { role: 'tool', tool_call_id: 'call_1', content: 'The call was cut.' }
    await client.chat.completions.create({ model: 'm', messages: [tried, told] })
  })
  const recorded = (await events()).map(({ eventType, payload }) => [
    eventType,
    (payload as { outcome?: string }).outcome,
  ])
  assert.deepEqual(
    recorded.filter(([type]) => type !== 'TOOL_CALL'),
    [
      ['LLM_CALL', undefined],
      ['LLM_CALL', undefined],
      ['SESSION_OUTCOME', undefined],
    ],
  )
  assert.deepEqual(
    recorded.filter(([type]) => type === 'TOOL_CALL'),
    [['TOOL_CALL', 'never_ran']],
  )
})

test('a handle passes through a Recorder with all that guards need of it', async () => {
  const approvals = [
    { approvalId: 'a', toolName: 'pay', inputHash: 'f'.repeat(64), key: 0, expiresAt: null, args: [5] },
  ]
  const carried = {
    clientId: 'first',
    used: { toolCalls: 2, totalTokens: 7, cost: 1.5, seconds: 3 },
    recentCalls: ['x'],
    spentApprovals: { ['e'.repeat(64)]: 1 },
    approvals,
  }
  const { tacho } = recorder()
  const handle = { runId: 'r', agentName: 'small', parentSpanId: '0'.repeat(16), ...carried }
  const {
    runId,
    parentSpanId: _,
    sessionId: __,
    agentId: ___,
    agentName: ____,
    ...passed
  } = tacho.resume(handle).toHandle()
  assert.equal(runId, 'r')
  assert.deepEqual(passed, carried)
  const own = tacho.startRun({ runId: 'own' }).toHandle()
  const { approvals: none, used } = new Tacho(OPTIONS, simulate(acceptAll).runtime).resume(own).toHandle()
  assert.deepEqual([none, used], [undefined, { toolCalls: 0, totalTokens: 0, cost: 0, seconds: used?.seconds }])
})

test('what a Recorder lacks is said, not done in silence', async () => {
  const { tacho, codes } = recorder({ spool: '/nowhere' })
  await tacho.ready()
  assert.deepEqual(codes, ['spool_failed'])
  assert.ok(!('guard' in tacho) && !('prompt' in tacho))
  assert.deepEqual(await tacho.shutdown(), { sent: 0, rejected: 0, dropped: 0, left: 0 })
})

test('options that only Tacho has are named, with where to find it', async () => {
  for (const [more, code] of [
    [{ configuration: {} }, 'invalid_option'],
    [{ guard: {} }, 'invalid_option'],
    [{ spool: '/tmp/never-made' }, 'spool_failed'],
  ] as const) {
    const said: string[] = []
    const onDiagnostic = ({ code: of, message }: { code: string; message: string }) => said.push(`${of} ${message}`)
    const options: TachoOptions = { ...OPTIONS, ...more, onDiagnostic }
    const tacho = new Recorder(options, simulate(acceptAll).runtime)
    await tacho.shutdown()
    assert.deepEqual(said, [`${code} ${Object.keys(more)[0]} needs Tacho from @tacho/sdk.`])
  }
})
