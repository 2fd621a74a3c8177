/** `tacho hook install`: what it writes, and that the installed command refuses a tool however it fails. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { API_KEY, ended, runTacho, type Ended } from '../../../cli/test/tacho.ts'
import { commandFor } from '../../src/hook/command.ts'
import { startGuardedServer, type GuardedServer } from '../guarded-server.ts'

let server: GuardedServer
let directory: string
before(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'tacho-install-'))
  server = await startGuardedServer()
  await server.deploy({
    'no-rm': { condition: 'tool.name == "Bash" && tool.input.command.contains("rm -rf")', action: 'BLOCK' },
  })
})
after(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

interface Settings {
  model: string
  hooks: Record<string, { hooks: { command: string }[] }[]>
}

/** Runs the command as agents do. */
async function runCommand(command: string, record: object, env: Record<string, string> = {}): Promise<Ended> {
  const child = spawn(command, { shell: true, env: { PATH: '/usr/bin:/bin', ...env } })
  child.stdin.on('error', () => undefined)
  child.stdin.end(JSON.stringify(record))
  return ended(child)
}

const beforeTool = (command: string, id = 'installed') => ({
  session_id: id,
  hook_event_name: 'PreToolUse',
  tool_name: 'Bash',
  tool_input: { command },
  tool_use_id: `${id}-${command}`,
})

/** A PATH with a fake Codex that reports this trust status for the hooks of a file; null: it does not know the request. */
function withCodex(file: string, trustStatus: string | null): string {
  const folder = mkdtempSync(path.join(directory, 'codex-'))
  const hook = { command: '/x/tacho hook codex', sourcePath: file, trustStatus }
  const answer = trustStatus === null ? {} : { data: [{ hooks: [{ ...hook, sourcePath: '/other' }, hook] }] }
  const program = `#!${process.execPath}
const { createInterface } = require('node:readline')
if (process.argv[2] !== 'app-server') process.exit(1)
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (id !== undefined) console.log(JSON.stringify({ id, result: method === 'hooks/list' ? ${JSON.stringify(answer)} : {} }))
})
`
  writeFileSync(path.join(folder, 'codex'), program, { mode: 0o755 })
  return `${folder}:${process.env['PATH']}`
}

test('check asks Codex whether it trusts the hooks', async () => {
  const home = path.join(directory, 'trust')
  const file = path.join(home, '.codex/hooks.json')
  const variables = { ...server.variables, HOME: home, CODEX_HOME: '', TACHO_STATE_DIR: path.join(home, 'state') }
  assert.equal((await runTacho(['hook', 'install', 'codex', '--yes'], variables)).code, 0)
  for (const [PATH, code, said] of [
    [withCodex(file, 'trusted'), 0, /^ {2}Codex trusts them\.$/m],
    [withCodex(file, 'untrusted'), 1, /^ {2}Codex does not run them, because you did not trust them yet: /m],
    [withCodex(file, 'modified'), 1, /^ {2}Codex does not run them/m],
    [withCodex('/elsewhere', 'trusted'), 1, /^ {2}Codex does not run them/m],
    [withCodex(file, null), 0, /^ {2}Codex runs them only if you trusted them/m],
  ] as const) {
    await eventually(async () => {
      const checked = await runTacho(['hook', 'check', 'codex'], { ...variables, PATH })
      assert.match(checked.stdout, said)
      assert.equal(checked.code, code, checked.stdout)
      return true
    }, `${code} from check`)
  }
})

