import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { randomBytes } from 'node:crypto'
import Database from 'better-sqlite3'
import { newApiKey, newOperatorToken } from '../../src/domain/people/credential.ts'
import { eventually } from '../setup/eventually.ts'
import { heldRequest } from '../setup/held-request.ts'
import { startProcess, temporaryDirectory } from '../setup/process.ts'
import { event } from '../setup/service.ts'

const run = promisify(execFile)
const json = 'application/json'

const printed = (stdout: string) => ({
  key: /tacho_\w+/.exec(stdout)?.[0] ?? '',
  token: /tacho-operator_\w+/.exec(stdout)?.[0] ?? '',
  curl: stdout.split('\n').find((line) => line.startsWith('  curl ')) ?? '',
})

test('the first start prints a key, a token and a curl line that records an event; the second prints none', async (t) => {
  const directory = temporaryDirectory(t)
  const first = startProcess(t, directory)
  const url = await first.ready()
  const { key, token, curl } = printed(first.stdout())
  const { stdout } = await run('sh', ['-c', curl])
  assert.equal((JSON.parse(stdout) as { accepted: number }).accepted, 1)
  const next = `  TACHO_OPERATOR_TOKEN=${token} ./tacho runs show hello --url ${url}\n`
  assert.ok(first.stdout().includes(next), first.stdout())
  const runs = await fetch(`${url}/openapi/v1/runs`, { headers: { 'x-api-key': key } })
  assert.equal(((await runs.json()) as { items: unknown[] }).items.length, 1)
  const workspaces = await fetch(`${url}/operator/v1/workspaces`, { headers: { authorization: `Bearer ${token}` } })
  assert.equal(((await workspaces.json()) as { items: { name: string }[] }).items[0]?.name, 'default')
  assert.ok(!first.stderr().includes(key) && !first.stderr().includes(token))
  first.signal('SIGTERM')
  assert.equal(await first.ended(), 0)

  const second = startProcess(t, directory)
  const again = await second.ready()
  assert.equal(second.stdout().trim().split('\n').length, 1)
  assert.equal((await fetch(`${again}/openapi/v1/runs`, { headers: { 'x-api-key': key } })).status, 200)
  second.signal('SIGINT')
  assert.equal(await second.ended(), 0)
})

test('names and credentials of the first tenant can be supplied; supplied credentials are not printed', async (t) => {
  const [key, token] = [newApiKey(randomBytes).text, newOperatorToken(randomBytes).text]
  const file = path.join(temporaryDirectory(t), 'token')
  writeFileSync(file, `${token}\n`)
  const given = { TACHO_INIT_API_KEY: key, TACHO_INIT_OPERATOR_TOKEN_FILE: file, TACHO_INIT_WORKSPACE: 'acme' }
  const server = startProcess(t, temporaryDirectory(t), given)
  const url = await server.ready()
  for (const text of ['tacho_', 'tacho-operator_', 'curl']) assert.ok(!server.stdout().includes(text), text)
  assert.match(server.stdout(), /workspace "acme"/)
  const workspaces = await fetch(`${url}/operator/v1/workspaces`, { headers: { authorization: `Bearer ${token}` } })
  assert.equal(((await workspaces.json()) as { items: { name: string }[] }).items[0]?.name, 'acme')
})

test('SIGTERM under load loses no acknowledged event', async (t) => {
  const directory = temporaryDirectory(t)
  const server = startProcess(t, directory)
  const url = await server.ready()
  const { key } = printed(server.stdout())
  const acknowledged: string[] = []
  const failures: unknown[] = []
  let going = true
  async function client(name: number): Promise<void> {
    while (going) {
      const batch = Array.from({ length: 20 }, () => event({ runId: `run ${name}` }))
      const init = { method: 'POST', headers: { 'x-api-key': key, 'content-type': json }, body: JSON.stringify(batch) }
      const reply = await fetch(`${url}/openapi/v1/events/batch`, init).catch(() => null)
      if (reply === null) return
      const body = (await reply.json()) as { accepted?: number }
      if (body.accepted === batch.length) acknowledged.push(...batch.map(({ eventId }) => String(eventId)))
      else failures.push(body)
    }
  }
  const clients = Array.from({ length: 8 }, (_, name) => client(name))
  await eventually(() => acknowledged.length >= 1_000, '1,000 acknowledgements')
  server.signal('SIGTERM')
  assert.equal(await server.ended(), 0)
  going = false
  await Promise.all(clients)
  assert.deepEqual(failures, [], 'requests under way are answered, others find the port closed')
  const db = new Database(path.join(directory, 'tacho.db'), { readonly: true })
  const stored = new Set(db.prepare('SELECT event_id FROM events').pluck().all())
  db.close()
  assert.deepEqual(
    acknowledged.filter((id) => !stored.has(id)),
    [],
  )
})

test('a signal closes the port and ends readiness, but a running request is finished', async (t) => {
  const server = startProcess(t, temporaryDirectory(t))
  const url = await server.ready()
  const { key } = printed(server.stdout())
  const held = await heldRequest(url, key)
  server.signal('SIGTERM')
  // A process group delivers the same signal twice.
  server.signal('SIGTERM')
  const isRefused = () =>
    fetch(`${url}/readyz`).then(
      () => false,
      () => true,
    )
  await eventually(isRefused, 'the end of listening')
  const answer = await held.finish()
  assert.match(answer, /^HTTP\/1\.1 200 OK/)
  assert.match(answer, /\r\nconnection: close\r\n/i)
  assert.match(answer, /"accepted":1/)
  assert.equal(await server.ended(), 0)
})

