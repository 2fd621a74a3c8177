/** Calls that no policy matches are decided without the SDK, and must give the same result as with it. */
import assert from 'node:assert/strict'
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { runHook } from '../../src/hook/run-hook.ts'
import { allowPlainCall } from '../../src/hook/session/plain-calls.ts'
import { readRecord, type HookRecord } from '../../src/hook/record.ts'
import { configurationFileIn, digest, stateDirectory } from '../../src/state.ts'
import { startGuardedServer, type GuardedServer, type PolicyOf } from '../guarded-server.ts'

let server: GuardedServer
let directory: string
let account: { url: string; apiKey: string }
before(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'tacho-plain-'))
  process.env['TACHO_STATE_DIR'] = directory
  server = await startGuardedServer()
  const { TACHO_URL: url = '', TACHO_API_KEY: apiKey = '' } = server.variables
  account = { url, apiKey }
})
after(async () => {
  delete process.env['TACHO_STATE_DIR']
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

let calls = 0
function record(event: string, fields: object = {}, session = 's-1'): HookRecord {
  const common = { session_id: session, hook_event_name: event, cwd: directory, prompt_id: `p-${++calls}` }
  const text = JSON.stringify({ ...common, ...fields })
  return readRecord('claude-code', text) as HookRecord
}
const call = (command: unknown, more: object = {}, session = 's-1') =>
  record('PreToolUse', { tool_name: 'Bash', tool_input: { command }, tool_use_id: `t-${++calls}`, ...more }, session)
const withSdk = (given: HookRecord) =>
  runHook(account, given, {
    agent: 'claude-code',
    approvalTimeoutMs: 1_000,
    unconfigured: 'deny',
    isProject: false,
    isManaged: false,
  })
const isPlain = (given: HookRecord, its = account) => allowPlainCall(its, 'claude-code', given)

const FACTS = {
  'tool.name': 'tool.name != "Bash"',
  'tool.input': 'tool.input.command.contains("danger")',
  pattern: 'tool.input.command.matches("(?i)^DAN")',
  'agent.id': 'agent.id != "claude-code"',
  'agent.name': 'agent.name != "claude-code"',
  'run.id': '!run.id.startsWith("s-")',
  'run.cost': 'run.cost != 0.0',
  'run.totalTokens': 'run.totalTokens != 0',
  'run.toolCalls': 'run.toolCalls >= 2',
  'session.id': '!session.id.startsWith("s-")',
  signals: '!("tool_shell" in risk.signals)',
  now: 'now < timestamp("2026-01-01T00:00:00Z")',
  annotations: 'size(tool.annotations) > 0',
}

test('a call is plain if no policy matches it, and only then', async () => {
  const policies = Object.entries(FACTS).map(([name, condition]) => [
    name.replace('.', '-').toLowerCase(),
    { condition, action: 'BLOCK' },
  ])
  await server.deploy({
    ...(Object.fromEntries(policies) as Record<string, PolicyOf>),
    outside: { condition: '"writes_outside_project" in risk.signals', action: 'WARN' },
    allowed: { condition: 'tool.input.command == "known"', action: 'ALLOW' },
    missing: {
      condition: 'tool.input.command == "fails" && tool.input.missing == 1',
      action: 'BLOCK',
      severity: 'LOW',
    },
  })
  await withSdk(record('UserPromptSubmit', { prompt: 'x' }))
  assert.ok(!isPlain(call('ls')), 'no hook has checked the conditions')
  await withSdk(call('ls'))
  const cases: [HookRecord, boolean][] = [
    [call('ls'), true],
    [call('danger'), false],
    [call('touch /elsewhere'), false],
    [call('known'), false],
    [call('fails'), false],
    [call('ls', { tool_name: 'Write' }), false],
    [call('ls', { tool_input: ['ls'] }), false],
    [call('ls', { tool_input: null }), false],
    [call('\ud800'), false],
    [call('ls', {}, 'other'), false],
  ]
  for (const [given, expected] of cases) {
    assert.equal(isPlain(given), expected, JSON.stringify(given.fields))
    const recorded = (await withSdk(given)) !== ''
    if (expected) assert.ok(!recorded)
  }
  const sessions = path.join(stateDirectory(account), 'sessions')
  await withSdk(record('PostToolUse', { tool_name: 'Bash', tool_use_id: 'a' }))
  assert.ok(isPlain(call('ls')), 'one call')
  appendFileSync(path.join(sessions, digest('s-1').slice(0, 32)), '.')
  assert.ok(!isPlain(call('ls')), 'two calls')
})

test('a plain call leaves what the same call leaves with the SDK', async () => {
  const state = stateDirectory(account)
  const left = () => {
    const calls = readdirSync(path.join(state, 'calls')).map((name) => [name, read(path.join(state, 'calls', name))])
    const judged = readFileSync(path.join(directory, 'judged', digest('s-2').slice(0, 32)), 'utf8')
    const spooled = existsSync(path.join(state, 'spool')) ? readdirSync(path.join(state, 'spool')) : []
    return { calls, judged: judged.split('\n').at(-2), spooled, decisions: readdirSync(path.join(state, 'decisions')) }
  }
  const read = (file: string) => ({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), startedAt: 0 })
  const given = call('ls -l', { tool_use_id: 'same' }, 's-2')
  assert.equal(await withSdk(given), '')
  const expected = left()
  assert.ok(isPlain(given))
  assert.deepEqual(left(), expected)
})

test('all that is unusual is left to the SDK', async () => {
  const state = stateDirectory(account)
  assert.ok(isPlain(call('ls', {}, 's-3')))
  const configuration = configurationFileIn(state)
  const kept = readFileSync(configuration, 'utf8')
  const conditions = path.join(state, 'conditions')
  const checked = readFileSync(conditions)
  const change = (file: string, content: string | Buffer, why: string) => {
    const before = readFileSync(file)
    writeFileSync(file, content)
    assert.ok(!isPlain(call('ls', {}, 's-3')), why)
    writeFileSync(file, before)
    assert.ok(isPlain(call('ls', {}, 's-3')))
  }
  change(configuration, kept.replace('danger', 'dinger'), 'another condition')
  change(configuration, kept.replace(/"policies":\[.*\]/, '"policies":[]'), 'no policies')
  change(configuration, '{', 'no JSON')
  change(conditions, checked.subarray(0, -1), 'not whole')
  rmSync(conditions)
  assert.ok(!isPlain(call('ls', {}, 's-3')), 'nothing is checked')
  writeFileSync(conditions, checked)
  const refusals = path.join(state, 'refusals')
  await withSdk(record('SessionStart'))
  const old = Date.now() / 1_000 - 31
  const body = JSON.parse(kept) as object
  writeFileSync(configuration, JSON.stringify({ ...body, confirmedAt: old * 1_000 }))
  assert.ok(isPlain(call('ls', {}, 's-3')), 'the file is new')
  utimesSync(configuration, old, old)
  assert.ok(!isPlain(call('ls', {}, 's-3')), 'not confirmed for 31 seconds')
  utimesSync(configuration, old + 60, old + 60)
  assert.ok(!isPlain(call('ls', {}, 's-3')), 'confirmed in the future')
  writeFileSync(configuration, kept)
  assert.ok(isPlain(call('ls', {}, 's-3')))
  assert.ok(!isPlain(call('ls', {}, 's-3'), { ...account, apiKey: 'tacho_other' }), 'another environment')
  assert.ok(!existsSync(refusals))
})
