/** Start and end of calls in the hooks of a coding agent, also of calls without a hook after them. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { AgentName } from '../../src/hook/agents.ts'
import { allowPlainCall } from '../../src/hook/session/plain-calls.ts'
import { readRecord } from '../../src/hook/record.ts'
import { runHook } from '../../src/hook/run-hook.ts'
import { stateDirectory } from '../../src/state.ts'
import { ended, startTacho } from '../../../cli/test/tacho.ts'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { startGuardedServer, type GuardedServer, type RecordedEvent } from '../guarded-server.ts'

const COMMAND = 'has(tool.input.command) && tool.input.command'

let server: GuardedServer
let directory: string
let account: { url: string; apiKey: string }
before(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'tacho-life-'))
  process.env['TACHO_STATE_DIR'] = directory
  server = await startGuardedServer()
  const { TACHO_URL: url = '', TACHO_API_KEY: apiKey = '' } = server.variables
  account = { url, apiKey }
  await server.deploy({
    'no-rm': { condition: `${COMMAND}.startsWith("rm ")`, action: 'BLOCK' },
    'ask-push': { condition: `${COMMAND}.startsWith("push")`, action: 'REQUIRE_APPROVAL' },
  })
})
after(async () => {
  delete process.env['TACHO_STATE_DIR']
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

type Hook = (event: string, fields?: object) => Promise<string>

/** A session, whose hooks run in this process as their program runs them. */
function session(id: string, agent: AgentName = 'claude-code'): Hook {
  let count = 0
  return async (event, fields = {}) => {
    const common = { session_id: id, hook_event_name: event, cwd: directory, turn_id: `turn-${++count}` }
    const record = readRecord(agent, JSON.stringify({ ...common, ...fields }))
    assert.ok(record)
    if (record.event === 'PreToolUse' && allowPlainCall(account, agent, record)) return ''
    const more = { approvalTimeoutMs: 1_000, unconfigured: 'deny', isProject: false, isManaged: false } as const
    return runHook(account, record, { agent, ...more })
  }
}

const bash = (command: string, id: string) => ({ tool_name: 'Bash', tool_input: { command }, tool_use_id: id })

interface Seen extends RecordedEvent {
  spanId: string
  parentSpanId: string | null
}

const sorted = <Each>(list: Each[]) => list.toSorted((a, b) => (String(a) < String(b) ? -1 : 1))
const seen = async (runId: string) => (await server.events(runId)) as Seen[]
const calls = (events: Seen[]) =>
  events
    .filter(({ eventType }) => eventType.startsWith('TOOL_'))
    .map(({ eventType, payload }) => [eventType, payload['toolCallId'], payload['outcome'] ?? null])

test('a call that never reports back is started, and closed by the next prompt; one beside it returns', async () => {
  const hook = session('prompt')
  await hook('SessionStart', { source: 'startup' })
  await Promise.all([hook('PreToolUse', bash('sleep 9', 't-1')), hook('PreToolUse', bash('ls', 't-2'))])
  await hook('PostToolUse', { ...bash('ls', 't-2'), tool_response: 'a' })
  await hook('UserPromptSubmit', { prompt: '' })
  assert.deepEqual(
    calls(await seen('prompt')).filter(([, id]) => id === 't-1'),
    [['TOOL_START', 't-1', null]],
  )
  await hook('UserPromptSubmit', { prompt: 'Go on.' })
  const events = await seen('prompt')
  assert.deepEqual(sorted(calls(events)), [
    ['TOOL_CALL', 't-1', 'did_not_report'],
    ['TOOL_CALL', 't-2', 'returned'],
    ['TOOL_START', 't-1', null],
    ['TOOL_START', 't-2', null],
  ])
  const [start, end] = events.filter(({ payload }) => payload['toolCallId'] === 't-1')
  assert.equal(start?.spanId, end?.spanId)
  assert.equal(end?.payload['startEventId'], start?.eventId)
  assert.deepEqual(end?.payload['input'], { command: 'sleep 9' })
  // The hook after the tool comes late, and corrects the end.
  await hook('PostToolUse', { ...bash('sleep 9', 't-1'), tool_response: 'done' })
  assert.deepEqual(calls(await seen('prompt')).at(-1), ['TOOL_CALL', 't-1', 'returned'])
})

