/** On an edge platform, the masking code loads in the background, and may be slow or fail. No event leaves unmasked. */
import assert from 'node:assert/strict'
import { registerHooks } from 'node:module'
import { test, type TestContext } from 'node:test'
import { startScriptedServer, type ScriptedServer } from './scripted-server.ts'

/** How the next import of the masking code ends. */
let part: 'at once' | 'later' | 'never' = 'at once'
let imports = 0
const arrived = Promise.withResolvers<void>()
Object.assign(globalThis, { partArrived: arrived.promise })
registerHooks({
  resolve(specifier, context, next) {
    // The file that package.json selects on platforms without a `process`.
    if (/^#(?:process|whole)$/.test(specifier))
      return next(new URL('../src/process/none.ts', import.meta.url).href, context)
    const found = next(specifier, context)
    if (specifier !== './recording/writing.ts' || part === 'at once') return found
    if (part === 'never') throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
    return { ...found, url: `${found.url}?later=${imports++}` }
  },
  load(url, context, next) {
    if (!url.includes('?later=')) return next(url, context)
    const real = JSON.stringify(url.slice(0, url.indexOf('?')))
    const source = `await globalThis.partArrived; export const { createWriting } = await import(${real})`
    return { format: 'module', source, shortCircuit: true }
  },
})
const { Tacho } = await import('../src/index.ts')

const SECRETS = ['hunter2hunter2', 'sk-AbCdEf0123456789AbCdEf', 'ghp_0123456789abcdefghij', 'AKIAIOSFODNN7EXAMPLE']
const [password, key, token, access] = SECRETS as [string, string, string, string]

/** Records secrets in every place that is masked. */
function recordSecrets(tacho: InstanceType<typeof Tacho>): void {
  const run = tacho.startRun({ runId: 'secret' })
  const input = { password, nested: [{ apiKey: key }] }
  run.userInput(`my key is ${key}`)
  run.toolCall({ toolName: `call ${token}`, input, error: new Error(`login failed: password=${password}`) })
  run.llmCall({ model: access, output: JSON.stringify({ text: `token: ${token}` }) })
  run.error(new Error(`denied for ${access}`, { cause: new Error(`Authorization: Bearer ${key}`) }))
  run.record({
    type: 'CUSTOM',
    label: `label ${access}`,
    payload: { [`at ${token}`]: 1, long: `${'x '.repeat(500_000)}${key}` },
  })
  // A later change must not affect the recorded value.
  input.password = 'changed'
  run.end('FAILED', { error: `${token} expired` })
}

async function edge(
  t: TestContext,
): Promise<{ server: ScriptedServer; tacho: InstanceType<typeof Tacho>; codes: string[] }> {
  const server = await startScriptedServer()
  t.after(server.close)
  const codes: string[] = []
  const tacho = new Tacho({ apiKey: 'key', baseUrl: server.url, onDiagnostic: ({ code }) => codes.push(code) })
  return { server, tacho, codes }
}

function assertMasked(server: ScriptedServer): void {
  const sent = JSON.stringify(server.events())
  for (const secret of SECRETS) assert.ok(!sent.includes(secret), `${secret} left the process`)
}

test('events wait for a part that is slow to load, and leave masked', async (t) => {
  part = 'later'
  const { server, tacho } = await edge(t)
  recordSecrets(tacho)
  // A flush with a short timeout does not wait for the masking code.
  assert.equal((await tacho.flush(50)).left, 6)
  assert.deepEqual(server.batches, [])
  arrived.resolve()
  await tacho.shutdown(60_000)
  assert.equal(tacho.counters().accepted, 6)
  assertMasked(server)
  assert.match(JSON.stringify(server.events()), /login failed/, 'the rest is there')
})

test('without the part, events are delivered, and nothing of what they hold', async (t) => {
  part = 'never'
  const { server, tacho, codes } = await edge(t)
  recordSecrets(tacho)
  await tacho.shutdown(60_000)
  assert.equal(tacho.counters().accepted, 6)
  assertMasked(server)
  assert.deepEqual(
    [...new Set(server.events().map(({ label, payload }) => JSON.stringify([label, payload])))],
    ['["[masked:error]",{"masked":"[masked:error]"}]'],
  )
  assert.ok(codes.includes('masking_failed'))
})
