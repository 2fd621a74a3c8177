/** Health while PostgreSQL hangs, is locked, or is another database. Answers come from memory, agree, and give the reason. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { administer, withDatabase } from '../setup/administer.ts'
import { eventually } from '../setup/eventually.ts'
import { databasesOf, startPostgres, type PostgresServer, type TestDatabase } from '../setup/postgres-server.ts'
import { processesOf, signalAll } from '../setup/postgres-signals.ts'
import { event, startService, type Answer, type Service } from '../setup/service.ts'

let server: PostgresServer
let database: TestDatabase
let service: Service
before(async () => {
  server = await startPostgres()
  database = await databasesOf(server.url()).create()
  service = await startService({ databaseUrl: database.url, readyCommitWait: '1s', databasePool: '4' })
})
after(async () => {
  await service.close()
  await server.close()
})

interface Problem {
  code: string
  detail: string
}

async function timed(call: Promise<Answer>): Promise<{ answer: Answer; ms: number }> {
  const startedAt = performance.now()
  const answer = await call
  return { answer, ms: performance.now() - startedAt }
}

const readiness = () => service.call<Problem>('/readyz')
const until = (status: number) =>
  eventually(async () => {
    const answer = await readiness()
    return answer.status === status ? answer : null
  }, `readiness ${status}`)
const untilReason = (reason: RegExp) =>
  eventually(async () => reason.test((await readiness()).body.detail), `the reason ${reason}`)
/** Whether a batch was answered with all events as retryable. */
const isRefused = ({ status, body }: Answer) =>
  status === 503 || (body as { retryableEventIds?: unknown[] }).retryableEventIds?.length === 1
const metric = async (name: string) => {
  const { text } = await service.call('/metrics')
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
}

test('while PostgreSQL hangs, health answers at once, reads and batches are refused, and all agree', async () => {
  assert.equal((await service.record([event()])).status, 200)
  const pids = await processesOf(server.url())
  signalAll(pids, 'SIGSTOP')
  try {
    const underWay = [timed(service.api('/runs')), timed(service.record([event()]))] as const
    await untilReason(/^The database does not answer$/)
    for (const path of ['/readyz', '/healthz', '/metrics']) {
      const { answer, ms } = await timed(service.call(path))
      assert.ok(ms < 1_000, `${path} took ${ms} ms`)
      assert.equal(answer.status, path === '/readyz' ? 503 : 200)
    }
    assert.equal(await metric('tacho_store_writable'), 0)
    for (const call of [service.api('/runs'), service.operator('/workspaces'), service.record([event()])]) {
      const { answer, ms } = await timed(call)
      assert.ok(isRefused(answer), answer.text)
      assert.ok(answer.status === 200 || answer.headers.get('retry-after'))
      // A write that waited for the database would take five seconds.
      assert.ok(ms < 2_500, `${ms} ms`)
    }
    for (const call of underWay) {
      const { answer, ms } = await call
      assert.ok(isRefused(answer), answer.text)
      assert.ok(ms < 15_000, `${ms} ms`)
    }
  } finally {
    signalAll(pids, 'SIGCONT')
  }
  // The node recovers without a restart, as after a failover.
  await eventually(async () => (await readiness()).status === 200, 'readiness', 2_000)
  assert.equal((await service.api('/runs')).status, 200)
  assert.equal((await service.record([event()])).status, 200)
  assert.equal(await metric('tacho_store_writable'), 1)
})

test('a lock that stops all commits ends readiness after the set time, and doctor names who holds it', async () => {
  const blocker = new pg.Client({ connectionString: database.url, application_name: 'night job' })
  await blocker.connect()
  await blocker.query('BEGIN; LOCK TABLE tacho.runs IN ACCESS EXCLUSIVE MODE')
  const { rows } = await blocker.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const waiting = service.record([event({ runId: 'blocked' })])
  try {
    const { body } = await until(503)
    assert.match(body.detail, /^Nothing can be committed: the oldest write has waited \d+ s$/)
    assert.ok((await metric('tacho_store_commit_wait_seconds')) > 1)
    assert.equal(await metric('tacho_store_writable'), 0)
    const detail = await eventually(async () => {
      const { body: report } = await service.operator<{ checks?: { name: string; ok: boolean; detail: string }[] }>(
        '/doctor',
      )
      return report.checks?.find(({ name, ok }) => name === 'commits' && !ok)?.detail
    }, 'the doctor')
    assert.match(detail, new RegExp(`lock of session ${rows[0]?.pid} of postgres \\(night job\\)`))
  } finally {
    await blocker.query('ROLLBACK')
    await blocker.end()
  }
  await waiting
  assert.equal((await service.record([event({ runId: 'blocked' })])).status, 200)
  await until(200)
})

test('once the lock is gone, the node is ready at once, although no write comes that could succeed', async () => {
  const blocker = new pg.Client({ connectionString: database.url })
  await blocker.connect()
  await blocker.query('BEGIN; LOCK TABLE tacho.runs IN ACCESS EXCLUSIVE MODE')
  try {
    const { body } = await service.record([event({ runId: 'given up' })])
    assert.equal(body.retryableEventIds.length, 1)
    await until(503)
  } finally {
    await blocker.query('ROLLBACK')
    await blocker.end()
  }
  const freeAt = performance.now()
  await until(200)
  assert.ok(performance.now() - freeAt < 20_000)
  assert.equal(await metric('tacho_store_commit_wait_seconds'), 0)
})

test('after a failover to an empty database nothing is served, with that reason; with the right one back it works', async () => {
  const name = new URL(database.url).pathname.slice(1)
  const swap = async (from: string, to: string) => {
    await administer(server.url(), `ALTER DATABASE ${from} ALLOW_CONNECTIONS false`)
    await administer(server.url(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${from}'`)
    await administer(server.url(), `ALTER DATABASE ${from} RENAME TO ${to}`)
    await administer(server.url(), `ALTER DATABASE ${to} ALLOW_CONNECTIONS true`)
  }
  await swap(name, 'original')
  await administer(server.url(), `CREATE DATABASE ${name}`)
  const reason = 'The database has no store of this installation: it is empty'
  await untilReason(/^The database has no store of this installation: it is empty$/)
  assert.ok(isRefused(await service.record([event()])))
  const { status, body } = await service.api<Problem>('/runs')
  assert.deepEqual([status, body.code, body.detail], [503, 'storage_unavailable', reason])

  await swap(name, 'empty')
  await swap('original', name)
  await eventually(async () => (await readiness()).status === 200, 'readiness', 2_000)
  assert.ok(!isRefused(await service.record([event()])))

  // The database of another installation, such as another cluster of the same company.
  await swap(name, 'original')
  await swap('empty', name)
  const other = await startService({ databaseUrl: withDatabase(server.url(), name) })
  await untilReason(/another installation/)
  await other.close()
  await swap(name, 'empty')
  await swap('original', name)
  await until(200)
})
