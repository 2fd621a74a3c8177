/** Installed hooks of agents other than Claude Code and Codex, with records of the real programs and a real Tacho server. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
    // One policy for all agents, by the kind of the tool, because its name differs.
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
  /** Settings of the user, which the installation must keep. */
  theirs: object
  commandAt: (settings: unknown, step: string) => string
  steps: { start: string; prompt: string; before: string; after: string; stop: string; end: string }
  /** A record as the program sends it. */
  record: (step: string, fields: object) => object
  tool: (command: string) => object
  result: object
  denial: (reason: string) => object
  /** Output of the hook for an allowed call. */
  pass?: string
}

interface Groups {
  hooks: Record<string, { hooks?: { command: string }[]; bash?: string; command?: string }[]>
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
  {
    agent: 'qwen-code',
    file: '.qwen/settings.json',
    theirs: {
      hooks: { PreToolUse: [{ matcher: 'x', hooks: [{ type: 'command', command: 'other' }] }] },
    },
    commandAt: (settings, step) => (settings as Groups).hooks[step]?.at(-1)?.hooks?.[0]?.command ?? '',
    steps: {
      start: 'SessionStart',
      prompt: 'UserPromptSubmit',
      before: 'PreToolUse',
      after: 'PostToolUse',
      stop: 'Stop',
      end: 'SessionEnd',
    },
    record: (step, fields) => ({
      session_id: 'session-qwen-code',
      transcript_path: '/nonexistent/.qwen/projects/repo/chats/session.jsonl',
      cwd: '/repo',
      hook_event_name: step,
      timestamp: new Date().toISOString(),
      last_assistant_message: 'Done.',
      ...fields,
    }),
    tool: (command) => ({
      tool_name: 'run_shell_command',
      tool_input: { command, description: 'x' },
      tool_use_id: `id-${command}`,
    }),
    result: { tool_response: { llmContent: 'a.txt', returnDisplay: '' } },
    denial: (permissionDecisionReason) => ({
      hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason },
    }),
  },
  // From the documentation, because this program is not in a registry.
  {
    agent: 'cursor',
    file: '.cursor/hooks.json',
    theirs: { version: 1, hooks: { beforeShellExecution: [{ command: 'other' }] } },
    commandAt: (settings, step) => (settings as Groups).hooks[step]?.at(-1)?.command ?? '',
    steps: {
      start: 'sessionStart',
      prompt: 'beforeSubmitPrompt',
      before: 'beforeShellExecution',
      after: 'afterShellExecution',
      stop: 'afterAgentResponse',
      end: 'sessionEnd',
    },
    record: (step, fields) => ({
      conversation_id: 'session-cursor',
      generation_id: 'turn-1',
      hook_event_name: step,
      cursor_version: '2.0.77',
      workspace_roots: ['/repo'],
      text: 'Done.',
      ...fields,
    }),
    tool: (command) => ({ command, cwd: '/repo' }),
    result: { output: 'a.txt', duration: 12 },
    denial: (agent_message) => ({ permission: 'deny', agent_message }),
    pass: '{}\n',
  },
]

for (const { agent, file: name, theirs, commandAt, steps, record, tool, result, denial, pass = '' } of CASES) {
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
    await eventually(async () => {
      // Try again, because on a slow machine the service may answer later than a hook waits.
      await call(steps.start, { session_id: 'warm', sessionId: 'warm', conversation_id: 'warm' })
      return globSync(path.join(state, '*/configuration.json')).length > 0
    }, 'the policies')
    assert.equal((await call(steps.start, {})).code, 0)
    await call(steps.prompt, { prompt: 'Go on.' })
    assert.deepEqual(await call(steps.before, tool('ls')), { code: 0, stdout: pass, stderr: '' })
    assert.equal((await call(steps.after, { ...tool('ls'), ...result })).code, 0)
    const blocked = await call(steps.before, tool('rm -rf /'))
    assert.equal(blocked.code, 0, blocked.stderr)
    const said = JSON.parse(blocked.stdout) as object
    const reason = /"((?:[^"\\]|\\.)*A policy forbids this call[^"]*)"/.exec(blocked.stdout)?.[1] ?? ''
    assert.match(reason, /A policy forbids this call/)
    assert.deepEqual(said, denial(reason))
    for (const [broken, input] of [
      [commandAt(settings, steps.before).replace('bin/tacho', 'bin/gone'), tool('ls')],
      [commandAt(settings, steps.before), { tool_name: undefined, toolName: undefined, hook_event_name: 'preToolUse' }],
    ] as const) {
      assert.equal((await call(steps.before, input, broken)).code, 2)
    }
    await call(steps.stop, {})
    await call(steps.end, { reason: 'exit' })
    const events = await eventually(async () => {
      // A new session delivers the events that earlier hooks could not deliver.
      await call(steps.start, { session_id: 'next', sessionId: 'next', conversation_id: 'next' })
      const delivered = await server.events(`session-${agent}`)
      assert.deepEqual(
        delivered.map(({ eventType }) => eventType),
        ['AGENT_STEP', 'USER_INPUT', 'TOOL_START', 'TOOL_CALL', 'POLICY_DECISION', 'AGENT_STEP', 'SESSION_OUTCOME'],
      )
      return delivered
    }, 'the events')
    const ran = events.find(({ eventType }) => eventType === 'TOOL_CALL')?.payload
    const input = agent === 'cursor' ? { command: 'ls' } : { command: 'ls', description: 'x' }
    assert.deepEqual([ran?.['input'], typeof ran?.['latency']], [input, 'number'])
    const checked = await runTacho(['hook', 'check', agent], variables)
    assert.match(checked.stdout, new RegExp(`^${agent}, user .*: decides, in \\d+ ms$`, 'm'))
    assert.equal((await runTacho(['hook', 'uninstall', agent, '--yes'], variables)).code, 0)
    assert.ok(existsSync(file))
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), theirs)
  })
}

