/** `tacho gateway` before a real Tacho: keys, runs of each conversation, limits, a killed gateway, Tacho away. */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import OpenAI from 'openai'
import { API_KEY } from '../../../cli/test/tacho.ts'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { freePort } from '../../../server/test/setup/free-port.ts'
import { startGateway } from '../../src/wire/gateway.ts'
import { startGuardedServer, type GuardedServer } from '../guarded-server.ts'
import { answerJson, chatAnswer, startScriptedModel, type ScriptedModel } from './scripted-model.ts'

const PROGRAM = fileURLToPath(new URL('../../../cli/bin/tacho', import.meta.url))

let server: GuardedServer
let model: ScriptedModel
let directory: string
const started: ChildProcess[] = []
before(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'tacho-gateway-'))
  server = await startGuardedServer()
  await server.deploy({ 'no-deletes': { condition: 'tool.name.startsWith("delete_")', action: 'BLOCK' } })
  model = await startScriptedModel((_asked, response) => answerJson(response, chatAnswer('Hello.')))
})
after(async () => {
  for (const child of started) child.kill('SIGKILL')
  await Promise.all([server.stop(), model.close()])
  rmSync(directory, { recursive: true, force: true })
})

async function start(args: readonly string[] = [], variables: Record<string, string> = {}) {
  const port = await freePort()
  const env = {
    ...process.env,
    ...server.variables,
    TACHO_STATE_DIR: path.join(directory, 'state'),
    OPENAI_BASE_URL: `${model.origin}/v1`,
    ...variables,
  }
  // The shell replaces itself by the program, so this is the program's process id.
  const child = spawn(PROGRAM, ['gateway', '--port', String(port), ...args], {
    env,
    stdio: 'pipe',
  })
  started.push(child)
  let [output, errors] = ['', '']
  child.stderr.on('data', (piece: Buffer) => (errors += piece.toString()))
  child.stdout.on('data', (piece: Buffer) => (output += piece.toString()))
  await eventually(async () => output.includes('Listening on'), 'the gateway')
  return { child, origin: `http://127.0.0.1:${port}`, errors: () => errors }
}

const clientOf = (origin: string, agent: string, key = API_KEY) =>
  new OpenAI({
    apiKey: 'sk-live',
    baseURL: `${origin}/-/openai/v1`,
    maxRetries: 0,
    defaultHeaders: { 'x-tacho-key': key, 'x-tacho-agent': agent },
  })

const ask = (client: OpenAI, content: string) =>
  client.chat.completions.create({ model: 'gpt-5', messages: [{ role: 'user', content }] })

const runsOf = async (agent: string) => (await server.runs()).filter((run) => run.agent.name === agent)

test('each conversation is a run of the key; a wrong key is refused, and no key of Tacho reaches the model', async () => {
  const { origin, child } = await start()
  const client = clientOf(origin, 'alice')
  await Promise.all([ask(client, 'one'), ask(client, 'two')])
  const wrong = await ask(clientOf(origin, 'eve', `tacho_${'x'.repeat(40)}`), 'three').catch((error: unknown) => error)
  assert.equal((wrong as { status: number }).status, 401)
  assert.equal(JSON.stringify(model.asked.map(({ rawHeaders }) => rawHeaders)).includes(API_KEY), false)
  child.kill('SIGTERM')
  await once(child, 'close')
  const runs = await runsOf('alice')
  assert.equal(runs.length, 2)
  assert.deepEqual(new Set(runs.map(({ status }) => status)), new Set(['COMPLETED']))
})

test('a name in another script is the agent of the run; one that cannot be read is ignored, and said so once', async () => {
  const { origin, child, errors } = await start()
  const asBytes = (text: string) => Buffer.from(text).toString('latin1')
  await ask(clientOf(origin, asBytes('Zoë 東京')), 'one')
  for (const unreadable of ['Zo\u00eb', '\u00ff\u00fe']) await ask(clientOf(origin, unreadable), `two ${unreadable}`)
  child.kill('SIGTERM')
  await once(child, 'close')
  assert.equal((await runsOf('Zoë 東京')).length, 1)
  assert.equal((await runsOf('gateway')).length, 2)
  assert.equal(errors().match(/a header X-Tacho-Agent that is not UTF-8/g)?.length, 1, errors())
})

