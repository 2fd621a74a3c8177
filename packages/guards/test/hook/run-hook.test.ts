/** `tacho hook`: real child processes with records as Claude Code 2.1 and Codex 0.169 document them, on a real Tacho. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { randomUUID } from 'node:crypto'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { startGuardedServer, type GuardedServer, type RecordedEvent } from '../guarded-server.ts'
import { ended, runTacho, startTacho, type Ended } from '../../../cli/test/tacho.ts'

type Agent = 'claude-code' | 'codex'

let server: GuardedServer
let directory: string
before(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'tacho-hook-'))
  server = await startGuardedServer()
  await server.deploy({
    'no-rm': { condition: 'tool.name == "Bash" && tool.input.command.contains("rm -rf")', action: 'BLOCK' },
    'ask-push': {
      condition: 'tool.name == "Bash" && tool.input.command.startsWith("git push")',
      action: 'REQUIRE_APPROVAL',
    },
    'three-calls': { condition: 'tool.name == "Count" && run.toolCalls >= 3', action: 'BLOCK' },
    'warn-curl': { condition: 'tool.name == "Bash" && tool.input.command.contains("curl")', action: 'WARN' },
  })
})
after(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

interface Session {
  id: string
  /** Runs the hook with this event; what it printed as JSON, null for nothing. */
  hook: (
    event: string,
    fields?: object,
    more?: { args?: string[]; variables?: Record<string, string> },
  ) => Promise<Answer>
  tool: (command: string, id: string) => { tool_name: string; tool_input: object; tool_use_id: string }
}

interface Answer extends Ended {
  answer: {
    systemMessage?: string
    hookSpecificOutput?: { hookEventName: string; permissionDecision: string; permissionDecisionReason: string }
  } | null
}

let sessions = 0

function session(agent: Agent = 'claude-code', state = path.join(directory, 'state')): Session {
  const id = `session-${++sessions}`
  const common = {
    session_id: id,
    transcript_path: path.join(directory, 'none.jsonl'),
    cwd: directory,
    permission_mode: 'default',
  }
  return {
    id,
    async hook(event, fields = {}, { args = [], variables = {} } = {}) {
      const record = {
        ...common,
        ...(agent === 'codex' && { model: 'gpt-5', turn_id: 'turn-1' }),
        hook_event_name: event,
        ...fields,
      }
      const own = { ...server.variables, TACHO_STATE_DIR: state, HOME: directory, ...variables }
      const done = await runTacho(['hook', agent, ...args], own, JSON.stringify(record))
      return {
        ...done,
        answer: ['', '{}\n'].includes(done.stdout) ? null : (JSON.parse(done.stdout) as Answer['answer']),
      }
    },
    tool: (command, id) => ({ tool_name: 'Bash', tool_input: { command }, tool_use_id: id }),
  }
}

const brief = (events: readonly RecordedEvent[]) => events.map(({ eventType, label }) => `${eventType} ${label}`)
const denied = ({ answer }: Answer): string => {
  assert.equal(answer?.hookSpecificOutput?.hookEventName, 'PreToolUse')
  assert.equal(answer?.hookSpecificOutput?.permissionDecision, 'deny')
  return answer?.hookSpecificOutput?.permissionDecisionReason ?? ''
}

