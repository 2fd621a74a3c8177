/** Each fault fires the alert of examples/prometheus that names it, in a real Prometheus, and no other. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, test, type TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import pg from 'pg'
import { newApiKey } from '../../src/domain/people/credential.ts'
import { administer } from '../setup/administer.ts'
import { eventually } from '../setup/eventually.ts'
import { freePort } from '../setup/free-port.ts'
import { databasesOf, startPostgres, type PostgresServer } from '../setup/postgres-server.ts'
import { processesOf, signalAll } from '../setup/postgres-signals.ts'
import { startProcess, temporaryDirectory } from '../setup/process.ts'
import { event, startService, type Service } from '../setup/service.ts'
import { wrongClock } from '../setup/wrong-clock.ts'

const RULES = fileURLToPath(new URL('../../../../examples/prometheus/alerts.yaml', import.meta.url))
const METRICS = /\b(?:tacho|process|nodejs)_\w+/g
const isMissing = spawnSync('prometheus', ['--version']).error !== undefined && 'prometheus is not installed'
/** Wait after the alert fired. Within this time, other alerts would fire too. */
const ALONE_MS = 4_000

/** The rules with seconds in place of minutes, and with limits for a small, busy machine. */
function hurried(rules: string, minFree = '1'): string {
  const seconds = { '1m': '1s', '5m': '8s', '6m': '10s', '10m': '16s' }
  return rules
    .replaceAll(
      /(for: |\[)(1m|5m|6m|10m)\b/g,
      (_, before: string, time: keyof typeof seconds) => before + seconds[time],
    )
    .replaceAll('10 * 1024 ^ 3', minFree)
    .replace('lag_p99_seconds > 0.1', 'lag_p99_seconds > 10')
}

async function startPrometheus(t: TestContext, targets: string[], minFree?: string) {
  const folder = temporaryDirectory(t)
  writeFileSync(path.join(folder, 'alerts.yaml'), hurried(readFileSync(RULES, 'utf8'), minFree))
  writeFileSync(
    path.join(folder, 'prometheus.yaml'),
    `global: { scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms }
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: tacho
    static_configs: [{ targets: ${JSON.stringify(targets.map((url) => new URL(url).host))} }]
`,
  )
  const port = await freePort()
  const options = { 'config.file': `${folder}/prometheus.yaml`, 'storage.tsdb.path': folder, 'log.level': 'error' }
  const args = Object.entries({ ...options, 'web.listen-address': `127.0.0.1:${port}` }).map(
    ([name, value]) => `--${name}=${value}`,
  )
  const child = spawn('prometheus', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  t.after(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
  })
  const firing = async () => {
    const reply = await fetch(`http://127.0.0.1:${port}/api/v1/alerts`)
    const { data } = (await reply.json()) as { data: { alerts: { state: string; labels: { alertname: string } }[] } }
    return data.alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname)
  }
  await eventually(async () => {
    assert.equal(child.exitCode, null, said)
    return firing().then(
      () => true,
      () => false,
    )
  }, 'Prometheus')
  return firing
}

async function assertFires(
  t: TestContext,
  targets: string[],
  expected: string | null,
  minFree?: string,
): Promise<void> {
  const firing = await startPrometheus(t, targets, minFree)
  const seen = new Set<string>()
  const look = async () => {
    for (const name of await firing()) seen.add(name)
    if (expected !== null) assert.ok(seen.has(expected), `firing: ${[...seen].join(', ')}`)
    return true
  }
  await eventually(look, expected ?? 'an evaluation', 60_000)
  for (let waited = 0; waited < ALONE_MS; waited += 500) {
    await wait(500)
    await look()
  }
  assert.deepEqual([...seen], expected === null ? [] : [expected])
}

/** Records until the test ends, and ignores the answers. */
function keepRecording(t: TestContext, service: Service): void {
  let isOver = false
  const loop = (async () => {
    while (!isOver) {
      await service.record([event()]).catch(() => undefined)
      await service.api('/runs').catch(() => undefined)
      await wait(100)
    }
  })()
  t.after(async () => {
    isOver = true
    await loop
  })
}