test('the end of a session closes what is open; a refused call never started', async () => {
  const hook = session('end')
  await hook('PreToolUse', bash('make', 't-1'))
  assert.match(await hook('PreToolUse', bash('rm x', 't-2')), /deny/)
  await hook('SessionEnd', { reason: 'other' })
  const events = await seen('end')
  assert.deepEqual(calls(events), [
    ['TOOL_START', 't-1', null],
    ['TOOL_CALL', 't-1', 'did_not_report'],
  ])
  assert.equal(events.at(-1)?.eventType, 'SESSION_OUTCOME')
})

const REJECTED =
  "The user doesn't want to proceed with this tool use. The tool use was rejected. STOP what you are doing and wait."

/** The line of a declined call in the session file of each agent. */
const DECLINED: Partial<Record<AgentName, (id: string) => object>> = {
  'claude-code': (id) => ({
    sessionId: 'declined-claude-code',
    message: { content: [{ type: 'tool_result', tool_use_id: id, is_error: true, content: REJECTED }] },
  }),
  codex: (id) => ({
    type: 'response_item',
    payload: { type: 'function_call_output', call_id: id, output: 'exec command rejected by user' },
  }),
}

for (const [agent, line] of Object.entries(DECLINED) as [AgentName, (id: string) => object][]) {
  test(`${agent}: a call that its person declines never ran, and opens no issue`, async () => {
    const hook = session(`declined-${agent}`, agent)
    const transcript_path = path.join(directory, `${agent}.jsonl`)
    const call = bash('git clean', 't-1')
    await hook('PreToolUse', { ...call, transcript_path })
    await hook('PermissionRequest', { ...call, transcript_path })
    writeFileSync(transcript_path, `{}\nno JSON\n${JSON.stringify(line('t-1'))}\n`)
    await hook('UserPromptSubmit', { prompt: 'Do not', transcript_path })
    const [declined, ...others] = (await seen(`declined-${agent}`)).filter(({ eventType }) =>
      eventType.startsWith('TOOL_'),
    )
    assert.deepEqual([declined?.eventType, others], ['TOOL_CALL', []])
    assert.partialDeepStrictEqual(declined?.payload, {
      toolName: 'Bash',
      toolCallId: 't-1',
      outcome: 'never_ran',
      reasonCode: 'declined',
      arguments: '{"command":"git clean"}',
    })
    const { items } = await server.operator.listIssues({ params: { environmentId: server.environmentId } })
    assert.ok(!items.some(({ title }) => /git clean|declined/.test(title)))
  })
}

test('the program dies while a tool runs: a hook of another session records the start, and a day later the end', async () => {
  await session('dead')('PreToolUse', bash('make', 't-1'))
  const other = session('other')
  await other('SessionStart', { source: 'startup' })
  assert.deepEqual(calls(await seen('dead')), [['TOOL_START', 't-1', null]])
  const now = Date.now
  Date.now = () => now() + 25 * 3_600_000
  try {
    await other('SessionStart', { source: 'startup' })
  } finally {
    Date.now = now
  }
  assert.deepEqual(calls(await seen('dead')).at(-1), ['TOOL_CALL', 't-1', 'did_not_report'])
})

