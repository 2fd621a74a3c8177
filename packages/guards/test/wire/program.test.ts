/** `tacho record` with programs of other languages: a shell program, curl, and what the machine has besides. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { startGuardedServer, type GuardedServer } from '../guarded-server.ts'
import { answerJson, chatAnswer, startScriptedModel, type ScriptedModel } from './scripted-model.ts'

const PROGRAM = fileURLToPath(new URL('../../../cli/bin/tacho', import.meta.url))

let server: GuardedServer
let model: ScriptedModel
let directory: string
before(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'tacho-wire-'))
  server = await startGuardedServer()
  model = await startScriptedModel((_asked, response) => answerJson(response, chatAnswer('Hello from the model.')))
})
after(async () => {
  await Promise.all([server.stop(), model.close()])
  rmSync(directory, { recursive: true, force: true })
})

let count = 0
function start(words: readonly string[], variables: Record<string, string> = {}, flags: readonly string[] = []) {
  const agent = `program-${count++}`
  const env = {
    ...process.env,
    ...server.variables,
    TACHO_STATE_DIR: path.join(directory, agent),
    OPENAI_BASE_URL: `${model.origin}/v1`,
    OPENAI_API_KEY: 'sk-live-secret',
    ...variables,
  }
  const child = spawn(PROGRAM, ['record', '--agent', agent, ...flags, '--', ...words], { env })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (piece: Buffer) => (output.stdout += piece.toString()))
  child.stderr.on('data', (piece: Buffer) => (output.stderr += piece.toString()))
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  return { child, agent, output, ended }
}

const runOf = (agent: string) =>
  eventually(
    async () => (await server.runs()).find((run) => run.agent.name === agent && run.status !== 'RUNNING'),
    `the run of ${agent}`,
  )

const ASK = `curl -sS "$OPENAI_BASE_URL/chat/completions" -H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' -d '{"model":"gpt-5","messages":[{"role":"user","content":"Hi"}]}'`

test('a shell program with curl: its output is its own, its calls are a run, its exit code is the outcome', async () => {
  const { agent, output, ended } = start(['sh', '-c', `${ASK}; exit 7`])
  const [code] = await ended
  assert.equal(code, 7, output.stderr)
  assert.equal(output.stdout, JSON.stringify(chatAnswer('Hello from the model.')))
  assert.equal(model.asked.at(-1)?.headers.authorization, 'Bearer sk-live-secret')
  const run = await runOf(agent)
  assert.equal(run.status, 'FAILED')
  const events = await server.events(run.runId)
  assert.deepEqual(
    events.map(({ eventType }) => eventType),
    ['USER_INPUT', 'LLM_CALL', 'SESSION_OUTCOME'],
  )
  assert.equal(events[2]?.payload['exitCode'], 7)
  assert.equal(JSON.stringify(events).includes('sk-live-secret'), false)
})

test('a signal reaches the program, and the run is cancelled', async () => {
  const { child, agent, output, ended } = start([
    'sh',
    '-c',
    'trap "echo stopped; exit 3" TERM; echo ready; while :; do sleep 0.05; done',
  ])
  await eventually(async () => output.stdout.includes('ready'), 'the program')
  child.kill('SIGTERM')
  const [code] = await ended
  assert.equal(code, 3)
  assert.match(output.stdout, /stopped/)
  assert.equal((await runOf(agent)).status, 'CANCELLED')
})

test('without Tacho the program runs all the same; the next recording delivers what was left', async () => {
  const state = path.join(directory, 'away')
  const away = start(['sh', '-c', ASK], { TACHO_URL: 'http://127.0.0.1:9', TACHO_STATE_DIR: state })
  const [code] = await away.ended
  assert.equal(code, 0)
  assert.equal(away.output.stdout, JSON.stringify(chatAnswer('Hello from the model.')))
  assert.match(away.output.stderr, /events were not delivered/)
})

test('a command that is not there is said so', async () => {
  const { output, ended } = start(['no-such-command-here'])
  const [code] = await ended
  assert.equal(code, 1)
  assert.match(output.stderr, /"no-such-command-here" cannot be started \(ENOENT\)/)
})

const SDK = fileURLToPath(new URL('../../../sdk/src/index.ts', import.meta.url))

test('a program that opens a client of the SDK is recorded by it alone', async () => {
  const script = `
    import { Tacho } from ${JSON.stringify(SDK)}
    const tacho = new Tacho({ agentName: 'its-own' })
    await tacho.run(async (run) => {
      const body = JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'Hi' }] })
      const answer = await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', body })
      run.llmCall({ model: 'gpt-5', output: (await answer.json()).choices[0].message })
    })
    await tacho.shutdown()`
  const { agent, output, ended } = start([process.execPath, '--input-type=module', '-e', script])
  const [code] = await ended
  assert.equal(code, 0, output.stderr)
  const run = await runOf('its-own')
  assert.equal(run.status, 'COMPLETED')
  assert.equal(
    (await server.runs()).some((one) => one.agent.name === agent),
    false,
  )
})

const TWICE = `${ASK}; echo; read line; ${ASK}; exit 5`

/** Revokes the key of the program between its two requests. */
async function revokedAmid(flags: readonly string[]) {
  const made = await server.json<{ id: string; key: string }>('keys', 'create', '--name', 'leaver', '--scopes', 'all')
  const { child, output, ended } = start(['sh', '-c', TWICE], { TACHO_API_KEY: made.key }, flags)
  await eventually(async () => output.stdout.includes('\n'), 'the first answer')
  await server.text('keys', 'revoke', made.id, '--yes')
  child.stdin.end('\n')
  const [code] = await ended
  assert.equal(code, 5, output.stderr)
  return { answers: output.stdout.split('\n'), stderr: output.stderr }
}

test('a key that is revoked amid a recording changes no byte for the program, and the message says so', async () => {
  const { answers, stderr } = await revokedAmid([])
  const answer = JSON.stringify(chatAnswer('Hello from the model.'))
  assert.deepEqual(answers, [answer, answer])
  assert.match(stderr, /The API key is missing, invalid or revoked: events wait/)
  assert.match(stderr, /\d+ events were not delivered; they stay in /)
})

test('a key that is revoked amid a recording guards by the last policies', async () => {
  await server.deploy({ 'no-deletes': { condition: 'tool.name.startsWith("delete_")', action: 'BLOCK' } })
  const { script } = model
  const names = ['list_all', 'delete_all']
  const call = (name: string) => chatAnswer(null, [{ id: 'c1', name, args: '{}' }])
  model.script = (_asked, response) => answerJson(response, call(names.shift() ?? ''))
  const { answers } = await revokedAmid(['--guard'])
  model.script = script
  assert.equal(answers[0], JSON.stringify(call('list_all')))
  assert.match(answers[1] ?? '', /"content":"The tool delete_all was not run\. A policy forbids this call\./)
})

test('a guarded program gets a refusal in place of the call', async () => {
  await server.deploy({ 'no-deletes': { condition: 'tool.name.startsWith("delete_")', action: 'BLOCK' } })
  model.script = (_asked, response) =>
    answerJson(response, chatAnswer(null, [{ id: 'c1', name: 'delete_all', args: '{}' }]))
  const { agent, output, ended } = start(['sh', '-c', ASK], {}, ['--guard'])
  await ended
  assert.match(output.stdout, /"content":"The tool delete_all was not run/)
  assert.doesNotMatch(output.stdout, /tool_calls":\[/)
  const events = await server.events((await runOf(agent)).runId)
  assert.equal(events.find(({ eventType }) => eventType === 'POLICY_DECISION')?.payload['action'], 'BLOCK')
})
