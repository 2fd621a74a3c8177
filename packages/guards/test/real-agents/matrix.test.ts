/**
 * The real programs with a scripted model, for every trick and every place of our hooks. The results are observed from outside:
 * did the command run, was it recorded, did the person get a message. UPDATE_DOCS=1 writes the table of docs/coding-agents.md.
 * Needs TACHO_TEST_FRAMEWORKS=1.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { ended, runTacho } from '../../../cli/test/tacho.ts'
import { isManagedAgent, managedFile } from '../../src/hook/managed.ts'
import { isModuleAgent } from '../../src/hook/modules.ts'
import { startGuardedServer, type GuardedServer } from '../guarded-server.ts'
import { startModel, type ToolUse } from './model-server.ts'
import { PROGRAMS, skip, type Program } from './programs.ts'
import { shellOf, TRICKS, type Trick } from './tricks.ts'
import type { AgentName } from '../../src/hook/agents.ts'

const INSTALLS = ['user', 'project', 'managed'] as const
type Install = (typeof INSTALLS)[number]
const installsOf = ({ agent }: Program): readonly Install[] =>
  INSTALLS.filter(
    (install) =>
      // The module of a project is the same file, elsewhere.
      install === 'user' || (install === 'project' ? !isModuleAgent(agent) : isManagedAgent(agent)),
  )

const SESSION_MS = 300_000
/** Number of sessions at the same time. */
const SESSIONS = 6
const UPDATES = process.env['UPDATE_DOCS'] !== undefined
const TACHO = fileURLToPath(new URL('../../../cli/bin/tacho', import.meta.url))
const DOCUMENT = fileURLToPath(new URL('../../../../docs/coding-agents.md', import.meta.url))
const BEGIN = '<!-- Written by packages/guards/test/real-agents/matrix.test.ts -->\n'
const END = '<!-- end -->\n'
/** Selects rows: patterns for the names of trick, program and place, all of which must match. */
const ONLY = process.env['TEST_ONLY_TRICK']?.split(',').map((pattern) => new RegExp(pattern))

/** Managed settings are in /etc, so each session gets its own copy of /etc. */
const WITH_ETC = ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /etc && exec "$@"']
const cannotMount = spawnSync('unshare', ['--mount', 'mount', '--bind', '/etc', '/etc']).status !== 0

