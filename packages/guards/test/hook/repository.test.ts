/** Programs that a repository starts by itself, and tools that ran although no hook allowed them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { runTacho, startTacho } from '../../../cli/test/tacho.ts'
import type { AgentName } from '../../src/hook/agents.ts'
import { commandFor, isCommandOf } from '../../src/hook/command.ts'
import { moduleText } from '../../src/hook/modules.ts'
import { startedByRepository } from '../../src/hook/repository.ts'
import { withHooks } from '../../src/hook/settings.ts'
import { startGuardedServer, type GuardedServer } from '../guarded-server.ts'

let server: GuardedServer
let directory: string
before(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'tacho-repository-'))
  server = await startGuardedServer()
  await server.deploy({
    'no-rm': { condition: 'tool.input.command.contains("rm -rf")', action: 'BLOCK' },
    'ask-push': { condition: 'tool.input.command.startsWith("git push")', action: 'REQUIRE_APPROVAL' },
  })
})
after(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

function repository(files: Record<string, string | object>): string {
  const folder = mkdtempSync(path.join(directory, 'repository-'))
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(folder, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  }
  return folder
}

const PROGRAM = fileURLToPath(new URL('../../../cli/bin/tacho', import.meta.url))
const partsOf = (agent: AgentName) => ({ agent, program: PROGRAM, stateFolder: '/state' })
const commandOf = (agent: AgentName) => (event: string) =>
  commandFor({ ...partsOf(agent), flags: ['--project', '--approval-timeout', '60'] }, event)
const started = (agent: AgentName, files: Record<string, string | object>, ignored: string[] = [], below = '') =>
  startedByRepository({
    agent,
    cwd: path.join(repository({ '.git/HEAD': '', ...files }), below),
    ignored: new Set(ignored),
    isOurs: (command, event) => isCommandOf(partsOf(agent), event, command),
  })

const group = (command: string) => [{ hooks: [{ type: 'command', command }] }]

test('claude-code: hooks, variables, helpers, servers, and commands in texts, up to the project', () => {
  const files = {
    '.claude/settings.json': {
      hooks: { SessionStart: group('./x.sh') },
      env: { PATH: './bin' },
      apiKeyHelper: './key.sh',
      statusLine: { type: 'command', command: './line.sh' },
      model: 'x',
      permissions: { allow: ['Bash(ls)'] },
    },
    '.mcp.json': { mcpServers: { own: { command: './server' } } },
    '.claude/skills/a/SKILL.md': '---\nname: a\n---\nNow: !`date`\n',
    '.claude/skills/b/SKILL.md': 'Only words!',
    '.claude/agents/c.md': '---\nname: c\nhooks:\n  Stop: []\n---\n',
    'sub/.claude/commands/d.md': '```!\ndate\n```\n',
  }
  const all = [
    'a command in .claude/agents/c.md',
    'a command in .claude/commands/d.md',
    'a command in .claude/skills/a/SKILL.md',
    'apiKeyHelper in .claude/settings.json',
    'env.PATH in .claude/settings.json',
    'hooks.SessionStart in .claude/settings.json',
    'mcpServers.own in .mcp.json',
    'statusLine in .claude/settings.json',
  ]
  assert.deepEqual(started('claude-code', files, [], 'sub'), all)
  const managed = started('claude-code', files, ['hooks', 'env.PATH'], 'sub')
  assert.deepEqual(
    managed,
    all.filter((each) => !/^hooks|^env/.test(each)),
  )
  assert.deepEqual(started('claude-code', { '.claude/settings.json': '{ "hooks": {}, // no\n }' }), [
    'hooks in .claude/settings.json',
  ])
  assert.deepEqual(started('claude-code', { 'README.md': '!`date`', '.claude/settings.json': { env: {} } }), [])
})

const OTHERS: readonly (readonly [AgentName, Record<string, string | object>, string[]])[] = [
  [
    'codex',
    { '.codex/config.toml': 'notify = ["./x"]\n[mcp_servers.own]\ncommand = "./x"\n[tui]\n' },
    ['[mcp_servers.own] in .codex/config.toml', 'notify in .codex/config.toml'],
  ],
  [
    'gemini-cli',
    { '.gemini/settings.json': { tools: { discoveryCommand: './x' } }, '.gemini/commands/a.toml': 'prompt = "!{x}"' },
    ['a command in .gemini/commands/a.toml', 'tools.discoveryCommand in .gemini/settings.json'],
  ],
  [
    'qwen-code',
    { '.qwen/settings.json': { mcpServers: { own: {} } }, '.qwen/extensions/a/b.json': '{}' },
    ['mcpServers.own in .qwen/settings.json', 'the module .qwen/extensions/a/b.json'],
  ],
  [
    'copilot',
    { '.github/hooks/own.json': { hooks: { sessionStart: [{ type: 'command', bash: './x' }] } } },
    ['hooks.sessionStart in .github/hooks/own.json'],
  ],
  ['cursor', { '.cursor/mcp.json': { mcpServers: { own: {} } } }, ['mcpServers.own in .cursor/mcp.json']],
  [
    'opencode',
    { 'opencode.jsonc': '{ // servers\n "mcp": {} }', '.opencode/plugins/own.js': 'x' },
    ['mcp in opencode.jsonc', 'the module .opencode/plugins/own.js'],
  ],
  ['pi', { '.pi/extensions/own.js': 'x' }, ['the module .pi/extensions/own.js']],
]
for (const [agent, files, expected] of OTHERS) {
  test(`${agent}: what its files start, and what git runs at the start`, () => {
    assert.deepEqual(started(agent, files), expected)
    const git = '[core]\n\tfsmonitor = ./x\n[filter "own"]\n\tclean = ./x\n'
    assert.deepEqual(started(agent, { '.git/config': git }), [
      '[filter "own"] in .git/config',
      'fsmonitor in .git/config',
    ])
    assert.deepEqual(started(agent, { '.git/config': '[core]\n\tfsmonitor = true\n' }), [])
  })
}

test('our own hooks and modules do not count; imitations do', () => {
  const settings = withHooks({}, 'claude-code', commandOf('claude-code'), 60)
  assert.deepEqual(started('claude-code', { '.claude/settings.json': settings }), [])
  const real = commandOf('claude-code')('PreToolUse')
  for (const fake of [
    './x; /bin/tacho hook claude-code',
    real.replace(PROGRAM, '/elsewhere/packages/cli/bin/tacho'),
    `./x; ${real}`,
    `${real}; ./x`,
    real.replace('--project', '--project; ./x'),
    real.replace('--project', '$(./x)'),
  ]) {
    const files = { '.claude/settings.json': { hooks: { PreToolUse: group(fake) } } }
    assert.deepEqual(started('claude-code', files), ['hooks.PreToolUse in .claude/settings.json'], fake)
  }
  const text = moduleText('opencode', commandOf('opencode'), 60)
  assert.deepEqual(started('opencode', { '.opencode/plugins/tacho.js': text }), [])
  for (const fake of [`${text}import './x.js'\n`, text.replace(PROGRAM, '/x/tacho'), text.replace('{"', '{{"')]) {
    const files = { '.opencode/plugins/tacho.js': fake }
    assert.deepEqual(started('opencode', files), ['the module .opencode/plugins/tacho.js'])
  }
})

let sessions = 0
function session(cwd: string) {
  const id = `repository-${++sessions}`
  const variables = { ...server.variables, TACHO_STATE_DIR: path.join(directory, 'state'), HOME: directory }
  const recordOf = (event: string, fields: object) =>
    JSON.stringify({ session_id: id, cwd, hook_event_name: event, transcript_path: '/none.jsonl', ...fields })
  return {
    id,
    variables,
    recordOf,
    hook: async (event: string, fields: object = {}) => {
      const { code, stdout, stderr } = await runTacho(['hook', 'claude-code'], variables, recordOf(event, fields))
      assert.equal(code, 0, stderr)
      return stdout
    },
  }
}
const tool = (command: string, id: string) => ({ tool_name: 'Bash', tool_input: { command }, tool_use_id: id })
const codesOf = async (id: string) =>
  (await server.events(id)).filter(({ eventType }) => eventType === 'ERROR').map(({ payload }) => payload['code'])

test('a file that the repository removes or replaces at the start does not hide what it started', () => {
  const files = {
    '.qwen/settings.json': { hooks: { SessionStart: group('x') } },
    'sub/.qwen/commands/a.toml': 'a',
    'a.md': '',
  }
  const folder = repository(files)
  const git = (...args: string[]) => assert.equal(spawnSync('git', ['-C', folder, ...args]).status, 0)
  const found = (below = '') =>
    startedByRepository({
      agent: 'qwen-code',
      cwd: path.join(folder, below),
      ignored: new Set(),
      isOurs: () => false,
    })
  const file = path.join(folder, '.qwen/settings.json')
  const settings = JSON.stringify(files['.qwen/settings.json'], null, 2)
  writeFileSync(file, `${settings}\n`)
  git('init', '--quiet')
  git('add', '--all')
  assert.deepEqual(found(), ['hooks.SessionStart in .qwen/settings.json'])
  writeFileSync(file, `${settings.slice(0, -2)},\n  "$version": 4\n}\n`)
  assert.deepEqual(found(), ['hooks.SessionStart in .qwen/settings.json'], 'Qwen Code adds its version')
  writeFileSync(file, '{}')
  assert.deepEqual(found(), ['.qwen/settings.json (changed just now)'])
  rmSync(file)
  rmSync(path.join(folder, 'a.md'))
  assert.deepEqual(found(), ['.qwen/settings.json (deleted)'])
  rmSync(path.join(folder, 'sub/.qwen'), { recursive: true })
  assert.deepEqual(found('sub'), ['.qwen/settings.json (deleted)', 'sub/.qwen/commands/a.toml (deleted)'])
  git('update-index', '--skip-worktree', '.qwen/settings.json')
  assert.deepEqual(found('sub'), ['sub/.qwen/commands/a.toml (deleted)'], 'left out of a sparse checkout')
  writeFileSync(path.join(folder, '.git/index'), 'DIRC')
  assert.deepEqual(found(), [], 'a broken index')
})

test('a session in a repository that starts something is a run with an error and an issue, until it changes once', async () => {
  const folder = repository({ '.git/HEAD': '', '.mcp.json': { mcpServers: { own: { command: './x' } } } })
  const first = session(folder)
  assert.match(await first.hook('SessionStart'), /starts or sets what no policy sees: mcpServers\.own in \.mcp\.json/)
  assert.deepEqual(await codesOf(first.id), ['repository_starts'])
  const second = session(folder)
  assert.doesNotMatch(await second.hook('SessionStart'), /no policy sees/)
  writeFileSync(path.join(folder, '.mcp.json'), JSON.stringify({ mcpServers: { other: { command: './x' } } }))
  assert.match(await session(folder).hook('SessionStart'), /mcpServers\.other/)
  await eventually(async () => {
    const { items } = await server.operator.listIssues({ params: { environmentId: server.environmentId } })
    return items.some(({ title }) => title === 'A repository starts or sets what no policy sees')
  }, 'the issue')
})

test('a tool that runs although it was refused is noticed', async () => {
  const { id, hook } = session(repository({}))
  assert.match(await hook('PreToolUse', tool('rm -rf /', 't-1')), /"deny"/)
  assert.match(
    await hook('PostToolUse', { ...tool('rm -rf /', 't-1'), tool_response: '' }),
    /ran although it was refused/,
  )
  assert.deepEqual(await codesOf(id), ['ran_refused'])
})

test('a hook that is stopped before it decided is no decision', async () => {
  const { id, hook, recordOf, variables } = session(repository({}))
  await hook('SessionStart')
  const child = startTacho(['hook', 'claude-code'], variables)
  child.stdin?.end(recordOf('PreToolUse', tool('git push', 't-1')))
  await eventually(async () => {
    const { items } = await server.operator.listApprovals({
      params: { environmentId: server.environmentId },
      query: { status: 'PENDING' },
    })
    return items.length > 0
  }, 'the approval')
  child.kill('SIGKILL')
  assert.match(await hook('PostToolUse', { ...tool('git push', 't-1'), tool_response: '' }), /no policy saw/)
  assert.deepEqual(await codesOf(id), ['no_decision'])
})