test('equal calls of an agent without ids are two calls', async () => {
  const hook = session('no-ids', 'qwen-code')
  const call = { tool_name: 'run_shell_command', tool_input: { command: 'ls' } }
  await hook('PreToolUse', call)
  await new Promise((resolve) => setTimeout(resolve, 2))
  await hook('PreToolUse', call)
  await hook('PostToolUse', { ...call, tool_response: 'a' })
  await hook('UserPromptSubmit', { prompt: '' })
  await hook('PostToolUse', { ...call, tool_response: 'b' })
  const events = (await seen('no-ids')).filter(({ eventType }) => eventType.startsWith('TOOL_'))
  assert.equal(new Set(events.map(({ spanId }) => spanId)).size, 2)
  const types = calls(events).map(([type]) => type)
  assert.deepEqual(sorted(types), ['TOOL_CALL', 'TOOL_CALL', 'TOOL_START', 'TOOL_START'])
})

test('an interrupted call is cancelled, and opens no issue', async () => {
  const hook = session('esc')
  await hook('PreToolUse', bash('sleep 9', 't-1'))
  await hook('PostToolUseFailure', { ...bash('sleep 9', 't-1'), error: 'Interrupted', is_interrupt: true })
  await hook('PreToolUse', bash('sleep 8', 't-2'))
  await hook('PostToolUse', { ...bash('sleep 8', 't-2'), tool_response: { stdout: '', interrupted: true } })
  const codex = session('esc-codex', 'codex')
  await codex('PreToolUse', bash('sleep 9', 't-3'))
  await codex('Interrupt')
  assert.deepEqual(
    calls([...(await seen('esc')), ...(await seen('esc-codex'))]).filter(([type]) => type === 'TOOL_CALL'),
    ['t-1', 't-2', 't-3'].map((id) => ['TOOL_CALL', id, 'cancelled']),
  )
  const { operator, environmentId } = server
  const { items } = await operator.listIssues({ params: { environmentId } })
  assert.deepEqual(
    items.filter(({ detectionType }) => detectionType === 'TOOL_FAILED'),
    [],
  )
})

const agentCall = (id: string, prompt: string) => ({
  tool_name: 'Agent',
  tool_input: { prompt, subagent_type: 'Explore' },
  tool_use_id: id,
})
const sub = (id: string) => ({ agent_id: id, agent_type: 'Explore' })

/** The tool calls that contain an event, the nearest first. */
function above(events: Seen[], { parentSpanId }: Seen): unknown[] {
  const of = events.filter(({ spanId }) => spanId === parentSpanId)
  const [event] = of
  if (!event) return []
  const call = of.find(({ eventType }) => eventType === 'TOOL_START')
  return [...(call ? [call.payload['toolCallId']] : []), ...above(events, event)]
}

test('two sub-agents of one kind at once, and one below another, are joined with their calls', async () => {
  const hook = session('agents')
  await hook('PreToolUse', agentCall('t-1', 'one'))
  await hook('PreToolUse', agentCall('t-2', 'two'))
  await hook('SubagentStart', sub('a-2'))
  await hook('SubagentStart', sub('a-1'))
  await hook('PreToolUse', { ...bash('ls', 't-3'), ...sub('a-1') })
  await hook('PreToolUse', { ...bash('pwd', 't-4'), ...sub('a-2') })
  await hook('PreToolUse', { ...agentCall('t-5', 'three'), ...sub('a-2') })
  await hook('SubagentStart', sub('a-3'))
  await hook('PreToolUse', { ...bash('date', 't-6'), ...sub('a-3') })
  await hook('UserPromptSubmit', { prompt: 'Meanwhile.' })
  await hook('PostToolUse', { ...bash('date', 't-6'), ...sub('a-3'), tool_response: '' })
  await hook('SubagentStop', sub('a-3'))
  await hook('PostToolUse', { ...agentCall('t-5', 'three'), ...sub('a-2'), tool_response: { agentId: 'a-3' } })
  await hook('SubagentStop', sub('a-1'))
  await hook('PostToolUse', { ...agentCall('t-1', 'one'), tool_response: 'no id' })
  await hook('SubagentStop', sub('a-2'))
  await hook('PostToolUse', { ...agentCall('t-2', 'two'), tool_response: 'no id' })
  await hook('SessionEnd', { reason: 'other' })
  const events = await seen('agents')
  const start = (id: string) =>
    events.find((each) => each.eventType === 'TOOL_START' && each.payload['toolCallId'] === id)
  const places = ['t-3', 't-4', 't-6'].map((id) => above(events, start(id) as Seen))
  assert.deepEqual(places, [['t-1'], ['t-2'], ['t-5', 't-2']])
  assert.equal(start('t-6')?.payload['agent'], 'Explore')
  const handoffs = events.filter(({ eventType }) => eventType === 'HANDOFF').map(({ payload }) => payload)
  assert.deepEqual(sorted(handoffs.map(({ from, to, toolCallId }) => [toolCallId, from, to])), [
    ['t-1', 'claude-code', 'Explore'],
    ['t-2', 'claude-code', 'Explore'],
    ['t-5', 'Explore', 'Explore'],
  ])
  assert.deepEqual(
    calls(events).filter(([type, id]) => type === 'TOOL_CALL' && id === 't-3'),
    [['TOOL_CALL', 't-3', 'did_not_report']],
  )
})