test('a request that does not end is aborted after the drain timeout, and so is a silent connection', async (t) => {
  const server = startProcess(t, temporaryDirectory(t), { TACHO_DRAIN_TIMEOUT: '200ms' })
  const url = await server.ready()
  const silent = connect(Number(new URL(url).port), '127.0.0.1')
  silent.on('error', () => undefined)
  const { socket } = await heldRequest(url, printed(server.stdout()).key)
  socket.on('error', () => undefined)
  server.signal('SIGTERM')
  assert.equal(await server.ended(), 0)
  silent.destroy()
})

/** Writes more lines than a pipe holds, then leaves with 3. */
const LEAVING = `import { createLog } from ${JSON.stringify(new URL('../../src/process/log.ts', import.meta.url))}
const { logger, leave } = createLog('info')
for (let line = 0; line < 1_000; line++) logger.info({ line, text: 'x'.repeat(1_000) })
await leave(3)`

for (const [reader, lines, end] of [
  ['reads', 1_000, 3],
  ['has closed the pipe', 0, 3],
  ['has stopped', 0, 'SIGKILL'],
] as const) {
  test(`a log whose reader ${reader} does not keep the process from ending`, async (t) => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', LEAVING], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    t.after(() => child.kill('SIGKILL'))
    const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
    let text = ''
    if (lines > 0) child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    else if (end === 3) child.stderr.destroy()
    const [code, signal] = await ended
    assert.equal(code ?? signal, end)
    if (lines > 0 && !child.stderr.closed) await once(child.stderr, 'close')
    assert.equal(text.split('\n').length - 1, lines)
    child.stderr.destroy()
  })
}

for (const [signal, code] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const) {
  test(`a second ${signal}, more than a second after the first, ends the process at once`, async (t) => {
    const server = startProcess(t, temporaryDirectory(t), { TACHO_DRAIN_TIMEOUT: '10m' })
    const { socket } = await heldRequest(await server.ready(), printed(server.stdout()).key)
    socket.on('error', () => undefined)
    server.signal(signal)
    // The same signal within a second counts as one.
    await eventually(() => server.stderr().includes('draining'), 'a draining server')
    await wait(1_200)
    server.signal(signal)
    assert.equal(await server.ended(), code)
  })
}

/** Asserts that a start fails with exit code 1, and returns the sentence that it prints. */
async function refusal(...args: Parameters<typeof startProcess>): Promise<string> {
  const server = startProcess(...args)
  assert.equal(await server.ended(), 1)
  const lines = server.stderr().trim().split('\n')
  assert.equal(lines.length, 1, server.stderr())
  assert.match(lines[0] ?? '', /^tacho: .*\.$/)
  return lines[0] ?? ''
}

test('a used port is reported in one sentence, and the first credentials are still printed', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.after(() => taken.close())
  const { port } = taken.address() as AddressInfo
  const server = startProcess(t, temporaryDirectory(t), { TACHO_PORT: String(port) })
  assert.equal(await server.ended(), 1)
  assert.match(server.stderr(), new RegExp(`^tacho: Port ${port} on 127.0.0.1 is in use .*\\.\n$`))
  assert.notEqual(printed(server.stdout()).key, '')
  assert.equal(printed(server.stdout()).curl, '')
  assert.match(server.stdout(), /The server could not start, but the store stays: the next start uses it\./)
})

test('a host that is not an address of this machine is reported in one sentence', async (t) => {
  assert.match(
    await refusal(t, temporaryDirectory(t), { TACHO_HOST: '203.0.113.1' }),
    /"203.0.113.1" is not an address/,
  )
})

test('a second process on the same store is refused', async (t) => {
  const directory = temporaryDirectory(t)
  await startProcess(t, directory).ready()
  assert.match(await refusal(t, directory), /is open in another process/)
})

test('a data directory that cannot be created is reported in one sentence', async (t) => {
  const file = path.join(temporaryDirectory(t), 'file')
  writeFileSync(file, '')
  assert.match(await refusal(t, path.join(file, 'data')), /data directory .* cannot be used \(E\w+\)/)
})

test('a store of a newer version is refused', async (t) => {
  const directory = temporaryDirectory(t)
  const server = startProcess(t, directory)
  await server.ready()
  server.signal('SIGTERM')
  await server.ended()
  const db = new Database(path.join(directory, 'tacho.db'))
  db.exec("INSERT INTO migrations (version, name, sha256, applied_at) VALUES (999, '999_future.sql', '', 0)")
  db.close()
  assert.match(await refusal(t, directory), /newer version of Tacho/)
})

test('a file that is not a store is refused', async (t) => {
  const directory = temporaryDirectory(t)
  writeFileSync(path.join(directory, 'tacho.db'), 'this is not a database at all'.repeat(100))
  assert.match(await refusal(t, directory), /cannot be opened: file is not a database\./)
})

test('a snapshot left by a crash is removed at the start', async (t) => {
  const directory = temporaryDirectory(t)
  writeFileSync(path.join(directory, 'snapshot-left'), 'x')
  await startProcess(t, directory).ready()
  assert.ok(!readdirSync(directory).includes('snapshot-left'))
})

test('an uncaught error is logged and ends the process with 1', async (t) => {
  const server = startProcess(t, temporaryDirectory(t))
  await server.ready()
  server.signal('SIGUSR2')
  assert.equal(await server.ended(), 1)
  const last = JSON.parse(server.stderr().trim().split('\n').at(-1) ?? '') as { msg: string; err: { message: string } }
  assert.deepEqual([last.msg, last.err.message], ['unexpected failure', 'an error that no code catches'])
})
