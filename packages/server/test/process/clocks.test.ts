/** Processes whose clock is wrong, or is set while they run. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import path from 'node:path'
import { after, before, test } from 'node:test'
import Database from 'better-sqlite3'
import { newApiKey, newOperatorToken } from '../../src/domain/people/credential.ts'
import { eventually } from '../setup/eventually.ts'
import { testDatabases, type TestDatabases } from '../setup/postgres-server.ts'
import { startProcess, temporaryDirectory } from '../setup/process.ts'
import { event } from '../setup/service.ts'
import { wrongClock } from '../setup/wrong-clock.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

let databases: TestDatabases
before(async () => {
  databases = await testDatabases()
})
after(() => databases.close())

test('a node whose clock is five minutes behind takes current events, keeps approvals open, and is not ready', async (t) => {
  const { url: databaseUrl, drop } = await databases.create()
  t.after(drop)
  const [key, token] = [newApiKey(randomBytes).text, newOperatorToken(randomBytes).text]
  const node = startProcess(t, temporaryDirectory(t), {
    TACHO_DATABASE_URL: databaseUrl,
    TACHO_INIT_API_KEY: key,
    TACHO_INIT_OPERATOR_TOKEN: token,
    NODE_OPTIONS: wrongClock(temporaryDirectory(t), -5 * MINUTE - 1_000).options,
  })
  const url = await node.ready()
  const headers = { 'x-api-key': key, 'x-service-client-id': 'clock', 'content-type': 'application/json' }
  const post = async <Body>(to: string, body: unknown) =>
    (await (
      await fetch(`${url}/openapi/v1/${to}`, { method: 'POST', headers, body: JSON.stringify(body) })
    ).json()) as Body
  assert.deepEqual((await post<{ rejections: unknown[] }>('events/batch', [event()])).rejections, [])
  const asked = { clientRequestId: 'a', toolName: 'refund', inputHash: 'ab'.repeat(32), timeoutMs: MINUTE }
  assert.equal((await post<{ status: string }>('firewall-approvals', asked)).status, 'PENDING')
  const readiness = await fetch(`${url}/readyz`)
  assert.equal(readiness.status, 503)
  assert.match(
    ((await readiness.json()) as { detail: string }).detail,
    /^The clock of this node is 30\d s behind the database's/,
  )
  assert.match(await (await fetch(`${url}/metrics`)).text(), /^tacho_store_clock_offset_seconds 30\d/m)
  await eventually(async () => {
    const doctor = await fetch(`${url}/operator/v1/doctor`, { headers: { authorization: `Bearer ${token}` } })
    const { checks } = (await doctor.json()) as { checks: { name: string; detail: string }[] }
    return checks.some(({ name, detail }) => name === 'clock' && /node \d+ 30\d{4} ms behind/.test(detail))
  }, 'the doctor')
  await eventually(() => node.stderr().includes('the clock of this machine differs'), 'the log line')
})

test('a clock that was a day ahead leaves no work for tomorrow, whether it is set back before a restart or while the server runs', async (t) => {
  const directory = temporaryDirectory(t)
  const clock = wrongClock(temporaryDirectory(t), DAY)
  const lateWork = () => {
    const db = new Database(path.join(directory, 'tacho.db'), { readonly: true })
    const late = db
      .prepare<[number], number>('SELECT count(*) FROM work WHERE due_at > ?')
      .pluck()
      .get(Date.now() + 2 * 60 * MINUTE)
    db.close()
    return late ?? 0
  }
  const start = async () => {
    const server = startProcess(t, directory, { NODE_OPTIONS: clock.options })
    const url = await server.ready()
    const authorization = `Bearer ${/tacho-operator_\w+/.exec(server.stdout())?.[0]}`
    return { server, url, authorization }
  }
  const { server, url, authorization } = await start()
  const call = async <Body>(to: string, body?: unknown) =>
    (await (
      await fetch(`${url}/operator/v1${to}`, {
        headers: { authorization, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      })
    ).json()) as Body
  const [workspace] = (await call<{ items: { id: string }[] }>('/workspaces')).items
  const [environment] = (await call<{ items: { id: string }[] }>(`/workspaces/${workspace?.id}/environments`)).items
  await call(`/environments/${environment?.id}/alerts`, { name: 'Many runs fail', kind: 'error_rate', threshold: 20 })
  await eventually(() => lateWork() > 0, 'work of tomorrow')

  clock.set(0)
  await eventually(() => lateWork() === 0, 'work planned anew')
  await eventually(() => server.stderr().includes('the clock of this machine was set'), 'the log line')

  clock.set(DAY)
  await eventually(() => lateWork() > 0, 'work of tomorrow again')
  server.signal('SIGKILL')
  await server.ended()
  clock.set(0)
  const again = await start()
  assert.equal(lateWork(), 0)
  again.server.signal('SIGINT')
  await again.server.ended()
})
