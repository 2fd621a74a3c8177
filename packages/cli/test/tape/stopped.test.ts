/** Tapes of runs with calls that a policy's message, labels or a stop refused. The replay refuses them in the same words. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  answerJson,
  chatAnswer,
  startScriptedModel,
  type ScriptedModel,
} from '../../../guards/test/wire/scripted-model.ts'
import { Tacho } from '@tacho/sdk'
import { fakeTacho } from '@tacho/sdk/testing'
import { interpreter, PYTHON_SDK, withoutPython } from '../../../sdk-conformance/test/python.ts'
import { ReplayHost } from '../../src/record/tape/host.ts'
import { recordedSteps, type Decided } from '../../src/record/tape/recorded-steps.ts'
import type { Tape } from '../../src/record/tape/tape.ts'
import { API_KEY, ended, OPERATOR_TOKEN, startServer, startTacho, type TestServer } from '../tacho.ts'
import { madeTape, readBack } from './made-tape.ts'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const AGENTS = [
  [process.execPath, here('refund-agent.ts')],
  ...(withoutPython ? [] : [[interpreter, here('refund_agent.py')]]),
]
const STRICT = { mode: 'strict', ignored: [] } as const
const PROMPT = 'Refund order 1.'
const manifest = (labels: string) => `
workspace: default
labels: ${labels}
policies:
  large:
    condition: '"money" in tool.labels && tool.input.amount > 10.0'
    severity: HIGH
    action: BLOCK
    message: Refunds above 10 are made by a colleague.
environments:
  development: { policies: [large] }
`

let server: TestServer
let folder: string
let model: ScriptedModel
/** Runs before the model asks for the refund. */
let beforeRefund = async (): Promise<unknown> => undefined
before(async () => {
  server = await startServer()
  folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-stopped-'))
  await apply('[{ tool: refund, does: [money] }]')
  model = await startScriptedModel(async ({ body }, response) => {
    const { messages } = JSON.parse(body.toString()) as { messages: { role: string }[] }
    const results = messages.filter(({ role }) => role === 'tool').length
    if (results === 1) await beforeRefund()
    const calls = [
      { id: 'c1', name: 'get_order', args: '{"order":1}' },
      { id: 'c2', name: 'refund', args: '{"order":1,"amount":30}' },
    ].slice(results, results + 1)
    answerJson(response, chatAnswer(results < 2 ? null : 'I could not.', calls))
  })
})
after(async () => {
  await model.close()
  await server.stop()
  rmSync(folder, { recursive: true })
})

async function apply(labels: string): Promise<void> {
  const file = path.join(folder, 'tacho.yaml')
  writeFileSync(file, manifest(labels))
  await server.text('apply', '-f', file, '--yes', '--prune')
}

/** Number of clients that have the configuration with the stop. */
async function confirmed(): Promise<number> {
  const [environment] = (await server.json<{ items: { id: string }[] }>('environments', 'list')).items
  const reply = await fetch(`${server.url}/operator/v1/environments/${environment?.id}/clients?limit=1`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
  })
  return ((await reply.json()) as { counts: { current: number } }).counts.current
}

/** Records a run, and writes its tape. */
async function tapeOf(name: string, [program = '', ...args]: readonly string[]): Promise<Tape['head']> {
  const env = {
    ...process.env,
    TACHO_URL: server.url,
    TACHO_API_KEY: API_KEY,
    OPENAI_BASE_URL: `${model.origin}/v1`,
    PYTHONPATH: path.join(PYTHON_SDK, 'src'),
  }
  const { code, stderr } = await ended(spawn(program, [...args, PROMPT], { env, stdio: 'pipe' }))
  assert.equal(code, 0, stderr)
  const { items } = await server.json<{ items: { runId: string }[] }>('runs', 'list')
  const file = path.join(folder, `${name}.jsonl`)
  await server.text('tape', String(items[0]?.runId), '-o', file)
  return JSON.parse(readFileSync(file, 'utf8').split('\n')[0] ?? '') as Tape['head']
}

async function replayed(name: string, agent: readonly string[], options: readonly string[] = []): Promise<string> {
  const words = ['replay', path.join(folder, `${name}.jsonl`), '--ignore', 'tool.input.requestId', ...options, '--']
  const variables = { ...server.variables, PYTHONPATH: path.join(PYTHON_SDK, 'src') }
  return (await ended(startTacho([...words, ...agent, PROMPT], variables))).stdout
}

test('a call that labels and a policy with a message refused is refused in the same words', async () => {
  const head = await tapeOf('labelled', AGENTS[0] ?? [])
  assert.deepEqual([head.replayable, head.labels], [true, [{ tool: 'refund', does: ['money'] }]])
  assert.match(String(head.policies[0]?.description), /^Message: Refunds above 10/)
  for (const agent of AGENTS) assert.match(await replayed('labelled', agent), /^Same: \d+ steps, COMPLETED\.\n$/)
  // Policies and labels of an environment, and of a file.
  await apply('[]')
  for (const options of [
    ['--policies-of', 'development'],
    ['--policies', path.join(folder, 'tacho.yaml')],
  ]) {
    const said = await replayed('labelled', AGENTS[0] ?? [], options)
    assert.match(said, /went another way:\n.*the agent asks refund \{"order":1,"amount":30\}/)
    const place = path.join(folder, 'labelled.jsonl')
    const words = ['test', place, '--ignore', 'tool.input.requestId', ...options, '--', ...(AGENTS[0] ?? []), PROMPT]
    const tested = await ended(startTacho(words, server.variables))
    assert.equal(tested.code, 1, tested.stderr)
    assert.match(tested.stdout, /✗ .*labelled\.jsonl\n.*the agent asks refund \{"order":1,"amount":30\}/)
  }
})