test('a second agent needs no key, only the same address; check names agents without hooks in one line', async () => {
  const home = path.join(directory, 'second agent')
  const state = path.join(home, 'state')
  const own = { HOME: home, CLAUDE_CONFIG_DIR: '', CODEX_HOME: '', TACHO_STATE_DIR: state }
  const install = (agent: string, more: Record<string, string>) =>
    runTacho(['hook', 'install', agent, '--yes'], { ...own, ...more })
  const without = await install('claude-code', { TACHO_URL: server.url })
  assert.deepEqual([without.code, /No API key: set TACHO_API_KEY/.test(without.stderr)], [2, true])
  assert.equal((await runTacho(['hook', 'check'], own)).code, 1, 'no hooks at all')
  const { TACHO_URL, TACHO_API_KEY } = server.variables as Record<string, string>
  assert.equal((await install('claude-code', { TACHO_URL, TACHO_API_KEY } as Record<string, string>)).code, 0)
  const account = readFileSync(path.join(state, 'hook.json'), 'utf8')
  for (const more of [{}, { TACHO_URL: server.url }]) assert.equal((await install('qwen-code', more)).code, 0)
  const other = await install('codex', { TACHO_URL: 'http://127.0.0.1:9' })
  assert.equal(other.code, 2)
  assert.match(other.stderr, /hook\.json is for http:.*, not for http:\/\/127\.0\.0\.1:9: set TACHO_API_KEY\.\n$/)
  assert.equal(readFileSync(path.join(state, 'hook.json'), 'utf8'), account)
  const { code, stdout } = await runTacho(['hook', 'check'], own)
  assert.equal(code, 0, stdout)
  assert.match(stdout, /^claude-code, user .*: decides, .*^qwen-code, user .*: decides, /ms)
  const none = 'codex, gemini-cli, copilot, cursor, opencode, pi'
  const last = `No hooks, so tools run unchecked in: ${none}. For one that you use: tacho hook install <agent>`
  assert.equal(stdout.trim().split('\n').at(-1), last)
})