type Handler = (...args: unknown[]) => Promise<{ block?: boolean; reason?: string } | undefined>

/** How each program calls our module before and after a tool. Resolves with the reason why the tool does not run. */
const HOSTS = {
  async opencode(module: object) {
    const { Tacho } = module as { Tacho: (given: object) => Promise<Record<string, Handler>> }
    const handlers = await Tacho({ directory: '/repo', client: { tui: { showToast: async () => undefined } } })
    return {
      before: async (command: string) => {
        const call = { tool: 'bash', sessionID: 'session-opencode', callID: `id-${command}` }
        const before = handlers['tool.execute.before']?.(call, { args: { command } })
        return before?.then(
          () => null,
          (error: Error) => error.message,
        )
      },
      after: async (command: string) => {
        const call = { tool: 'bash', sessionID: 'session-opencode', callID: `id-${command}`, args: { command } }
        await handlers['tool.execute.after']?.(call, { output: 'a.txt' })
      },
    }
  },
  async pi(module: object) {
    const handlers = new Map<string, Handler>()
    const { default: start } = module as { default: (pi: object) => void }
    start({ on: (name: string, handler: Handler) => handlers.set(name, handler) })
    const sessionManager = { getSessionId: () => 'session-pi', getSessionFile: () => undefined }
    const context = { sessionManager, cwd: '/repo', hasUI: false }
    await handlers.get('session_start')?.({ reason: 'startup' }, context)
    const call = (command: string) => ({ toolName: 'bash', toolCallId: `id-${command}`, input: { command } })
    return {
      before: async (command: string) => {
        const answer = await handlers.get('tool_call')?.(call(command), context)
        return answer?.block ? (answer.reason ?? '') : null
      },
      after: async (command: string) => {
        await handlers.get('tool_result')?.({ ...call(command), content: [], isError: false }, context)
      },
    }
  },
}

for (const [agent, name, host] of [
  ['opencode', '.config/opencode/plugins/tacho.js', HOSTS.opencode],
  ['pi', '.pi/agent/extensions/tacho.js', HOSTS.pi],
] as const) {
  test(`${agent}: its module decides, records, fails closed, and is a file of ours whole`, async () => {
    const home = path.join(directory, agent)
    const file = path.join(home, name)
    const state = path.join(home, 'state')
    const variables = { ...server.variables, HOME: home, TACHO_STATE_DIR: state }
    const tacho = (...args: string[]) => runTacho(['hook', ...args], variables)
    assert.equal((await tacho('install', agent)).code, 3, 'asks first')
    assert.equal((await tacho('install', agent, '--yes')).code, 0)
    assert.match((await tacho('install', agent, '--yes')).stdout, /needs no change/)
    const text = readFileSync(file, 'utf8')
    const load = async (source: string) => {
      const copy = path.join(home, `${Math.random()}.mjs`)
      writeFileSync(copy, source)
      return host((await import(copy)) as object)
    }
    const session = await load(text)
    await eventually(async () => {
      await session.after('ls -l')
      return globSync(path.join(state, '*/configuration.json')).length > 0
    }, 'the policies')
    assert.equal(await session.before('ls'), null)
    await session.after('ls')
    assert.match((await session.before('rm -rf /')) ?? '', /A policy forbids this call/)
    for (const broken of ['bin/gone', 'bin']) {
      const refused = await (await load(text.replaceAll('bin/tacho', broken))).before('ls')
      assert.match(refused ?? '', /the hook gave no decision, so the tool was not run/)
    }
    for (const command of ['sleep 20; :', 'echo nonsense', "echo '{}'; exit 1", 'kill -KILL $$']) {
      const hooks = {
        SessionStart: ['true', 60_000],
        PreToolUse: [command, command.startsWith('sleep') ? 1_000 : 60_000],
      }
      const other = text.replace(/^const HOOKS = .*$/m, () => `const HOOKS = ${JSON.stringify(hooks)}`)
      assert.match((await (await load(other)).before('ls')) ?? '', /gave no decision, so the tool was not run/, command)
    }
    await eventually(async () => {
      await (await load(text)).after('ls -a')
      const types = (await server.events(`session-${agent}`)).map(({ eventType }) => eventType)
      return types.includes('TOOL_CALL') && types.includes('POLICY_DECISION')
    }, 'the events')
    const checked = await tacho('check', agent)
    assert.match(checked.stdout, new RegExp(`^${agent}, user .*: decides, in \\d+ ms$`, 'm'))
    assert.match((await tacho('install', agent, '--managed', '--yes')).stderr, /writes no managed settings/)
    assert.equal((await tacho('uninstall', agent, '--yes')).code, 0)
    assert.ok(!existsSync(file))
    writeFileSync(file, 'export default () => {}\n')
    for (const act of ['install', 'uninstall']) {
      const { code, stderr } = await tacho(act, agent, '--yes')
      assert.deepEqual([code, stderr.endsWith('is not from tacho; nothing was changed.\n')], [1, true])
    }
  })
}
