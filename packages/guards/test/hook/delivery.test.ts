/** The delivery of `tacho hook`, with records as Claude Code 2.1 and Codex 0.169 document them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { randomUUID } from 'node:crypto'
import { appendFileSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import path from 'node:path'
import { after, test } from 'node:test'
import { runTacho } from '../../../cli/test/tacho.ts'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { brief, connectTo, denied, startHooks, type Answer, type Session } from './hook-session.ts'

const { server, directory, session, close } = await startHooks()
after(close)

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
    'TOOL_START Bash',
    'TOOL_CALL Bash',
    'TOOL_START Bash',
    'TOOL_CALL Bash',
    'AGENT_STEP notification',
    'HANDOFF claude-code to Explore',
    'AGENT_STEP end of Explore',
    'AGENT_STEP SomethingNew',
    'AGENT_STEP answer',
    'SESSION_OUTCOME session end',
  ])
  const [call, failure] = events.filter(({ eventType }) => eventType === 'TOOL_CALL').map(({ payload }) => payload)
  assert.deepEqual([call?.['input'], call?.['output'], call?.['latency']], [{ command: 'ls' }, { stdout: 'a.txt' }, 12])
  assert.match(String(call?.['inputHash']), /^[0-9a-f]{64}$/)
  assert.deepEqual([failure?.['error'], failure?.['exitCode']], ['exit 1', 1])
  const run = (await server.runs()).find(({ runId }) => runId === id)
  assert.deepEqual([run?.status, run?.agent.name], ['COMPLETED', 'claude-code'])
})

test('the service is down: the last policies decide, and what was recorded is delivered later', async () => {
  const state = path.join(directory, 'outage')
  // The state folder belongs to the service's address, so a proxy simulates the outage.
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
    // After a failure, hooks do not try to deliver for a minute, except at the start of a session.
    await hook('SessionStart', { source: 'resume' })
  } finally {
    proxy.close()
  }
  const events = brief(await server.events(id))
  // One call returned. The other one did not report before the session continued.
  assert.equal(events.filter((each) => each === 'TOOL_CALL Bash').length, 2)
  // A call that old policies allow is recorded as a decision too, with the age of the policies.
  assert.equal(events.filter((each) => each.startsWith('POLICY_DECISION')).length, 5)
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
    /** Counts the connections of a hook, because they do not depend on the load of the machine. */
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
      // Most of the time is the start of the process, so compare with an earlier hook.
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
        // During an outage, only a request for approval tries the service again.
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
    // Calls before the hook's installation are not reported.
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
    // The next session reports a session without hooks. Hooks of a project do not report sessions of other projects.
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
        // A new session delivers the events that earlier hooks could not deliver.
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
