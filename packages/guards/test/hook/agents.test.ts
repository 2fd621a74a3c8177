/** Agents that are not Claude Code or Codex: the installed hooks with records of the real programs, on a real Tacho. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { ended, runTacho } from '../../../cli/test/tacho.ts'
import { startGuardedServer, type GuardedServer } from '../guarded-server.ts'

let server: GuardedServer
let directory: string
before(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'tacho-agents-'))
  server = await startGuardedServer()
  await server.deploy({
    // One policy for all: the name of the tool differs.
    'no-rm': {
      condition: '"tool_shell" in risk.signals && tool.input.command.contains("rm -rf")',
      action: 'BLOCK',
    },
  })
})
after(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

interface Case {
  agent: string
  file: string
  /** Theirs, which stays. */
  theirs: object
  commandAt: (settings: unknown, step: string) => string
  steps: { start: string; prompt: string; before: string; after: string; stop: string; end: string }
  /** A record as the program sends it. */
  record: (step: string, fields: object) => object
  tool: (command: string) => object
  result: object
  denial: (reason: string) => object
}

interface Groups {
  hooks: Record<string, { hooks?: { command: string }[]; bash?: string }[]>
}

const CASES: readonly Case[] = [
  {
    agent: 'gemini-cli',
    file: '.gemini/settings.json',
    theirs: {
      ui: { theme: 'x' },
      hooks: { BeforeTool: [{ matcher: 'x', hooks: [{ type: 'command', command: 'other' }] }] },
    },
    commandAt: (settings, step) => (settings as Groups).hooks[step]?.at(-1)?.hooks?.[0]?.command ?? '',
    steps: {
      start: 'SessionStart',
      prompt: 'BeforeAgent',
      before: 'BeforeTool',
      after: 'AfterTool',
      stop: 'AfterAgent',
      end: 'SessionEnd',
    },
    record: (step, fields) => ({
      session_id: 'session-gemini-cli',
      transcript_path: '/nonexistent/.gemini/tmp/repo/chats/session.jsonl',
      cwd: '/repo',
      hook_event_name: step,
      timestamp: new Date().toISOString(),
      prompt_response: 'Done.',
      ...fields,
    }),
    tool: (command) => ({ tool_name: 'run_shell_command', tool_input: { command, description: 'x' } }),
    result: { tool_response: { llmContent: 'a.txt', returnDisplay: '' } },
    denial: (reason) => ({ decision: 'deny', reason }),
  },
  {
    agent: 'copilot',
    file: '.copilot/hooks/tacho.json',
    theirs: { version: 1, hooks: { preToolUse: [{ type: 'command', bash: 'other', timeoutSec: 5 }] } },
    commandAt: (settings, step) => (settings as Groups).hooks[step]?.at(-1)?.bash ?? '',
    steps: {
      start: 'sessionStart',
      prompt: 'userPromptSubmitted',
      before: 'preToolUse',
      after: 'postToolUse',
      stop: 'agentStop',
      end: 'sessionEnd',
    },
    record: (_step, fields) => ({
      sessionId: 'session-copilot',
      timestamp: Date.now(),
      cwd: '/repo',
      source: 'new',
      ...fields,
    }),
    tool: (command) => ({ toolName: 'bash', toolArgs: { command, description: 'x' } }),
    result: { toolResult: { resultType: 'success', textResultForLlm: 'a.txt' } },
    denial: (permissionDecisionReason) => ({ permissionDecision: 'deny', permissionDecisionReason }),
  },
]

for (const { agent, file: name, theirs, commandAt, steps, record, tool, result, denial } of CASES) {
  test(`${agent}: installed, decides by the kind of the tool, records, fails closed, and goes away`, async () => {
    const home = path.join(directory, agent)
    const file = path.join(home, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, JSON.stringify(theirs))
    const state = path.join(home, 'state')
    const variables = { ...server.variables, HOME: home, TACHO_STATE_DIR: state }
    const installed = await runTacho(['hook', 'install', agent, '--yes'], variables)
    assert.equal(installed.code, 0, installed.stderr)
    const text = readFileSync(file, 'utf8')
    const settings: unknown = JSON.parse(text)
    assert.match((await runTacho(['hook', 'install', agent, '--yes'], variables)).stdout, /needs no change/)
    const call = async (step: string, fields: object, command = commandAt(settings, step)) => {
      const child = spawn('/bin/sh', ['-c', command], { env: {} })
      child.stdin.on('error', () => undefined)
      child.stdin.end(JSON.stringify(record(step, fields)))
      return ended(child)
    }
    assert.equal((await call(steps.start, {})).code, 0)
    await call(steps.prompt, { prompt: 'Go on.' })
    assert.deepEqual(await call(steps.before, tool('ls')), { code: 0, stdout: '', stderr: '' })
    assert.equal((await call(steps.after, { ...tool('ls'), ...result })).code, 0)
    const blocked = await call(steps.before, tool('rm -rf /'))
    assert.equal(blocked.code, 0, blocked.stderr)
    const said = JSON.parse(blocked.stdout) as { reason?: string; permissionDecisionReason?: string }
    const reason = said.reason ?? said.permissionDecisionReason ?? ''
    assert.match(reason, /A policy forbids this call/)
    assert.deepEqual(said, denial(reason))
    for (const [broken, input] of [
      [commandAt(settings, steps.before).replace('bin/tacho', 'bin/gone'), tool('ls')],
      [commandAt(settings, steps.before), { tool_name: undefined, toolName: undefined }],
    ] as const) {
      assert.equal((await call(steps.before, input, broken)).code, 2)
    }
    await call(steps.stop, {})
    await call(steps.end, { reason: 'exit' })
    const events = await eventually(async () => {
      // A new session delivers what the hooks before it could not.
      await call(steps.start, { session_id: 'next', sessionId: 'next' })
      const delivered = await server.events(`session-${agent}`)
      assert.deepEqual(
        delivered.map(({ eventType }) => eventType),
        ['AGENT_STEP', 'USER_INPUT', 'TOOL_CALL', 'POLICY_DECISION', 'AGENT_STEP', 'SESSION_OUTCOME'],
      )
      return delivered
    }, 'the events')
    const ran = events.find(({ eventType }) => eventType === 'TOOL_CALL')?.payload
    assert.deepEqual([ran?.['input'], typeof ran?.['latency']], [{ command: 'ls', description: 'x' }, 'number'])
    const checked = await runTacho(['hook', 'check', agent], variables)
    assert.match(checked.stdout, new RegExp(`^${agent}, user .*: decides, in \\d+ ms$`, 'm'))
    const managed = await runTacho(['hook', 'install', agent, '--managed', '--yes'], variables)
    assert.deepEqual([managed.code, /writes no managed settings/.test(managed.stderr)], [1, true])
    assert.equal((await runTacho(['hook', 'uninstall', agent, '--yes'], variables)).code, 0)
    assert.ok(existsSync(file))
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), theirs)
  })
}