for (const [agent, name] of [
  ['claude-code', '.claude/settings.json'],
  ['codex', '.codex/hooks.json'],
] as const) {
  test(`install and uninstall ${agent}: what is there stays, twice changes nothing, only ours goes`, async () => {
    const home = path.join(directory, `home of ${agent}`)
    const file = path.join(home, name)
    mkdirSync(path.dirname(file), { recursive: true })
    const theirs = {
      model: 'opus',
      hooks: {
        PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command: 'mytacho hook other' }] }],
        Custom: [],
      },
    }
    writeFileSync(file, JSON.stringify(theirs))
    const state = path.join(home, 'state')
    const own = { HOME: home, CODEX_HOME: '', CLAUDE_CONFIG_DIR: '', TACHO_STATE_DIR: state }
    const variables = { ...server.variables, ...own, PATH: withCodex(file, 'trusted') }
    const unasked = await runTacho(['hook', 'install', agent], variables)
    assert.deepEqual([unasked.code, unasked.stderr], [3, 'Nothing was changed; add --yes to write.\n'])
    assert.match(unasked.stdout, /^\+ PreToolUse: .*\/tacho hook (claude-code|codex) .* {2}\(timeout 330 s\)$/m)
    assert.match(
      unasked.stdout,
      /^\+ SessionStart, UserPromptSubmit, .*: .*\(timeout 10 s\)$/m,
      'one line for a command',
    )
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), theirs)
    assert.ok(!existsSync(path.join(state, 'hook.json')))

    // An older version wrote this.
    const old = { type: 'command', command: `/old/packages/cli/bin/tacho hook ${agent}`, timeout: 330 }
    const { hooks: theirHooks } = theirs
    const older = { ...theirHooks, PreToolUse: [...theirHooks.PreToolUse, { hooks: [old] }], Stop: [{ hooks: [old] }] }
    writeFileSync(file, JSON.stringify({ ...theirs, hooks: older }))
    assert.equal((await runTacho(['hook', 'install', agent, '--yes'], variables)).code, 0)
    const written = readFileSync(file, 'utf8')
    assert.doesNotMatch(written, new RegExp(`${API_KEY}|/old/`))
    assert.equal(statSync(path.join(state, 'hook.json')).mode & 0o777, 0o600)
    const { hooks, model } = JSON.parse(written) as Settings
    assert.equal(model, 'opus')
    assert.equal(hooks['PreToolUse']?.length, 2)
    assert.equal(hooks['PreToolUse'][0]?.hooks[0]?.command, 'mytacho hook other')
    const again = await runTacho(['hook', 'install', agent, '--yes'], variables)
    assert.match(again.stdout, /needs no change/)
    assert.equal(readFileSync(file, 'utf8'), written)

    const commandOf = (event: string) => hooks[event]?.at(-1)?.hooks[0]?.command ?? ''
    const session = `installed-${agent}`
    const started = { session_id: session, hook_event_name: 'SessionStart', source: 'startup' }
    // Everything that a repository's settings can set in the environment.
    const evil = path.join(home, 'evil')
    mkdirSync(evil)
    for (const program of ['sh', 'node', 'env', 'dirname', 'readlink', 'find', 'cat']) {
      writeFileSync(path.join(evil, program), '#!/bin/sh\nexit 0\n', { mode: 0o755 })
    }
    writeFileSync(path.join(evil, 'exit.cjs'), 'process.exit(0)')
    const hostile = {
      PATH: evil,
      NODE_OPTIONS: `--require=${path.join(evil, 'exit.cjs')}`,
      NODE_COMPILE_CACHE: evil,
      TACHO_URL: 'http://127.0.0.1:9',
      TACHO_API_KEY: 'tacho_other_key',
      TACHO_STATE_DIR: evil,
      HOME: evil,
      XDG_STATE_HOME: evil,
    }
    // Try again, because on a slow machine the service may answer later than a hook waits.
    await eventually(async () => {
      const start = await runCommand(commandOf('SessionStart'), started, hostile)
      assert.deepEqual([start.code, start.stdout, start.stderr], [0, '', ''])
      return true
    }, 'the policies')
    const blocked = await runCommand(commandOf('PreToolUse'), beforeTool('rm -rf /', session), hostile)
    assert.equal(blocked.code, 0, blocked.stderr)
    assert.match(blocked.stdout, /^\{"hookSpecificOutput":.*"permissionDecision":"deny".*A policy forbids/)
    const allowed = await runCommand(commandOf('PreToolUse'), beforeTool('ls', session), hostile)
    assert.deepEqual([allowed.code, allowed.stdout, allowed.stderr], [0, '', ''])
    const end = { session_id: session, hook_event_name: 'SessionEnd', reason: 'other' }
    assert.equal((await runCommand(commandOf('SessionEnd'), end, hostile)).code, 0)
    await eventually(async () => {
      // A new session delivers the events that earlier hooks could not deliver.
      await runCommand(commandOf('SessionStart'), { ...started, session_id: 'next' })
      const events = await server.events(session)
      assert.deepEqual(
        events.map(({ eventType }) => eventType),
        // The allowed call did not report before the session ended.
        ['AGENT_STEP', 'POLICY_DECISION', 'TOOL_START', 'TOOL_CALL', 'SESSION_OUTCOME'],
      )
      return true
    }, 'the events')

    // Run the hook directly, as settings that somebody wrote by hand do.
    const elsewhere = { ...variables, TACHO_URL: 'http://127.0.0.1:9', TACHO_API_KEY: 'tacho_other_key' }
    const kept = await runTacho(['hook', agent], elsewhere, JSON.stringify({ ...started, session_id: `kept-${agent}` }))
    assert.match(kept.stdout, /Tacho ignores TACHO_URL and TACHO_API_KEY of the environment; .*hook\.json has/)
    await eventually(async () => {
      await runTacho(['hook', agent], elsewhere, JSON.stringify({ ...started, session_id: 'later' }))
      return (await server.events(`kept-${agent}`)).length === 1
    }, 'the stored key and address')

    const checked = () => runTacho(['hook', 'check', agent], variables)
    const good = await checked()
    assert.equal(good.code, 0, good.stderr + good.stdout)
    assert.match(good.stdout, new RegExp(`^${agent}, user .*: decides, in \\d+ ms\\n(  .*\\n)?  .*--managed\\.\\n$`))
    writeFileSync(file, written.replaceAll('bin/tacho', 'bin/is-gone'))
    assert.match((await checked()).stdout, /no hooks\. Its tools run unchecked/)
    writeFileSync(file, written.replaceAll('cli/bin/tacho', 'gone/bin/tacho'))
    const gone = await checked()
    assert.deepEqual([gone.code, /: refuses every tool: .*run: tacho hook install/s.test(gone.stdout)], [1, true])
    writeFileSync(file, JSON.stringify({ ...theirs, hooks: older }))
    assert.match((await checked()).stdout, /written by an older version, and runs tools if it fails: install again/)
    writeFileSync(file, JSON.stringify({ ...(JSON.parse(written) as object), disableAllHooks: true }))
    if (agent === 'claude-code') assert.match((await checked()).stdout, /They are switched off in .*settings\.json\.$/m)
    writeFileSync(file, written)

    assert.equal((await runTacho(['hook', 'uninstall', agent, '--yes'], variables)).code, 0)
    const none = await checked()
    assert.deepEqual(
      [none.code, none.stdout.trim()],
      [1, `${agent}: no hooks. Its tools run unchecked: tacho hook install ${agent}`],
    )
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), theirs)
    writeFileSync(file, '{ broken')
    const broken = await runTacho(['hook', 'install', agent, '--yes'], variables)
    assert.deepEqual([broken.code, /is not JSON; nothing was changed/.test(broken.stderr)], [1, true])
    assert.equal(readFileSync(file, 'utf8'), '{ broken')
  })
}