test('a killed gateway has lost no answer that a client has: the next one delivers it', async () => {
  const first = await start()
  const client = clientOf(first.origin, 'killed')
  const { choices } = await ask(client, 'remember me')
  first.child.kill('SIGKILL')
  assert.equal(choices[0]?.message.content, 'Hello.')
  await once(first.child, 'close')
  const refused = await ask(client, 'again').catch((error: unknown) => error)
  assert.ok(refused instanceof OpenAI.APIConnectionError)
  const second = await start()
  await ask(clientOf(second.origin, 'next'), 'hello')
  // The killed gateway may have delivered the first event itself.
  await eventually(async () => {
    const [run] = await runsOf('killed')
    const types = run && (await server.events(run.runId)).map(({ eventType }) => eventType)
    assert.deepEqual(types, ['USER_INPUT', 'LLM_CALL'])
    return true
  }, 'the run of the killed gateway')
})

test('without Tacho, requests of new keys pass too, and are recorded later', async () => {
  const { origin } = await start([], { TACHO_URL: 'http://127.0.0.1:9' })
  const { choices } = await ask(clientOf(origin, 'away'), 'hi')
  assert.equal(choices[0]?.message.content, 'Hello.')
})

test('without Tacho, keys that anybody makes up do not fill the disk', async () => {
  const { origin, child } = await start([], { TACHO_URL: 'http://127.0.0.1:9' })
  const statuses = new Map<number, number>()
  for (let number = 0; number < 103; number++) {
    const headers = { 'x-tacho-key': `tacho_${String(number).padStart(20, '0')}` }
    const { status } = await fetch(`${origin}/-/openai/v1/models`, { headers })
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  assert.deepEqual(Object.fromEntries(statuses), { 200: 100, 503: 3 })
  child.kill('SIGKILL')
})

test('a key that is revoked passes for a minute at most, and stays refused when Tacho is away', async (t) => {
  const made = await server.json<{ id: string; key: string }>('keys', 'create', '--name', 'leaver', '--scopes', 'all')
  const warnings: string[] = []
  process.env['TACHO_STATE_DIR'] = path.join(directory, 'in-process')
  // A proxy in front of Tacho, to simulate an outage.
  let isAway = false
  const before = await startScriptedModel(async ({ path: of, headers, method, body }, response) => {
    if (isAway) return void response.destroy()
    const passed = Object.entries(headers).filter(([name]) => /^(x-api-key|content-(type|encoding))$/.test(name))
    const sent = {
      method,
      headers: passed as [string, string][],
      ...(method === 'POST' && { body: new Uint8Array(body) }),
    }
    const answer = await fetch(`${server.url}${of}`, sent)
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
    response.end(await answer.text())
  })
  const gateway = await startGateway({
    url: before.origin,
    host: '127.0.0.1',
    port: 0,
    capture: 'full',
    variables: { OPENAI_BASE_URL: `${model.origin}/v1` },
    warn: (message) => warnings.push(message),
  })
  t.after(() => Promise.all([gateway.close(0), before.close()]))
  const client = clientOf(gateway.origin, 'leaver', made.key)
  const status = () =>
    ask(client, 'hi').then(
      () => 200,
      (error: unknown) => (error as { status: number }).status,
    )
  assert.equal(await status(), 200)
  await server.text('keys', 'revoke', made.id, '--yes')
  assert.equal(await status(), 200)
  await eventually(async () => warnings.length > 0, 'a warning')
  assert.match(warnings.join('\n'), /The API key is missing, invalid or revoked: events wait/)
  const { now } = Date
  let later = 61_000
  t.mock.method(Date, 'now', () => now() + later)
  assert.equal(await status(), 401)
  isAway = true
  later += 11_000
  assert.equal(await status(), 401)
})

test('with --guard the policies of the key decide', async () => {
  const { origin } = await start(['--guard'])
  model.script = (_asked, response) =>
    answerJson(response, chatAnswer(null, [{ id: 'c1', name: 'delete_all', args: '{}' }]))
  const { choices } = await ask(clientOf(origin, 'guarded'), 'delete')
  model.script = (_asked, response) => answerJson(response, chatAnswer('Hello.'))
  assert.match(choices[0]?.message.content ?? '', /delete_all was not run/)
  assert.equal(choices[0]?.message.tool_calls, undefined)
})