test('every metric of the rules exists', async () => {
  const service = await startService()
  const { text } = await service.call('/metrics')
  await service.close()
  const exprs = readFileSync(RULES, 'utf8')
    .replaceAll(/summary:.*/g, '')
    .replaceAll(/#.*/g, '')
  for (const [name] of exprs.matchAll(METRICS)) {
    const family = name.replace(/_(?:bucket|count)$/, '')
    assert.ok(text.includes(`# TYPE ${family} `), name)
  }
})

describe('alerts', { skip: isMissing }, () => {
  let server: PostgresServer
  before(async () => {
    server = await startPostgres()
  })
  after(() => server.close())

  async function serviceOn(t: TestContext, flags: Record<string, string> = {}) {
    const { url } = await databasesOf(server.url()).create()
    const service = await startService({ databaseUrl: url, readyCommitWait: '1s', databasePool: '4', ...flags })
    t.after(() => service.close())
    keepRecording(t, service)
    await service.record([event()])
    return { service, url }
  }

  test('a client whose spool is full fires TachoClientSpoolFull', async (t) => {
    const { service } = await serviceOn(t)
    const headers = { 'x-tacho-spool': 'full' }
    // Repeat, so that there are reports before and after the first scrape.
    const saying = setInterval(() => void service.api('/events/batch', { body: [event()], headers }), 500)
    t.after(() => clearInterval(saying))
    await assertFires(t, [service.url], 'TachoClientSpoolFull')
  })

  test('a healthy service fires none', async (t) => {
    const { service } = await serviceOn(t)
    await assertFires(t, [service.url], null)
  })

  test('a database that hangs', async (t) => {
    const { service } = await serviceOn(t)
    const pids = await processesOf(server.url())
    signalAll(pids, 'SIGSTOP')
    try {
      await assertFires(t, [service.url], 'TachoNotWritable')
    } finally {
      signalAll(pids, 'SIGCONT')
    }
  })

  test('a lock, also once the node is not ready', async (t) => {
    const { service, url } = await serviceOn(t)
    const blocker = new pg.Client(url)
    await blocker.connect()
    await blocker.query('BEGIN; LOCK TABLE tacho.runs IN ACCESS EXCLUSIVE MODE')
    try {
      await eventually(async () => (await service.call('/readyz')).status === 503, 'the end of readiness')
      // At first, the node only refuses writes. Wait until it also counts as stuck.
      await wait(11_000)
      await assertFires(t, [service.url], 'TachoCommitsWait')
    } finally {
      await blocker.end()
    }
  })

  test('a slow disk', async (t) => {
    const { service, url } = await serviceOn(t, { readyCommitWait: '30s' })
    const blocker = new pg.Client(url)
    await blocker.connect()
    let isOver = false
    const slow = (async () => {
      while (!isOver) {
        await blocker.query('BEGIN; LOCK TABLE tacho.runs IN ACCESS EXCLUSIVE MODE')
        await wait(2_000)
        await blocker.query('ROLLBACK')
      }
    })()
    try {
      await assertFires(t, [service.url], 'TachoSlow')
    } finally {
      isOver = true
      await slow
      await blocker.end()
    }
  })

  test('a failover to an empty database', async (t) => {
    const { service, url } = await serviceOn(t)
    const name = new URL(url).pathname.slice(1)
    await administer(server.url(), `ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
    await administer(server.url(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`)
    await administer(server.url(), `ALTER DATABASE ${name} RENAME TO ${name}_old`)
    await administer(server.url(), `CREATE DATABASE ${name}`)
    await assertFires(t, [service.url], 'TachoNotWritable')
  })

  test('a clock that is wrong', async (t) => {
    const { url } = await databasesOf(server.url()).create()
    for (const ahead of [5_000, 60_000]) {
      const clock = wrongClock(temporaryDirectory(t), ahead)
      const node = startProcess(t, temporaryDirectory(t), { TACHO_DATABASE_URL: url, NODE_OPTIONS: clock.options })
      await assertFires(t, [await node.ready()], 'TachoClockWrong')
    }
  })

  test('a node that is lost', async (t) => {
    const { url } = await databasesOf(server.url()).create()
    const start = () => startProcess(t, temporaryDirectory(t), { TACHO_DATABASE_URL: url })
    const first = start()
    const urls = [await first.ready()]
    const second = start()
    urls.push(await second.ready())
    second.signal('SIGKILL')
    await assertFires(t, urls, 'TachoDown')
  })

  test('a full disk', async (t) => {
    const service = await startService({ minFreeDisk: '1TiB' })
    t.after(() => service.close())
    keepRecording(t, service)
    await assertFires(t, [service.url], 'TachoDiskNearlyFull', '1e18')
  })

  test('a damaged page', async (t) => {
    const directory = temporaryDirectory(t)
    const apiKey = newApiKey(randomBytes).text
    const start = () => startProcess(t, directory, { TACHO_INIT_API_KEY: apiKey })
    const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' }
    const first = start()
    const body = JSON.stringify([event()])
    await fetch(`${await first.ready()}/openapi/v1/events/batch`, { method: 'POST', headers, body })
    first.signal('SIGTERM')
    await first.ended()
    const file = path.join(directory, 'tacho.db')
    const db = new Database(file)
    const root = db.prepare<[], number>("SELECT rootpage FROM sqlite_schema WHERE name = 'events'").pluck().get() ?? 0
    const size = db.pragma('page_size', { simple: true }) as number
    db.close()
    const bytes = readFileSync(file)
    writeFileSync(file, bytes.fill(0xff, (root - 1) * size, root * size))
    const url = await start().ready()
    await fetch(`${url}/openapi/v1/runs/run`, { headers })
    await assertFires(t, [url], 'TachoStoreDamaged')
  })

  test('a payload and a policy that changed on disk', async (t) => {
    for (const [statement, expected] of [
      [`UPDATE events SET payload = '{"x":1}' WHERE event_id = 'damaged'`, 'TachoPayloadsDamaged'],
      ['UPDATE stalled_rules SET idle_minutes = 3', 'TachoSettingsDamaged'],
    ] as const) {
      const service = await startService()
      t.after(() => service.close())
      await service.record([event({ eventId: 'damaged', payload: { y: 1 } })])
      const rule = { body: { idleMinutes: 60, closeAs: null } }
      assert.equal(
        (await service.operator(`/environments/${service.environmentId}/stalled-rule/change`, rule)).status,
        200,
      )
      const db = new Database(path.join(service.directory, 'tacho.db'))
      db.exec(statement)
      db.close()
      // The counter must grow while it is scraped.
      const reading = setInterval(() => {
        void service.api('/runs/run').catch(() => undefined)
        void service.operator(`/environments/${service.environmentId}/stalled-rule`).catch(() => undefined)
      }, 500)
      await assertFires(t, [service.url], expected).finally(() => clearInterval(reading))
    }
  })
})