const TACHO = fileURLToPath(new URL('../../../cli/bin/tacho', import.meta.url))

const DENIED =
  '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"No."}}'

const WITH_ETC = ['--mount', 'sh', '-c', 'mount --bind "$0" /etc && exec "$@"']
const cannotMount = spawnSync('unshare', ['--mount', 'mount', '--bind', '/etc', '/etc']).status !== 0
const skip = (cannotMount || process.getuid?.() !== 0) && 'needs root, unshare and mount'

for (const [agent, name, shown] of [
  ['claude-code', 'claude-code/managed-settings.d/tacho.json', /^\+ .*"allowManagedHooksOnly": true/m],
  ['codex', 'codex/requirements.toml', /^\+ allow_managed_hooks_only = true/m],
  ['gemini-cli', 'gemini-cli/settings.json', /^\+ .*"hooksConfig": \{\n\+ +"enabled": true/m],
  ['qwen-code', 'qwen-code/settings.json', /^\+ .*"disableAllHooks": false/m],
  ['cursor', 'cursor/hooks.json', /^\+ .*"version": 1/m],
] as const) {
  test(`install --managed ${agent}: shown first, for every user, and undone`, { skip }, async () => {
    const etc = path.join(directory, `etc-${agent}`)
    mkdirSync(etc)
    // The hook gets no HOME: the folder of its files is in the home of the user who runs it.
    writeFileSync(path.join(etc, 'passwd'), `root:x:0:0:root:${directory}:/bin/sh\n`)
    const tacho = (...args: string[]): Promise<Ended> => {
      const line = [...WITH_ETC, etc, TACHO, 'hook', ...args]
      const env = { PATH: '/usr/bin:/bin', HOME: directory, ...server.variables }
      const child = spawn('unshare', line, { env })
      child.stdin.end()
      return ended(child)
    }
    const file = path.join(etc, name)
    const unasked = await tacho('install', agent, '--managed')
    assert.deepEqual([unasked.code, unasked.stderr], [3, 'Nothing was changed; add --yes to write.\n'])
    assert.match(unasked.stdout, shown)
    assert.ok(!existsSync(file) && !existsSync(path.join(etc, 'tacho')))
    const written = await tacho('install', agent, '--managed', '--yes')
    assert.equal(written.code, 0, written.stderr)
    const text = readFileSync(file, 'utf8')
    assert.doesNotMatch(text, new RegExp(`${API_KEY}|TACHO_STATE_DIR`))
    assert.deepEqual(
      [file, path.join(etc, 'tacho/hook.json')].map((each) => statSync(each).mode & 0o777),
      [0o644, 0o644],
    )
    assert.equal(statSync(path.join(etc, 'tacho')).mode & 0o777, 0o755)
    assert.match((await tacho('install', agent, '--managed', '--yes')).stdout, /needs no change/)
    await eventually(async () => {
      const checked = await tacho('check', agent)
      assert.match(checked.stdout, new RegExp(`^${agent}, managed .*: decides, in \\d+ ms$`, 'm'))
      return true
    }, 'the policies')
    assert.equal((await tacho('uninstall', agent, '--managed')).code, 3)
    assert.equal((await tacho('uninstall', agent, '--managed', '--yes')).code, 0)
    assert.ok(!existsSync(file))
    const others =
      agent === 'codex'
        ? ['allowed_sandbox_modes = ["read-only"]\n']
        : ['{"hooks":{}}', JSON.stringify({ ...(JSON.parse(text) as object), addedByAnAdministrator: 1 })]
    for (const other of others) {
      writeFileSync(file, other)
      for (const act of ['install', 'uninstall']) {
        const { code, stderr } = await tacho(act, agent, '--managed', '--yes')
        assert.deepEqual([code, stderr.endsWith('is not from tacho; nothing was changed.\n')], [1, true])
      }
      assert.equal(readFileSync(file, 'utf8'), other)
    }
  })
}

/** A folder of programs where `tacho` is this script. */
function programs(tacho: string | null): string {
  const folder = mkdtempSync(path.join(directory, 'bin '))
  if (tacho !== null) writeFileSync(path.join(folder, 'tacho'), `#!/bin/sh\n${tacho}\n`, { mode: 0o755 })
  return folder
}

const lineOf = (folder: string, event = 'PreToolUse') =>
  commandFor(
    { agent: 'claude-code', program: path.join(folder, 'tacho'), flags: [], stateFolder: '/nonexistent' },
    event,
    {
      TACHO_STATE_DIR: '/nonexistent',
    },
  )

for (const [what, script] of [
  ['is gone', null],
  ['ends with 1', 'exit 1'],
  ['ends with 127', 'exit 127'],
  ['says no by its exit code', 'echo because >&2; exit 2'],
  ['is killed', 'kill -KILL $$'],
  ['is killed after its answer', "printf '{}\\n'; kill -KILL $$"],
  ['ends with 1 after its answer', "printf '{}\\n'; exit 1"],
  ['says nothing', 'exit 0'],
  ['answers with a text', 'echo fine'],
  ['answers half', `printf '%s' '${DENIED.slice(0, -4)}'`],
  ['answers with other JSON', `echo '{"decision":"approve"}'`],
  ['answers with yes', `echo '${DENIED.replace('deny', 'allow')}'`],
  ['writes a line before its answer', `echo started; echo '${DENIED}'`],
  ['has a Node that does not start', `exec /nonexistent/node`],
] as const) {
  test(`a tool does not run if the program ${what}`, async () => {
    const { code, stdout, stderr } = await runCommand(lineOf(programs(script)), beforeTool('ls'))
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, /so the tool was not run\. If it is broken, run: tacho hook install\n$/)
  })
}