test('a run that was stopped in its middle becomes a tape, and its replay is stopped at the same call', async () => {
  for (const [at, agent] of AGENTS.entries()) {
    let stop = ''
    beforeRefund = async () => {
      const made = await server.json<{ id: string }>(
        'stop',
        'agent',
        'Refunds',
        '--reason',
        'It pays twice',
        '--wait',
        '1',
      )
      stop = made.id
      // Wait for one client: only the agent loads the configuration again.
      while ((await confirmed()) === 0) await sleep(50)
    }
    const head = await tapeOf(`stopped-${at}`, agent)
    assert.equal(head.replayable, true)
    const policy = head.policies.find(({ policyId }) => policyId === `stop:${stop}`)
    assert.deepEqual([policy?.condition, policy?.action], ['run.toolCalls >= 1', 'BLOCK'])
    assert.match(String(policy?.description), /^Message: Stopped by first token\. Reason: It pays twice$/)
    beforeRefund = async () => undefined
    await server.text('resume', 'agent', 'Refunds')
    for (const one of AGENTS) assert.match(await replayed(`stopped-${at}`, one), /^Same: \d+ steps, COMPLETED\.\n$/)
  }
})

test('a call that was approved, and blocked by a stop that came meanwhile, is asked for again before it is blocked', async () => {
  const policy = (policyId: string, condition: string, action: string) =>
    ({ policyId, name: policyId, version: '1', condition, severity: 'HIGH', action }) as const
  const held = policy('held', 'tool.name == "refund"', 'REQUIRE_APPROVAL')
  const stop = policy('stop:1', 'run.toolCalls >= 2', 'BLOCK')
  const agent = async (tacho: Tacho, ran: number[]) => {
    const refund = tacho.guard(({ order }: { order: number }) => void ran.push(order), { name: 'refund' })
    const look = tacho.guard((_: object) => 'seen', { name: 'look' })
    await tacho.run(async () => {
      await look({})
      await refund({ order: 1 })
      for (const order of [2, 3]) await refund({ order }).catch(() => undefined)
    })
  }
  const approved: string[] = []
  const approvals = ({ id }: { id: string }) => {
    approved.push(id)
    if (approved.length === 2) fake.setPolicies([held, stop])
    return 'approve' as const
  }
  const fake = fakeTacho({ agentName: 'A', deployedPolicies: [held], approvals })
  const recordedCalls: number[] = []
  await agent(fake.tacho, recordedCalls)
  assert.deepEqual([recordedCalls, approved.length], [[1], 2])
  const decided: Decided = new Map(approved.map((id) => [id, { status: 'APPROVED', decisionReason: null }]))
  const { steps, obstacles } = recordedSteps(await fake.events(), decided)
  await fake.close()
  assert.deepEqual(obstacles, [])
  const host = new ReplayHost(readBack(madeTape(steps, { agent: 'A', policies: [held, stop] })), STRICT)
  process.env['TACHO_REPLAY'] = await host.start()
  const ran: number[] = []
  try {
    const tacho = new Tacho({ apiKey: 'replay', agentName: 'A' })
    await agent(tacho, ran)
    await tacho.shutdown()
    assert.deepEqual([host.result().departure?.sentence, ran], [undefined, []])
  } finally {
    delete process.env['TACHO_REPLAY']
    await host.close()
  }
})

test('a call that was approved, and that a stop kept from running, does not run in a replay, and is no difference', async () => {
  const held = { policyId: 'held', name: 'held', version: '1', condition: 'true', severity: 'HIGH' } as const
  const policies = [{ ...held, action: 'REQUIRE_APPROVAL' }]
  const input = { order: 1 }
  const at = (step: number, from: number) => ({ step, from, to: from })
  const asked = { kind: 'decision', tool: 'refund', action: 'REQUIRE_APPROVAL', input } as const
  const approved = { kind: 'approval', tool: 'refund', status: 'APPROVED' } as const
  const ran = { ...at(3, 2), to: 3, kind: 'tool', tool: 'refund', input, outcome: 'returned', output: 'paid' } as const
  const end = { kind: 'end', status: 'COMPLETED' } as const
  const before: Tape['steps'] = [
    { ...at(1, 1), ...asked, policies: ['held'] },
    { ...at(2, 1), ...approved },
  ]
  for (const [steps, outcome] of [
    [[...before, { ...at(3, 2), ...end }], /approval_unavailable/],
    [[...before, ran, { ...at(4, 4), ...end }], /^paid$/],
  ] as [Tape['steps'], RegExp][]) {
    const host = new ReplayHost(readBack(madeTape(steps, { agent: 'A', policies })), STRICT)
    process.env['TACHO_REPLAY'] = await host.start()
    try {
      const tacho = new Tacho({ apiKey: 'replay', agentName: 'A', onDiagnostic: () => undefined })
      const refund = tacho.guard((_: { order: number }): unknown => assert.fail('it ran'), { name: 'refund' })
      assert.match(String(await tacho.run(() => refund(input).catch(String))), outcome)
      await tacho.shutdown()
      assert.equal(host.result().departure?.sentence, undefined)
    } finally {
      delete process.env['TACHO_REPLAY']
      await host.close()
    }
  }
})
