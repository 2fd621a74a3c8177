/** The extent of a project, the branch of a step, and the output of `tacho hook status`. */
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { openState } from '../../src/state.ts'
import { startGuardedServer, type GuardedServer, type RecordedEvent } from '../guarded-server.ts'
import { ended, runTacho, startTacho } from '../../../cli/test/tacho.ts'
import { permanentFolder } from './hook-session.ts'

let server: GuardedServer
let root: string
let project: string
before(async () => {
  root = permanentFolder()
  project = path.join(root, 'shop')
  mkdirSync(path.join(project, '.git'), { recursive: true })
  mkdirSync(path.join(project, 'src'))
  server = await startGuardedServer()
  await server.deploy({
    'stay-inside': { condition: '"writes_outside_project" in risk.signals', action: 'BLOCK' },
    'only-warn': { condition: 'tool.name == "Read"', action: 'WARN', severity: 'LOW' },
  })
})
after(async () => {
  await server.stop()
  rmSync(root, { recursive: true, force: true })
})

const variablesOf = (home: string, more: Record<string, string> = {}) => ({
  ...server.variables,
  HOME: home,
  TACHO_STATE_DIR: path.join(home, 'state'),
  ...more,
})

async function hook(home: string, event: string, fields: Record<string, unknown>, more = {}): Promise<string> {
  const record = { session_id: path.basename(home), cwd: project, hook_event_name: event, ...fields }
  const done = await runTacho(['hook', 'claude-code'], variablesOf(home, more), JSON.stringify(record))
  assert.equal(done.code, 0, done.stderr)
  return done.stdout
}

async function status(home: string, more: Record<string, string> = {}, cwd = project) {
  const child = startTacho(['hook', 'status'], variablesOf(home, more), cwd)
  child.stdin?.end()
  return ended(child)
}

const homeOf = (name: string): string => {
  const home = path.join(root, name)
  mkdirSync(home)
  return home
}
const bash = (command: string, id: string) => ({ tool_name: 'Bash', tool_input: { command }, tool_use_id: id })

test('a write outside the project is blocked, also after the session changed its folder', async () => {
  const home = homeOf('outside')
  // The agent's own file says where the session began.
  const transcript_path = path.join(home, 'session.jsonl')
  writeFileSync(
    transcript_path,
    `${JSON.stringify({ type: 'user', cwd: path.join(project, 'src'), message: '"cwd":"/"' })}\n`,
  )
  const refused = async (fields: Record<string, unknown>) =>
    (await hook(home, 'PreToolUse', { transcript_path, ...fields })).includes('"deny"')
  assert.equal(await refused(bash('echo x > ../x', 't-1')), true)
  assert.equal(await refused({ ...bash('echo x > ../x', 't-2'), cwd: path.join(project, 'src') }), false)
  assert.equal(await refused({ ...bash('echo x > x', 't-3'), cwd: root }), true)
  const write = { tool_name: 'Write', tool_use_id: 't-4' }
  assert.equal(await refused({ ...write, tool_input: { file_path: path.join(root, 'x'), content: '' } }), true)
  assert.equal(await refused({ ...write, tool_input: { file_path: path.join(project, 'x'), content: '' } }), false)
  assert.equal(await refused({ tool_name: 'Read', tool_use_id: 't-5', tool_input: { file_path: '/etc/hosts' } }), false)
})

test('the steps of a sub-agent are a branch of the run', async () => {
  const home = homeOf('branch')
  const agent = { agent_id: 'agent-1', agent_type: 'Explore' }
  await hook(home, 'SessionStart', { source: 'startup', agent_type: 'planner' })
  await hook(home, 'SubagentStart', agent)
  await hook(home, 'PreToolUse', { ...bash('rm /opt/x', 't-1'), ...agent })
  await hook(home, 'PostToolUse', { ...bash('ls', 't-2'), ...agent, tool_response: {} })
  await hook(home, 'SubagentStop', { ...agent, last_assistant_message: 'None.' })
  await hook(home, 'SessionEnd', { reason: 'other' })
  const events = (await server.events('branch')) as (RecordedEvent & { parentSpanId: string | null })[]
  const told = events.map(({ label, parentSpanId, payload }) => [label, parentSpanId, payload['subagent'] ?? null])
  assert.deepEqual(
    told.filter(([label]) => label !== 'no decision'),
    [
      ['session startup', null, null],
      ['claude-code to Explore', null, null],
      ['start of Explore', 'agent-1', 'Explore'],
      ['BLOCK Bash', 'agent-1', 'Explore'],
      ['Bash', 'agent-1', 'Explore'],
      ['end of Explore', 'agent-1', 'Explore'],
      ['session end', null, null],
    ],
  )
})

test('status: nothing is installed; then the hooks, the policies, the last decision here, and what waits', async () => {
  const home = homeOf('status')
  const none = await status(home, { TACHO_API_KEY: '' })
  assert.equal(none.code, 1)
  assert.match(none.stdout, /No address and key are known here/)
  const { code, stderr } = await runTacho(['hook', 'install', 'claude-code', '--yes'], variablesOf(home))
  assert.equal(code, 0, stderr)
  const fresh = await status(home)
  assert.equal(fresh.code, 0, fresh.stderr)
  for (const line of [
    `Project      ${project}`,
    'Hooks        claude-code (user)',
    `Service      ${server.url}, answers`,
    'Environment  default/development',
    'Decided      nothing in this project yet',
    'Waiting      nothing',
    'Policies     2, confirmed now',
  ]) {
    assert.ok(fresh.stdout.split('\n').includes(line), `${line}\n${fresh.stdout}`)
  }
  assert.match(fresh.stdout, /^stay-inside +HIGH +BLOCK$/m)
  await hook(home, 'PreToolUse', bash('rm /opt/x', 't-1'))
  // Events that a killed hook left in the spool.
  const { spool } = openState(
    { url: server.url, apiKey: server.variables['TACHO_API_KEY'] ?? '' },
    { TACHO_STATE_DIR: path.join(home, 'state') },
  )
  mkdirSync(spool, { recursive: true })
  writeFileSync(path.join(spool, 'host.1.1.left.events'), '{}\n{}\n')
  const inside = await status(home, {}, path.join(project, 'src'))
  assert.match(inside.stdout, /^Decided {6}refused Bash of claude-code, [\d.]+ m?s ago$/m)
  assert.match(inside.stdout, /^Waiting {6}[2-4] records at most, since /m)
  const elsewhere = await status(home, {}, root)
  assert.match(elsewhere.stdout, /^Decided {6}nothing in this project yet$/m)
  const stranger = await status(home, { TACHO_OPERATOR_TOKEN: '' })
  assert.match(stranger.stdout, /^Environment {2}that of the key; `tacho login` lets this command name it$/m)
  assert.ok(!(fresh.stdout + stranger.stdout).includes(server.variables['TACHO_API_KEY'] ?? '?'))
})

test('status: the service is down, and its last policies decide', async () => {
  const home = homeOf('down')
  const account = { ...variablesOf(home), TACHO_URL: 'http://127.0.0.1:9' }
  await runTacho(['hook', 'install', 'claude-code', '--yes'], account)
  const { stdout, code } = await status(home)
  assert.equal(code, 1)
  assert.match(stdout, /^Service {6}http:\/\/127\.0\.0\.1:9, did not confirm the policies$/m)
  assert.match(stdout, /^Environment {2}that of the key/m)
  assert.match(stdout, /^Policies {5}none are known, so every tool is denied$/m)
})
