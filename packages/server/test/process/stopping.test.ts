/** How a server process ends, and where it keeps the first credentials. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { test } from 'node:test'
import { eventually } from '../setup/eventually.ts'
import { startProcess, temporaryDirectory } from '../setup/process.ts'

for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
  test(`after ${signal} a server serves on, not ready, until the drain delay is over`, async (t) => {
    const server = startProcess(t, temporaryDirectory(t), { TACHO_DRAIN_DELAY: '5s' })
    const url = await server.ready()
    const key = /tacho_\w+/.exec(server.stdout())?.[0] ?? ''
    assert.equal((await fetch(`${url}/readyz`)).status, 200)
    const signalledAt = performance.now()
    server.signal(signal)
    const refusal = await eventually(async () => {
      const reply = await fetch(`${url}/readyz`)
      return reply.status === 503 ? ((await reply.json()) as { code: string }) : null
    }, 'the end of readiness')
    assert.equal(refusal.code, 'shutting_down')
    const reply = await fetch(`${url}/openapi/v1/runs`, { headers: { 'x-api-key': key } })
    assert.deepEqual([reply.status, reply.headers.get('connection')], [200, 'close'])
    assert.equal(await server.ended(), 0)
    assert.ok(performance.now() - signalledAt >= 5_000)
  })
}

test('a request that is on its way when the server stops is answered', async (t) => {
  const server = startProcess(t, temporaryDirectory(t), { TACHO_DRAIN_DELAY: '0s' })
  const url = await server.ready()
  const { hostname, port } = new URL(url)
  const late = connect(Number(port), hostname)
  await once(late, 'connect')
  // Connections are accepted in their order: one that only the system has accepted is reset when the server stops to listen.
  assert.equal((await fetch(`${url}/healthz`)).status, 200)
  server.signal('SIGTERM')
  await eventually(async () => {
    const other = connect(Number(port), hostname)
    const refused = await once(other, 'connect').then(
      () => false,
      () => true,
    )
    other.destroy()
    return refused
  }, 'the end of listening')
  late.write('GET /healthz HTTP/1.1\r\nHost: tacho\r\n\r\n')
  assert.match(await readText(late), /^HTTP\/1\.1 200 [^]*\r\nconnection: close\r\n/i)
  assert.equal(await server.ended(), 0)
})

test('Ctrl-C waits for no load balancer', async (t) => {
  const server = startProcess(t, temporaryDirectory(t), { TACHO_DRAIN_DELAY: '10m' })
  await server.ready()
  server.signal('SIGINT')
  assert.equal(await server.ended(), 0)
})

test('the first credentials go to a file for its owner, and nothing of them to the output', async (t) => {
  const file = path.join(temporaryDirectory(t), 'credentials')
  const server = startProcess(t, temporaryDirectory(t), { TACHO_INIT_CREDENTIALS_FILE: file })
  const url = await server.ready()
  assert.doesNotMatch(server.stdout() + server.stderr(), /tacho_|tacho-operator_|tacho-invitation_/)
  assert.match(server.stdout(), /Its first credentials are in .*credentials/)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const key = /tacho_\w+/.exec(readFileSync(file, 'utf8'))?.[0] ?? ''
  assert.equal((await fetch(`${url}/openapi/v1/runs`, { headers: { 'x-api-key': key } })).status, 200)
})

test('a file that exists gets no credentials', async (t) => {
  const file = path.join(temporaryDirectory(t), 'credentials')
  writeFileSync(file, 'kept')
  const server = startProcess(t, temporaryDirectory(t), { TACHO_INIT_CREDENTIALS_FILE: file })
  await server.ready()
  assert.match(server.stdout(), /could not be written to .*EEXIST.*tacho recover --operator-token/)
  assert.equal(readFileSync(file, 'utf8'), 'kept')
})

test('the credentials are the last of at most twelve lines of a start, and the link is the last of them', async (t) => {
  const server = startProcess(t, temporaryDirectory(t))
  await server.ready()
  const stdout = server.stdout()
  assert.match(
    stdout,
    /listens on .*\n\nCreated a new store[^]*\n\nTo create the first account, .*\n {2}http\S+\/invitation#\S+\n$/,
  )
  assert.ok(stdout.trimEnd().split('\n').length <= 12, stdout)
})

test('the line of a start, the metrics and the doctor name the same build', async (t) => {
  const server = startProcess(t, temporaryDirectory(t))
  const url = await server.ready()
  const [, version = ''] = /^Tacho (\S+) listens/m.exec(server.stdout()) ?? []
  assert.match(version, /^\d+\.\d+\.\d+(-dev\+([0-9a-f]{8}(\.changed)?|sources(\.[0-9a-f]{8})?))?$/)
  assert.ok((await (await fetch(`${url}/metrics`)).text()).includes(`tacho_build_info{version="${version}"`))
  const authorization = `Bearer ${/tacho-operator_\w+/.exec(server.stdout())?.[0]}`
  const doctor = await fetch(`${url}/operator/v1/doctor`, { headers: { authorization } })
  assert.equal(((await doctor.json()) as { version: string }).version, version)
})
