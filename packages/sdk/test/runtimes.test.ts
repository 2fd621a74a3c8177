/**
 * The packed SDK in every installed runtime: each `node`, `bun` and `deno` on the PATH and in the folders of
 * TACHO_TEST_RUNTIMES. Missing runtimes count as skipped.
 */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { after, before, test } from 'node:test'
import { placeSdk } from './packed-sdk.ts'
import { startScriptedServer } from './scripted-server.ts'

const PROGRAM = `
import { readdirSync } from 'node:fs'
import { Tacho, ToolBlockedError } from '@tacho/sdk'
import { fakeTacho } from '@tacho/sdk/testing'

const [url, spool] = process.argv.slice(2)
const tacho = new Tacho({ apiKey: 'key', baseUrl: url, spool, onDiagnostic: ({ code }) => console.error(code) })
await tacho.ready()
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
await tacho.run({ runId: 'runtime' }, (run) =>
  run.span('outer', async () => {
    await wait(1)
    tacho.record({ type: 'NOTE', label: 'inner', payload: { password: 'hunter2', text: 'x'.repeat(20_000) } })
  }),
)
const spooled = readdirSync(spool).length
// The name is not a loopback address, so the client compresses if the runtime can.
const fetchLocal = (address, init) => fetch(address.replace('tacho.test', new URL(url).host), init)
const remote = new Tacho({ apiKey: 'key', baseUrl: 'http://tacho.test', fetch: fetchLocal, onDiagnostic: ({ code }) => console.error(code) })
await remote.run({ runId: 'remote' }, (run) => run.step('large', { text: 'x'.repeat(20_000) }))
const { sent } = await remote.shutdown()

const policy = { policyId: 'p', name: 'No refunds', version: '1', condition: 'tool.input.amount > 100.0', severity: 'HIGH', action: 'BLOCK' }
const fake = fakeTacho({ deployedPolicies: [policy] })
const refund = fake.tacho.guard(({ amount }) => amount, { name: 'refund' })
const allowed = await fake.tacho.run(() => refund({ amount: 1 }))
const blocked = await fake.tacho.run(() => refund({ amount: 500 })).catch((error) => error instanceof ToolBlockedError)
await fake.close()
console.log(JSON.stringify({ spooled, sent, allowed, blocked }))
// The first client delivers its events when this process ends.
`

/** An edge worker: web APIs and AsyncLocalStorage, but no other API of Node. */
const EDGE = `
const [url] = process.argv.slice(2)
const say = console.log
const { Buffer } = globalThis
for (const name of ['process', 'Buffer', 'setImmediate', 'global']) delete globalThis[name]
const { Tacho } = await import('@tacho/sdk')
const handed = []
const fetchLocal = (address, init) => {
  // Node's own fetch needs it.
  globalThis.Buffer = Buffer
  return fetch(address.replace('tacho.test', new URL(url).host), init)
}
const tacho = new Tacho({ apiKey: 'key', baseUrl: 'http://tacho.test', fetch: fetchLocal, onDiagnostic: ({ code }) => say(code) })
const waitUntil = (promise) => handed.push(promise)
await tacho.withRun({ runId: 'edge', waitUntil }, async () => {
  await new Promise((resolve) => setTimeout(resolve, 1))
  tacho.record({ type: 'NOTE', label: 'inner', payload: { text: 'é'.repeat(150_000) } })
})
const [delivered] = await Promise.all(handed)
say(JSON.stringify(delivered))
`

interface Runtime {
  name: string
  command: string
  args: string[]
}

let folder: string

before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'tacho-runtimes-'))
  await placeSdk(folder)
  mkdirSync(path.join(folder, 'node_modules/@tacho'), { recursive: true })
  symlinkSync(path.join(folder, 'package'), path.join(folder, 'node_modules/@tacho/sdk'))
  writeFileSync(path.join(folder, 'main.mjs'), PROGRAM)
})
after(() => rmSync(folder, { recursive: true, force: true }))

const found = new Map(runtimes().map((runtime) => [runtime.name, runtime]))
for (const name of ['Node 20', 'Node 22', 'Node 26', 'Bun', 'Deno']) {
  const runtime = found.get(name)
  const skip = runtime ? false : `${name} is not on the PATH or in TACHO_TEST_RUNTIMES.`
  test(`${name} records, spools, compresses, guards, and delivers at the end of the process`, { skip }, async (t) => {
    assert.ok(runtime)
    const server = await startScriptedServer()
    t.after(server.close)
    const spool = path.join(folder, name.replace(' ', '-'))
    const args = [...runtime.args, path.join(folder, 'main.mjs'), server.url, spool]
    const { stdout, stderr } = await promisify(execFile)(runtime.command, args, { cwd: folder })
    assert.equal(stderr, '')
    assert.deepEqual(JSON.parse(stdout), { spooled: 1, sent: 2, allowed: 1, blocked: true })
    const events = server.events().filter(({ runId }) => runId === 'runtime')
    assert.deepEqual(events.map(({ label }) => label).sort(), ['completed', 'inner', 'outer'])
    const [inner, outer] = ['inner', 'outer'].map((label) => events.find((event) => event.label === label))
    assert.equal(inner?.spanId, outer?.spanId)
    assert.equal(inner?.payload['password'], '[masked:credential]')
    assert.ok(server.batches.some(({ headers }) => headers['content-encoding'] === 'gzip'))
    // The segment is empty because everything is delivered.
    assert.deepEqual(
      readdirSync(spool).map((file) => statSync(path.join(spool, file)).size),
      [0],
    )
  })
}

test('an edge worker without process, Buffer and setImmediate records, and waitUntil covers the delivery', async (t) => {
  const server = await startScriptedServer()
  t.after(server.close)
  const file = path.join(folder, 'edge.mjs')
  writeFileSync(file, EDGE)
  const { stdout } = await promisify(execFile)(process.execPath, [file, server.url], { cwd: folder })
  const [shortened, delivered = ''] = stdout.trim().split('\n')
  assert.equal(shortened, 'payload_shortened')
  assert.deepEqual(JSON.parse(delivered), { sent: 2, rejected: 0, dropped: 0, left: 0 })
  assert.deepEqual(
    server.events().map(({ label }) => label),
    ['inner', 'completed'],
  )
})

function runtimes(): Runtime[] {
  const extra = (process.env['TACHO_TEST_RUNTIMES'] ?? '').split(path.delimiter)
  const folders = [path.dirname(process.execPath), ...extra, ...(process.env['PATH'] ?? '').split(path.delimiter)]
  const seen = new Set<string>()
  return folders.flatMap((place) =>
    ['node', 'bun', 'deno'].flatMap((tool) => {
      try {
        const command = realpathSync(path.join(place, tool))
        if (seen.has(command)) return []
        seen.add(command)
        const version = execFileSync(command, ['--version'], { encoding: 'utf8' })
        if (tool === 'node') return [{ name: `Node ${/^v(\d+)/.exec(version)?.[1]}`, command, args: [] }]
        if (tool === 'bun') return [{ name: 'Bun', command, args: [] }]
        return [{ name: 'Deno', command, args: ['run', '--allow-all', '--no-config', '--node-modules-dir=manual'] }]
      } catch {
        return []
      }
    }),
  )
}