test('claude-code: a session becomes a run; a hook that runs twice counts once', async () => {
  const { id, hook, tool } = session()
  const started = await hook('SessionStart', { source: 'startup', model: 'claude-opus-5-5' })
  assert.deepEqual([started.code, started.stdout, started.stderr], [0, '', ''])
  const prompt = { prompt: 'List the files.', prompt_id: 'p-1' }
  await hook('UserPromptSubmit', prompt)
  await hook('UserPromptSubmit', prompt)
  await hook('UserPromptSubmit', { prompt: '' })
  assert.equal((await hook('PreToolUse', tool('ls', 't-1'))).answer, null, 'allowed: the rules of the agent go on')
  const done = { ...tool('ls', 't-1'), tool_response: { stdout: 'a.txt' }, duration_ms: 12 }
  await hook('PostToolUse', done)
  await hook('PostToolUse', done)
  await hook('PreToolUse', tool('false', 't-2'))
  await hook('PostToolUseFailure', { ...tool('false', 't-2'), error: 'exit 1', is_interrupt: false })
  await hook('Notification', { message: 'Waiting', notification_type: 'idle_prompt' })
  await hook('SubagentStop', {
    agent_id: 'a',
    agent_type: 'Explore',
    agent_transcript_path: '/x',
    stop_hook_active: false,
  })
  await hook('SomethingNew')
  await hook('Stop', { stop_hook_active: false, last_assistant_message: 'One file: a.txt.' })
  await hook('SessionEnd', { reason: 'prompt_input_exit' })
  const events = await server.events(id)
  assert.deepEqual(brief(events), [
    'AGENT_STEP session startup',
    'USER_INPUT user prompt',
    'TOOL_CALL Bash',
    'TOOL_CALL Bash',
    'AGENT_STEP notification',
    'AGENT_STEP end of Explore',
    'AGENT_STEP SomethingNew',
    'AGENT_STEP answer',
    'SESSION_OUTCOME session end',
  ])
  const [, , call, failure] = events.map(({ payload }) => payload)
  assert.deepEqual([call?.['input'], call?.['output'], call?.['latency']], [{ command: 'ls' }, { stdout: 'a.txt' }, 12])
  assert.match(String(call?.['inputHash']), /^[0-9a-f]{64}$/)
  assert.equal(failure?.['error'], 'exit 1')
  const run = (await server.runs()).find(({ runId }) => runId === id)
  assert.deepEqual([run?.status, run?.agent.name], ['COMPLETED', 'claude-code'])
})

test('policies see how many tools the session has called, although each hook is a process', async () => {
  const { hook } = session()
  const call = (id: number) => ({ tool_name: 'Count', tool_input: { id }, tool_use_id: `c-${id}` })
  await Promise.all([1, 2].map((id) => hook('PostToolUse', { ...call(id), tool_response: 'ok' })))
  assert.equal((await hook('PreToolUse', call(3))).answer, null, 'two calls')
  await hook('PostToolUseFailure', { ...call(3), error: 'no' })
  assert.match(denied(await hook('PreToolUse', call(4))), /A policy forbids/)
  assert.equal((await session().hook('PreToolUse', call(5))).answer, null, 'another session')
})

for (const agent of ['claude-code', 'codex'] as const) {
  test(`${agent}: BLOCK denies, WARN shows a message, and a person approves, rejects or does not answer`, async () => {
    const { id, hook, tool } = session(agent)
    assert.match(
      denied(await hook('PreToolUse', tool('rm -rf /', 't-1'))),
      /^The tool Bash was not run\. A policy forbids/,
    )
    const warned = await hook('PreToolUse', tool('curl example.com', 't-2'))
    assert.deepEqual(warned.answer, { systemMessage: 'Tacho warns about Bash: policy "warn-curl".' })
    const approving = hook('PreToolUse', tool('git push', 't-3'))
    const approvalId = await server.decideNext('Bash', 'APPROVED')
    assert.equal((await approving).answer, null)
    await hook('PostToolUse', { ...tool('git push', 't-3'), tool_response: 'ok' })
    const rejecting = hook('PreToolUse', tool('git push -f', 't-4'))
    await server.decideNext('Bash', 'REJECTED', 'Not on Fridays.')
    assert.match(denied(await rejecting), /A person rejected this call\. .*Not on Fridays\./)
    const args = ['--approval-timeout', '1']
    assert.match(denied(await hook('PreToolUse', tool('git push --tags', 't-5'), { args })), /got none in time/)
    await hook('Stop', { stop_hook_active: false, last_assistant_message: null })
    const events = await server.events(id)
    const call = events.find(({ eventType }) => eventType === 'TOOL_CALL')?.payload
    assert.equal(call?.['approvalId'], approvalId)
    assert.equal(typeof call?.['latency'], 'number', 'measured from the hook before the call')
    assert.equal(events.filter(({ eventType }) => eventType === 'POLICY_DECISION').length, 5)
  })
}