for (const [signal, reason] of [
  ['SIGTERM', 'cancelled'],
  ['SIGKILL', 'process_ended'],
] as const) {
  test(`the agent stops a hook that waits for a person by ${signal}: the request is withdrawn`, async () => {
    const id = `stopped-${signal}`
    const hook = session(id)
    await hook('UserPromptSubmit', { prompt: 'Push.' })
    const child = startTacho(['hook', 'claude-code'], { ...server.variables, TACHO_STATE_DIR: directory })
    const end = ended(child)
    const call = { session_id: id, hook_event_name: 'PreToolUse', cwd: directory, ...bash(`push ${signal}`, 't-1') }
    child.stdin?.end(JSON.stringify(call))
    const { operator, environmentId } = server
    const approval = await eventually(async () => {
      const query = { status: 'PENDING' } as const
      const { items } = await operator.listApprovals({ params: { environmentId }, query })
      const own = items.find(({ runId }) => runId === id)
      return existsSync(path.join(stateDirectory(account), 'asked', `${own?.id}.json`)) ? own : undefined
    }, 'the approval')
    child.kill(signal)
    assert.doesNotMatch((await end).stdout, /^\{\}/)
    await hook('UserPromptSubmit', { prompt: 'Go on.' })
    await hook('SessionEnd', { reason: 'other' })
    const events = await seen(id)
    const withdrawn = events.find(({ eventType }) => eventType === 'APPROVAL_WITHDRAWN')?.payload
    const decision = events.find(({ eventType }) => eventType === 'POLICY_DECISION')?.payload
    assert.deepEqual(
      [withdrawn?.['approvalId'], withdrawn?.['toolCallId'], withdrawn?.['reason'], withdrawn?.['inputHash']],
      [approval.id, 't-1', reason, decision?.['inputHash']],
    )
    assert.equal(decision?.['toolCallId'], 't-1')
    assert.deepEqual(calls(events), [])
  })
}

test('files of calls that ended are deleted', async () => {
  const folder = path.join(stateDirectory(account), 'calls')
  const hook = session('files')
  const before = readdirSync(folder).length
  await hook('PreToolUse', bash('ls', 't-1'))
  assert.equal(readdirSync(folder).length, before + 1)
  await hook('PostToolUse', { ...bash('ls', 't-1'), tool_response: '' })
  assert.equal(readdirSync(folder).length, before)
  const old = Date.now() / 1_000 - 3 * 86_400
  for (const name of readdirSync(folder)) utimesSync(path.join(folder, name), old, old)
  await hook('SessionStart', { source: 'startup' })
  assert.deepEqual(readdirSync(folder), [])
})