let server: GuardedServer
let directory: string
before(async () => {
  if (skip) return
  directory = mkdtempSync(path.join(tmpdir(), 'real-agents-'))
  server = await startGuardedServer()
  await server.deploy({
    'no-file': { condition: 'has(tool.input.command) && tool.input.command.contains("not-allowed")', action: 'BLOCK' },
  })
})
after(async () => {
  if (skip) return
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

interface Service {
  url: string
  goDown: () => void
  goSilent: () => void
  comeBack: () => void
  close: () => void
}

/** The state folder of hooks belongs to the service's address, so a proxy simulates the outage. */
async function startProxy(): Promise<Service> {
  let state: 'up' | 'down' | 'silent' = 'up'
  const sockets = new Set<Socket>()
  const proxy = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    if (state === 'down') return socket.destroy()
    if (state === 'silent') return
    const up = connect(Number(new URL(server.url).port), '127.0.0.1').on('error', () => socket.destroy())
    socket.pipe(up).pipe(socket)
    return socket.on('close', () => up.destroy())
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    goDown: () => void (state = 'down'),
    goSilent: () => void (state = 'silent'),
    comeBack: () => void (state = 'up'),
    close() {
      for (const socket of sockets) socket.destroy()
      proxy.close()
    },
  }
}

interface Outcome {
  ran: boolean
  /** The types of the recorded events about tools. */
  recorded: readonly string[]
  /** Whether an issue reports that a tool ran without a decision, or with another input. */
  noticed: boolean
  told: boolean
  seconds: number
  output: string
}

async function session(trick: Trick, program: Program, install: Install): Promise<Outcome> {
  const place = mkdtempSync(path.join(directory, 'session-'))
  const [home, repository, etc] = ['home', 'repository', 'etc'].map((name) => path.join(place, name)) as [
    string,
    string,
    string,
  ]
  for (const folder of [home, repository]) mkdirSync(folder)
  spawnSync('git', ['init', '--quiet', repository])
  const inEtc = install === 'managed' ? [...WITH_ETC, etc] : []
  if (install === 'managed') {
    cpSync('/etc', etc, { recursive: true, verbatimSymlinks: true })
    // Managed hooks find the home of the user there.
    const users = readFileSync(path.join(etc, 'passwd'), 'utf8')
    writeFileSync(path.join(etc, 'passwd'), users.replace(/^(root:.*:)[^:]*(:[^:]*)$/m, `$1${home}$2`))
  }
  const made = path.join(repository, 'not-allowed')
  const command = `touch ${made}`
  const given = trick.uses?.(command) ?? [program.shell(command)]
  const model = await startModel(given.length > 0 ? given : [program.shell('echo harmless')])
  const service = await startProxy()
  const state = path.join(home, '.local/state/tacho')
  const variables = { HOME: home, TACHO_URL: service.url, TACHO_API_KEY: server.variables['TACHO_API_KEY'] ?? '' }
  const run = (line: string[], env: Record<string, string>) => {
    const [file = '', ...args] = [...inEtc, ...line]
    const child = spawn(file, args, { cwd: repository, env: { PATH: '/usr/bin:/bin', ...env }, timeout: SESSION_MS })
    child.stdin.end()
    return ended(child)
  }
  try {
    const flag = { user: [], project: ['--project'], managed: ['--managed'] }[install]
    const line = [TACHO, 'hook', 'install', program.agent, '--yes', ...flag]
    const installed = await run(line, variables)
    assert.equal(installed.code, 0, installed.stderr)
    // An earlier session has loaded the policies.
    const settings = {
      user: path.join(home, program.settings),
      project: path.join(repository, program.projectSettings ?? program.settings),
      managed: isManagedAgent(program.agent) ? managedFile(program.agent, place) : '',
    }[install]
    const text = readFileSync(settings, 'utf8')
    const warmId = path.basename(place)
    const warm = { session_id: warmId, hook_event_name: 'SessionStart', source: 'startup', cwd: repository }
    const flagsOfHook = {
      user: [],
      project: ['--project'],
      managed: ['--account', path.join(etc, 'tacho/hook.json')],
    }[install]
    const hook = async () => {
      const env = { TACHO_STATE_DIR: state, HOME: home }
      const done = await runTacho(['hook', program.agent, ...flagsOfHook], env, JSON.stringify(warm))
      assert.equal(done.code, 0, done.stderr)
    }
    if (trick.without) rmSync(settings)
    else await hook()
    trick.prepare?.({
      program,
      home,
      repository,
      command,
      service,
      breakHook: () => writeFileSync(settings, text.replaceAll('/bin/tacho', '/bin/is-gone')),
    })
    // Add the files to git, as in a fetched repository. Ignore its file monitor, because its configuration may name programs.
    spawnSync('git', ['-C', repository, '-c', 'core.fsmonitor=false', 'add', '--all'])
    const flags = [...(trick.flags?.[program.agent] ?? []), ...(trick.untrusted ? [] : program.trust)]
    const start = program.start({ home, repository, model: model.url }, flags)
    const startedAt = performance.now()
    const { stdout, stderr } = await run(start.line, { HOME: home, ...start.env })
    const seconds = (performance.now() - startedAt) / 1_000
    service.comeBack()
    // The next session delivers the events that the hooks could not deliver.
    await eventually(
      async () => {
        if (!trick.without) await hook()
        return globSync(path.join(state, '*/spool/*')).every((file) => statSync(file).size === 0)
      },
      'an empty spool',
      SESSION_MS,
    )
    const output = stdout + stderr
    const id = /(?:session[_ ]?id"?:\s*"?|"type":"session".{0,40}"id":")(ses_\w+|[0-9a-f-]{36})/i.exec(output)?.[1]
    const runs = await server.runs()
    const events = runs.some(({ runId }) => runId === id) ? await server.events(id ?? '') : []
    const recorded = events.map(({ eventType }) => eventType).filter((type) => TOLD_OF_TOOLS.has(type))
    // The hooks at a session's end tell the service before they end.
    const noticed =
      id !== undefined && events.some(({ eventType, payload }) => eventType === 'ERROR' && NOTICES.has(payload['code']))
    const told = /Tacho|tacho: |A policy forbids/.test(output)
    const seen = [output, ...model.outputs()].join('\n')
    return { ran: existsSync(made), recorded, noticed, told, seconds, output: seen }
  } finally {
    model.close()
    service.close()
  }
}

const TOLD_OF_TOOLS = new Set(['POLICY_DECISION', 'TOOL_CALL', 'ERROR'])

const NOTICES = new Set<unknown>(['no_decision', 'changed_after_decision', 'repository_starts', 'ran_refused'])

function cellOf({ ran, recorded, noticed, told }: Outcome): string {
  if (noticed) return ran ? '**runs**, noticed' : 'blocked, noticed'
  // A recorded harmless command that ran needs no message.
  const isSilent = !told && (ran || !recorded.includes('TOOL_CALL'))
  const kept = recorded.length > 0 ? 'recorded' : 'nothing recorded'
  return `${ran ? '**runs**' : 'blocked'}, ${kept}${isSilent ? ', no message' : ''}`
}

function readDocument(): { before: string; table: string; after: string } {
  const [first = '', rest = ''] = readFileSync(DOCUMENT, 'utf8').split(BEGIN)
  const [table = '', last = ''] = rest.split(END)
  return { before: first, table, after: last }
}

/** Cells of the table, by the names of trick, program and place. */
function cellsIn(table: string): Map<string, string> {
  const lines = table.trim().split('\n')
  const [header = [], , ...rows] = lines.map((line) => line.slice(2, -2).split(' | '))
  const pairs = rows.flatMap(([what, ...cells]) =>
    cells.map((cell, index) => [`${what} | ${header[index + 1]?.replace(/, (\w+)$/, ' | $1')}`, cell] as const),
  )
  return new Map(pairs)
}

const options = { skip: skip || (cannotMount && 'needs unshare and mount'), timeout: 3_600_000 }

/** Tools of each program that do no harm, and calls that fail before any hook. */
const HARMLESS: Partial<Record<AgentName, readonly ToolUse[]>> = {
  'claude-code': [
    { name: 'Bash', input: { command: 'echo harmless', description: 'Says so.' } },
    { name: 'Bash', input: { command: 'exit 3', description: 'Fails.' } },
    { name: 'Bash', input: { timeout: 1 } },
    { name: 'NoSuchTool', input: {} },
    { name: 'Glob', input: { pattern: '*.md' } },
    { name: 'Read', input: { file_path: '/nonexistent' } },
    { name: 'TaskCreate', input: { subject: 'A', description: 'A', activeForm: 'A' } },
    { name: 'TodoWrite', input: { todos: [{ content: 'a', status: 'pending', activeForm: 'a' }] } },
    { name: 'Agent', input: { description: 'a', prompt: 'Say hello.', subagent_type: 'general-purpose' } },
  ],
  'qwen-code': [
    { name: 'run_shell_command', input: { command: 'echo harmless', description: 'Says so.', is_background: false } },
    { name: 'run_shell_command', input: { command: 'exit 3', description: 'Fails.', is_background: false } },
    { name: 'run_shell_command', input: {} },
    { name: 'no_such_tool', input: {} },
    { name: 'read_file', input: { file_path: '/nonexistent/none.md' } },
    { name: 'todo_write', input: { todos: [{ id: '1', content: 'a', status: 'pending' }] } },
  ],
  opencode: [
    { name: 'bash', input: { command: 'echo harmless', description: 'Says so.' } },
    { name: 'bash', input: { command: 'exit 3', description: 'Fails.' } },
    { name: 'bash', input: {} },
    { name: 'no_such_tool', input: {} },
    { name: 'read', input: { filePath: '/nonexistent' } },
    { name: 'todowrite', input: { todos: [{ content: 'a', status: 'pending', priority: 'low' }] } },
  ],
  pi: [
    { name: 'bash', input: { command: 'echo harmless' } },
    { name: 'bash', input: { command: 'exit 3' } },
    { name: 'bash', input: {} },
    { name: 'no_such_tool', input: {} },
    { name: 'read', input: { path: '/nonexistent' } },
  ],
  'gemini-cli': [
    { name: 'run_shell_command', input: { command: 'echo harmless', description: 'Says so.' } },
    { name: 'run_shell_command', input: { command: 'exit 3', description: 'Fails.' } },
    { name: 'run_shell_command', input: {} },
    { name: 'no_such_tool', input: {} },
    { name: 'read_file', input: { file_path: 'none.md' } },
    { name: 'write_file', input: { file_path: 'a.md', content: 'a' } },
  ],
  copilot: [
    { name: 'bash', input: { command: 'echo harmless', description: 'Says so.' } },
    { name: 'bash', input: { command: 'exit 3', description: 'Fails.' } },
    { name: 'bash', input: {} },
    { name: 'no_such_tool', input: {} },
    { name: 'view', input: { path: '/nonexistent' } },
  ],
  codex: [
    { name: 'exec_command', input: { cmd: 'echo harmless' } },
    { name: 'exec_command', input: { cmd: 'exit 3' } },
    { name: 'exec_command', input: { wrong: 1 } },
    { name: 'no_such_tool', input: {} },
    { name: 'update_plan', input: { plan: [{ step: 'a', status: 'pending' }] } },
    { name: 'view_image', input: { path: '/nonexistent.png' } },
    { name: 'exec_command', input: { cmd: 'sleep 1; echo late', yield_time_ms: 250 } },
    {
      name: 'write_stdin',
      input: (outputs) => ({ session_id: shellOf(outputs), chars: '', yield_time_ms: 2_000 }),
    },
  ],
}

for (const program of PROGRAMS) {
  const uses = HARMLESS[program.agent]
  if (!uses) continue
  test(`a usual session of ${program.title} with many tools makes no notice`, options, async (t) => {
    const outcome = await session({ what: 'usual', uses: () => uses }, program, 'user')
    t.diagnostic(outcome.output.slice(-6_000))
    assert.deepEqual([outcome.noticed, outcome.ran], [false, false])
    assert.ok(outcome.recorded.includes('TOOL_CALL'))
  })
}

test('every trick with the real programs', options, async (t) => {
  const tried = new Map<string, string>()
  const todo = TRICKS.flatMap((trick) =>
    PROGRAMS.filter(({ agent }) => trick.agents?.includes(agent) ?? true).flatMap((program) =>
      installsOf(program).map((install) => ({
        trick,
        program,
        install,
        name: `${trick.what} | ${program.title} | ${install}`,
      })),
    ),
  ).filter(({ name }) => !ONLY || ONLY.every((pattern) => pattern.test(name)))
  const expected = (cells: ReadonlyMap<string, string>): string => {
    const header = [
      'what happens',
      ...PROGRAMS.flatMap((program) => installsOf(program).map((install) => `${program.title}, ${install}`)),
    ]
    const rows = TRICKS.map(({ what, agents }) => [
      what,
      ...PROGRAMS.flatMap((program) =>
        installsOf(program).map((install) => {
          const known = cells.get(`${what} | ${program.title} | ${install}`)
          return known ?? (agents?.includes(program.agent) === false ? '–' : '')
        }),
      ),
    ])
    const table = [header, header.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |\n`).join('')
    const around = readDocument()
    return `${around.before}${BEGIN}\n${table}\n${END}${around.after}`
  }
  const next = async (): Promise<void> => {
    for (let each = todo.shift(); each; each = todo.shift()) {
      const outcome = await session(each.trick, each.program, each.install)
      // Another process may try other rows.
      const cells = new Map([
        ...(UPDATES ? cellsIn(readDocument().table) : []),
        ...tried.set(each.name, cellOf(outcome)),
      ])
      t.diagnostic(`${each.name}: ${cellOf(outcome)} [${outcome.recorded.join(' ')}], ${outcome.seconds.toFixed(1)} s`)
      // Write after each row, so that an interrupted run keeps its results.
      if (UPDATES) writeFileSync(DOCUMENT, expected(cells))
      if (ONLY) t.diagnostic(outcome.output.slice(-6_000))
    }
  }
  await Promise.all(Array.from({ length: SESSIONS }, next))
  // Keep the rows that this run did not select.
  const cells = new Map([...(ONLY ? cellsIn(readDocument().table) : []), ...tried])
  if (UPDATES) writeFileSync(DOCUMENT, expected(cells))
  assert.equal(readFileSync(DOCUMENT, 'utf8'), expected(cells), 'UPDATE_DOCS=1 writes the table')
})