test('policies that were confirmed a moment ago decide without the service', async () => {
  let connections = 0
  const proxy = createServer((socket) => {
    connections++
    const up = connectTo(server.url)
    for (const each of [socket, up]) each.on('error', () => undefined)
    socket.pipe(up).pipe(socket)
    socket.on('close', () => up.destroy())
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  try {
    const state = path.join(directory, 'fresh-policies')
    const variables = { TACHO_URL: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` }
    const { hook, tool } = session('claude-code', state)
    const kept = await eventually(async () => {
      await hook('SessionStart', { source: 'startup' }, { variables })
      const [folder] = readdirSync(state).filter((name) => existsSync(path.join(state, name, 'configuration.json')))
      return folder && path.join(state, folder, 'configuration.json')
    }, 'the policies')
    const confirm = (agoMs: number): void => {
      const at = new Date(Date.now() - agoMs)
      const text = JSON.parse(readFileSync(kept, 'utf8')) as object
      writeFileSync(kept, JSON.stringify({ ...text, confirmedAt: at.getTime() }))
      utimesSync(kept, at, at)
    }
    // Ahead of the clock is not fresh, whoever set it.
    for (const [agoMs, isAsked] of [
      [0, false],
      [60_000, true],
      [-600_000, true],
    ] as const) {
      confirm(agoMs)
      connections = 0
      assert.match(denied(await hook('PreToolUse', tool('rm -rf /', `t${agoMs}`), { variables })), /A policy forbids/)
      assert.equal(connections > 0, isAsked, String(agoMs))
      // A hook that the service did not answer leaves a note.
      rmSync(path.join(path.dirname(kept), 'outage'), { force: true })
    }
    // So that a hook before a tool need not ask.
    for (const [event, fields] of [
      ['PostToolUse', { ...tool('ls', 'done'), tool_response: '' }],
      ['UserPromptSubmit', { prompt: 'Go on.' }],
    ] as const) {
      await eventually(async () => {
        rmSync(path.join(path.dirname(kept), 'outage'), { force: true })
        confirm(20_000)
        const confirmedAt = statSync(kept).mtimeMs
        await hook(event, fields, { variables })
        return statSync(kept).mtimeMs > confirmedAt
      }, `the confirmation by ${event}`)
    }
  } finally {
    proxy.close()
  }
})

test('the service is down: the last policies decide, and what was recorded is delivered later', async () => {
  const state = path.join(directory, 'outage')
  // The folder belongs to the address, so a proxy in between stands for the outage.
  let isDown = false
  const proxy = createServer((socket) => {
    const up = connect(Number(new URL(server.url).port), new URL(server.url).hostname)
    for (const each of [socket, up]) each.on('error', () => undefined)
    if (isDown) socket.destroy()
    else socket.pipe(up).pipe(socket)
    socket.on('close', () => up.destroy())
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const address = { TACHO_URL: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` }
  const { id, hook: plainHook, tool } = session('claude-code', state)
  const hook = (event: string, fields: object, args: string[] = []) =>
    plainHook(event, fields, { variables: address, args })
  await hook('SessionStart', { source: 'startup' })
  const [folder = ''] = readdirSync(state)
  const kept = path.join(state, folder, 'configuration.json')
  assert.equal(statSync(kept).mode & 0o777, 0o600)
  const old = new Date(Date.now() - 600_000)
  const text = JSON.parse(readFileSync(kept, 'utf8')) as { confirmedAt: number }
  isDown = true
  try {
    writeFileSync(kept, JSON.stringify({ ...text, confirmedAt: old.getTime() }))
    utimesSync(kept, old, old)
    assert.match(denied(await hook('PreToolUse', tool('rm -rf /', 't-1'))), /\(policies of 10 minutes ago\)$/)
    assert.equal((await hook('PreToolUse', tool('ls', 't-2'))).answer, null)
    await hook('PostToolUse', { ...tool('ls', 't-2'), tool_response: 'a' })
    assert.match(denied(await hook('PreToolUse', tool('git push', 't-3'), ['--approval-timeout', '1'])), /approval/)
    const week = 7 * 24 * 3_600_000
    const confirm = (agoMs: number): void => {
      const at = new Date(Date.now() - agoMs)
      writeFileSync(kept, JSON.stringify({ ...text, confirmedAt: at.getTime() }))
      utimesSync(kept, at, at)
    }
    confirm(week - 3_600_000)
    assert.equal((await hook('PreToolUse', tool('ls', 't-4'))).answer, null, 'almost 7 days')
    confirm(week + 1)
    assert.match(denied(await hook('PreToolUse', tool('ls', 't-5'))), /no policies for this machine of the last 7 days/)
    confirm(600_000)
    const greeting = await hook('SessionStart', { source: 'resume' })
    assert.match(greeting.answer?.systemMessage ?? '', /cannot be reached; its last known policies decide/)
    isDown = false
    await hook('SessionEnd', { reason: 'other' })
    // Later hooks of the minute do not try; a new session does.
    await hook('SessionStart', { source: 'resume' })
  } finally {
    proxy.close()
  }
  const events = brief(await server.events(id))
  assert.equal(events.filter((each) => each === 'TOOL_CALL Bash').length, 1)
  assert.equal(events.filter((each) => each.startsWith('POLICY_DECISION')).length, 3)
})

for (const [what, breakOff] of [
  ['down', (socket: Socket) => void socket.destroy()],
  ['silent', () => undefined],
] as const) {
  test(`a service that is ${what} costs a session one second, and a person's approval is denied at once`, async () => {
    const state = path.join(directory, `state-${what}`)
    let isOut = false
    let connections = 0
    const sockets = new Set<Socket>()
    const proxy = createServer((socket) => {
      connections++
      sockets.add(socket.on('error', () => undefined))
      if (isOut) return breakOff(socket)
      const up = connectTo(server.url).on('error', () => undefined)
      socket.pipe(up).pipe(socket)
      return socket.on('close', () => up.destroy())
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const variables = { TACHO_URL: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` }
    const { id, hook: plainHook, tool } = session('claude-code', state)
    /** With the connections that the hook made, which do not depend on how busy the machine is. */
    const counted = async (event: string, fields: object = {}) => {
      connections = 0
      const done = await plainHook(event, fields, { variables })
      return { ...done, connections }
    }
    try {
      const begunAt = performance.now()
      await counted('SessionStart', { source: 'startup' })
      const startedAt = performance.now()
      isOut = true
      const first = await counted('SessionStart', { source: 'resume' })
      // Much of it is the start of a process, as before.
      const [asUsual, spent] = [startedAt - begunAt, performance.now() - startedAt]
      assert.ok(first.connections > 0 && spent < 5_000 + 3 * asUsual, `${spent} ms instead of ${asUsual}`)
      const outage = [
        await counted('UserPromptSubmit', { prompt: 'Go on.' }),
        await counted('PreToolUse', tool('rm -rf /', 't-1')),
        await counted('PreToolUse', tool('git push', 't-2')),
        await counted('PostToolUse', { ...tool('ls', 't-3'), tool_response: 'a' }),
        await counted('Stop', {}),
        await counted('SessionEnd', { reason: 'other' }),
      ]
      assert.deepEqual(
        outage.map((each) => each.connections),
        // Only a person's approval is tried again.
        [0, 0, 1, 0, 0, 0],
      )
      assert.match(denied(outage[1] as Answer), /A policy forbids/)
      assert.match(denied(outage[2] as Answer), /approval, but it could not be requested/)
      isOut = false
      assert.equal((await counted('SessionStart', { source: 'resume' })).answer, null)
      const events = brief(await server.events(id))
      assert.equal(events.filter((each) => each.startsWith('POLICY_DECISION')).length, 2)
      assert.ok(events.includes('SESSION_OUTCOME session end'))
    } finally {
      for (const socket of sockets) socket.destroy()
      proxy.close()
    }
  })
}

function connectTo(url: string): Socket {
  return connect(Number(new URL(url).port), new URL(url).hostname)
}

test('without policies or key, tools are denied, or the user is asked; other hooks go on', async () => {
  const state = path.join(directory, 'fresh')
  const { hook, tool } = session('claude-code', state)
  const nowhere = { variables: { TACHO_URL: 'http://127.0.0.1:9' } }
  assert.match(
    denied(await hook('PreToolUse', tool('ls', 't-1'), nowhere)),
    /no policies for this machine of the last 7 days.*http:\/\/127\.0\.0\.1:9 answers/,
  )
  const asked = await hook('PreToolUse', tool('ls', 't-1'), { ...nowhere, args: ['--unconfigured', 'ask'] })
  assert.equal(asked.answer?.hookSpecificOutput?.permissionDecision, 'ask')
  const codex = session('codex', state)
  denied(await codex.hook('PreToolUse', tool('ls', 't-1'), { ...nowhere, args: ['--unconfigured', 'ask'] }))
  const keyless = { variables: { TACHO_API_KEY: '' } }
  assert.match(denied(await hook('PreToolUse', tool('ls', 't-1'), keyless)), /Tacho has no API key/)
  const stop = await hook('Stop', {}, keyless)
  assert.deepEqual([stop.code, stop.stdout], [1, ''], 'not 2: that would keep the agent from stopping')
})

test('a hook before a tool that fails refuses the tool', async () => {
  // Its standard input never ends.
  const endless = startTacho(['hook', 'claude-code'], server.variables)
  endless.stdin?.write('{"session_id":"s"')
  const late = ended(endless)
  for (const input of ['', '{', '[]', '{"hook_event_name":"PreToolUse"}', '\u0000'.repeat(21 * 1_048_576)]) {
    const { code, stdout, stderr } = await runTacho(['hook', 'claude-code'], server.variables, input)
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, /^tacho: the hook failed: .* The tool was not run\.\n$/)
  }
  const record = { session_id: 's', hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_input: {} }
  for (const change of [
    { tool_name: ['Bash'] },
    { tool_name: undefined },
    { tool_name: '' },
    { hook_event_name: 'preToolUse' },
    { hook_event_name: 'before_tool_call' },
    { hook_event_name: ['PreToolUse'], type: 'Stop' },
  ]) {
    const input = JSON.stringify({ ...record, ...change })
    assert.equal((await runTacho(['hook', 'claude-code'], server.variables, input)).code, 2, input)
  }
  const file = path.join(directory, 'a-file')
  writeFileSync(file, '')
  const { hook, tool } = session('claude-code', file)
  assert.equal((await hook('PreToolUse', tool('ls', 't-1'))).code, 2)
  const { code, stdout, stderr } = await late
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /the record did not end within 10 seconds\. The tool was not run\.$/m)
})

test('codex notify: the record is an argument', async () => {
  const variables = { ...server.variables, TACHO_STATE_DIR: path.join(directory, 'state') }
  const record = {
    type: 'agent-turn-complete',
    'thread-id': 'thread-1',
    'turn-id': '1',
    'input-messages': ['Hello'],
    'last-assistant-message': 'Hi.',
  }
  const { code, stderr } = await runTacho(['hook', 'codex', JSON.stringify(record)], variables)
  assert.equal(code, 0, stderr)
  assert.deepEqual(brief(await server.events('thread-1')), ['AGENT_STEP answer'])
})

test('a person who is asked sees the call and what led to it, while the hook waits', async () => {
  const { id, hook, tool } = session()
  assert.match(denied(await hook('PreToolUse', tool('rm -rf build', 't-1'))), /A policy forbids/)
  const asked = hook('PreToolUse', tool('git push --force origin main', 't-2'), { args: ['--approval-timeout', '60'] })
  const { operator, environmentId } = server
  const { inputPreview } = await eventually(async () => {
    const { items } = await operator.listApprovals({ params: { environmentId }, query: { status: 'PENDING' } })
    const [own] = items.filter(({ runId }) => runId === id)
    const approval = own && (await operator.readApproval({ params: { environmentId, approvalId: own.id } }))
    return approval?.inputPreview && approval
  }, 'the input of the approval')
  assert.equal(inputPreview?.json, '{"command":"git push --force origin main"}')
  assert.deepEqual(brief(await server.events(id)), [
    'POLICY_DECISION BLOCK Bash',
    'POLICY_DECISION REQUIRE_APPROVAL Bash',
  ])
  await server.decideNext('Bash', 'REJECTED')
  assert.match(denied(await asked), /A person rejected/)
})

test('a tool that ran with another input than the approved one is recorded with its own hash, as an issue, and said', async () => {
  const { id, hook, tool } = session()
  const asked = hook('PreToolUse', tool('git push origin main', 't-1'))
  const approvalId = await server.decideNext('Bash', 'APPROVED')
  assert.equal((await asked).answer, null)
  const changed = { ...tool('git push --force origin main', 't-1'), tool_response: {} }
  const after = await hook('PostToolUse', changed)
  assert.match(after.answer?.systemMessage ?? '', /Bash ran with another input than the one that was approved/)
  await hook('PreToolUse', tool('ls', 't-2'))
  await hook('PostToolUse', { ...tool('ls -a', 't-2'), tool_response: {} })
  await hook('SessionEnd', { reason: 'other' })
  const events = await server.events(id)
  const call = events.find(({ eventType }) => eventType === 'TOOL_CALL')?.payload
  const { operator, environmentId } = server
  const approval = await operator.readApproval({ params: { environmentId, approvalId } })
  assert.equal(call?.['approvalId'], approvalId)
  assert.notEqual(call?.['inputHash'], approval.inputHash)
  const errors = events.filter(({ eventType }) => eventType === 'ERROR').map(({ payload }) => payload)
  assert.deepEqual(
    errors.map(({ code, approvalId: approved }) => [code, approved ?? null]),
    [
      ['changed_after_approval', approvalId],
      ['changed_after_decision', null],
    ],
  )
  assert.equal(errors[0]?.['judgedInputHash'], approval.inputHash)
  await eventually(async () => {
    const { items } = await operator.listIssues({ params: { environmentId } })
    return items.filter(({ detectionType }) => detectionType === 'input_changed').length === 2
  }, 'the issues')
  const shown = await server.tacho(['approvals', 'show', approvalId])
  assert.match(shown.stdout, /ran with an input other than the approved one/)
})

/** A session file as the agent writes it: calls with results. */
const SESSION_FILES = {
  'claude-code': {
    place: (id: string) => `.claude/projects/-shop/${id}.jsonl`,
    lines: (sessionId: string, callId: string, timestamp: string, result = 'done') => [
      {
        type: 'assistant',
        sessionId,
        timestamp,
        message: { content: [{ type: 'tool_use', id: callId, name: 'Bash', input: { command: callId } }] },
      },
      {
        type: 'user',
        sessionId,
        timestamp,
        message: {
          content: [{ type: 'tool_result', tool_use_id: callId, content: result, is_error: result !== 'done' }],
        },
      },
    ],
    refusals: ['<tool_use_error>InputValidationError</tool_use_error>', 'PreToolUse:Bash hook error: [x]: no'],
  },
  codex: {
    place: (id: string) => `.codex/sessions/2026/11/23/rollout-2026-11-23T10-00-00-${id}.jsonl`,
    lines: (_sessionId: string, call_id: string, timestamp: string, output = 'done') => [
      {
        timestamp,
        type: 'response_item',
        payload: { type: 'function_call', name: 'Bash', arguments: `{"command":"${call_id}"}`, call_id },
      },
      { timestamp, type: 'response_item', payload: { type: 'function_call_output', call_id, output } },
    ],
    refusals: [
      'unsupported call: Bash',
      'unsupported custom tool call: apply_patch',
      'Command blocked by PreToolUse hook: no',
    ],
  },
} as const

for (const agent of ['claude-code', 'codex'] as const) {
  test(`${agent}: what ran without a decision is recorded, told once, and an issue`, async () => {
    const state = path.join(directory, `unjudged-${agent}`)
    const own = session(agent, state)
    const { place, lines, refusals } = SESSION_FILES[agent]
    const write = (id: string, ...calls: (readonly object[])[]): string => {
      const file = path.join(directory, place(id))
      mkdirSync(path.dirname(file), { recursive: true })
      appendFileSync(
        file,
        calls
          .flat()
          .map((line) => `${JSON.stringify(line)}\n`)
          .join(''),
      )
      return file
    }
    const title = { 'claude-code': 'Claude Code', codex: 'Codex' }[agent]
    const now = (): string => new Date().toISOString()
    const said = async (hook: Session, event: string, file?: string) =>
      (await hook.hook(event, file === undefined ? {} : { transcript_path: file })).answer?.systemMessage ?? ''
    const id = randomUUID()
    // Before the hook was there, nothing could be judged.
    write(id, lines(id, 'early', '2026-11-01T00:00:00Z'))
    assert.equal(await said(own, 'SessionStart'), '')
    await own.hook('PreToolUse', { ...own.tool('judged', 'judged'), session_id: id })
    const file = write(
      id,
      lines(id, 'judged', now()),
      ...refusals.map((refusal, index) => lines(id, `refused-${index}`, now(), refusal)),
      lines(id, 'open', now()).slice(0, 1),
    )
    const stopped = { hook: (event: string, fields?: object) => own.hook(event, { ...fields, session_id: id }) }
    assert.equal(await said({ ...own, ...stopped }, 'Stop', file), '', 'nothing ran without a decision')
    write(id, lines(id, 'open', now()).slice(1), lines(id, 'unseen', now()))
    assert.equal(
      await said({ ...own, ...stopped }, 'Stop', file),
      `Tacho: ${title} ran 2 tools that no policy saw: Bash.`,
    )
    assert.equal(await said({ ...own, ...stopped }, 'Stop', file), '', 'said once')
    // A session without any hook is found by the next one; hooks of a project leave other projects alone.
    const [bare, project] = [randomUUID(), randomUUID()]
    write(bare, [{ cwd: '/elsewhere' }], lines(bare, 'bare', now()))
    const here = await session(agent, state).hook('SessionStart', {}, { args: ['--project'] })
    assert.equal(here.answer, null)
    assert.equal(
      await said(session(agent, state), 'SessionStart'),
      `Tacho: ${title} ran a tool that no policy saw: Bash.`,
    )
    assert.equal(await said(session(agent, state), 'SessionStart'), '')
    // A result whose hook before the tool never ran.
    const after = await own.hook('PostToolUse', { ...own.tool('ls', 'late'), session_id: project, tool_response: 'ok' })
    assert.match(after.answer?.systemMessage ?? '', /ran a tool that no policy saw: Bash\.$/)
    for (const [runId, calls] of [
      [id, 2],
      [bare, 1],
      [project, 1],
    ] as const) {
      await eventually(async () => {
        // A new session delivers what the hooks before it could not.
        await session(agent, state).hook('SessionStart', { source: 'resume' })
        const events = await server.events(runId)
        assert.equal(events.filter(({ eventType }) => eventType === 'TOOL_CALL').length, calls, runId)
        return events.find(({ eventType }) => eventType === 'ERROR')?.payload['code'] === 'no_decision'
      }, 'the events')
    }
    await eventually(async () => {
      const { items } = await server.operator.listIssues({ params: { environmentId: server.environmentId } })
      return items.some(({ title: what }) => what === 'Bash ran without a decision')
    }, 'the issue')
  })
}

test('a call that a person rejected is asked once in a session', async () => {
  const { id, hook, tool } = session()
  const asked = hook('PreToolUse', tool('git push origin v1', 't-1'))
  const approvalId = await server.decideNext('Bash', 'REJECTED', 'Not on Friday.')
  const why = (answer: Answer) => answer.answer?.hookSpecificOutput?.permissionDecisionReason ?? ''
  assert.match(why(await asked), /rejected this call.*Not on Friday\./)
  assert.match(why(await hook('PreToolUse', tool('git push origin v1', 't-2'))), /rejected this call.*Not on Friday\./)
  const other = session()
  const askedAgain = other.hook('PreToolUse', tool('git push origin v1', 't-3'))
  assert.notEqual(await server.decideNext('Bash', 'REJECTED'), approvalId, 'another session asks')
  await askedAgain
  await hook('SessionEnd', { reason: 'other' })
  const decisions = (await server.events(id)).filter(({ eventType }) => eventType === 'POLICY_DECISION')
  assert.deepEqual(
    decisions.map(({ payload }) => [payload['action'], payload['approvalId']]),
    [
      ['REQUIRE_APPROVAL', approvalId],
      ['BLOCK', approvalId],
    ],
  )
})
