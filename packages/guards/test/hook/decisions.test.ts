/** What `tacho hook` answers: records as Claude Code 2.1 and Codex 0.169 document them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import path from 'node:path'
import { after, test } from 'node:test'
import { ended, runTacho, startTacho } from '../../../cli/test/tacho.ts'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { brief, connectTo, denied, startHooks, type Answer } from './hook-session.ts'

const { server, directory, session, close } = await startHooks()
after(close)

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
      /^Tacho: policy no-rm denied `rm -rf \/`\. The tool Bash was not run\. A policy forbids/,
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
    // A time in the future does not count as fresh.
    for (const [agoMs, isAsked] of [
      [0, false],
      [60_000, true],
      [-600_000, true],
    ] as const) {
      confirm(agoMs)
      connections = 0
      assert.match(denied(await hook('PreToolUse', tool('rm -rf /', `t${agoMs}`), { variables })), /A policy forbids/)
      assert.equal(connections > 0, isAsked, String(agoMs))
      // Remove the note that a hook leaves if the service does not answer.
      rmSync(path.join(path.dirname(kept), 'outage'), { force: true })
    }
    // These hooks load the policies, so that a hook before a tool need not ask the service.
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
  // The standard input of this hook never ends.
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