test('a tool does not run if the program is empty, a folder, a broken link or in a missing folder', async () => {
  const empty = programs('')
  writeFileSync(path.join(empty, 'tacho'), '')
  const isFolder = programs(null)
  mkdirSync(path.join(isFolder, 'tacho'))
  const notExecutable = programs(`printf '{}\\n'`)
  chmodSync(path.join(notExecutable, 'tacho'), 0o644)
  const dangling = programs(null)
  symlinkSync('/nonexistent', path.join(dangling, 'tacho'))
  for (const folder of [empty, isFolder, notExecutable, dangling, '/nonexistent']) {
    const { code, stdout } = await runCommand(lineOf(folder), beforeTool('ls'))
    assert.deepEqual([code, stdout], [2, ''], folder)
  }
})

test('a whole answer goes through, and no objection is none', async () => {
  for (const answer of [DENIED, '{"systemMessage":"Tacho warns."}']) {
    const { code, stdout, stderr } = await runCommand(lineOf(programs(`echo '${answer}'`)), beforeTool('ls'))
    assert.deepEqual([code, stdout, stderr], [0, `${answer}\n`, ''])
  }
  const { code, stdout } = await runCommand(lineOf(programs(`echo '{}'`)), beforeTool('ls'))
  assert.deepEqual([code, stdout], [0, ''])
})

test('at other steps, a broken program never keeps the agent from stopping', async () => {
  for (const script of [null, 'exit 1', 'kill -KILL $$']) {
    const { code, stdout } = await runCommand(lineOf(programs(script), 'Stop'), {})
    assert.ok(code !== 2 && stdout === '', String(code))
  }
})

test('the environment of the hook is its own', async () => {
  const folder = programs(`/usr/bin/env | /usr/bin/sort >"$(/usr/bin/dirname "$0")/seen"; printf '{}\\n'`)
  await runCommand(lineOf(folder), beforeTool('ls'), {
    ANYTHING: 'x',
    NODE_OPTIONS: '--nothing',
    TACHO_URL: 'http://x',
  })
  const names = readFileSync(path.join(folder, 'seen'), 'utf8')
    .split('\n')
    .map((line) => line.split('=')[0])
  assert.deepEqual(
    names.filter((name) => name !== '' && !['PWD', '_', 'OLDPWD', 'SHLVL'].includes(name ?? '')),
    ['PATH', 'TACHO_STATE_DIR'],
  )
})
