/** Two nodes behind a plain load balancer are restarted, one after the other, under load: nothing is lost, refused or slow. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { newApiKey, newOperatorToken } from '../../src/domain/people/credential.ts'
import { eventually } from '../setup/eventually.ts'
import { freePort } from '../setup/free-port.ts'
import { testDatabases, type TestDatabases } from '../setup/postgres-server.ts'
import { startProcess, temporaryDirectory } from '../setup/process.ts'
import { event } from '../setup/service.ts'

const LONGEST_MS = 500
const CLIENTS = 4

let databases: TestDatabases
before(async () => {
  databases = await testDatabases()
})
after(() => databases.close())

const isMissing = (program: string) => spawnSync(program, ['-v']).error !== undefined && `${program} is not installed`

interface Balancer {
  program: string
  /** Writes its configuration and returns its arguments. */
  configure(folder: string, port: number, nodes: number[]): string[]
}

const BALANCERS: Balancer[] = [
  {
    program: 'haproxy',
    configure(folder, port, nodes) {
      const file = path.join(folder, 'haproxy.cfg')
      const servers = nodes.map((node, n) => `  server node${n} 127.0.0.1:${node} check inter 300ms fall 1 rise 1\n`)
      writeFileSync(
        file,
        `defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  option redispatch 1
  retries 2
frontend in
  bind 127.0.0.1:${port}
  default_backend nodes
backend nodes
  option httpchk GET /readyz
  http-check send ver HTTP/1.1 hdr Host check
${servers.join('')}`,
      )
      return ['-f', file, '-db']
    },
  },
  {
    // nginx makes no health checks: it sends refused connections to the next node.
    program: 'nginx',
    configure(folder, port, nodes) {
      const file = path.join(folder, 'nginx.conf')
      writeFileSync(
        file,
        `daemon off; pid ${folder}/pid; error_log stderr; worker_processes 1;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f;
  uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  upstream nodes { ${nodes.map((node) => `server 127.0.0.1:${node} max_fails=1 fail_timeout=1s;`).join(' ')} keepalive 8; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://nodes; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}`,
      )
      return ['-c', file, '-p', folder]
    },
  },
]

for (const { program, configure } of BALANCERS) {
  test(`a rolling restart behind ${program}`, { skip: isMissing(program) }, async (t) => {
    const { url: databaseUrl, drop } = await databases.create()
    t.after(drop)
    const apiKey = newApiKey(randomBytes).text
    const ports = [await freePort(), await freePort()]
    const start = async (port: number) => {
      const node = startProcess(t, temporaryDirectory(t), {
        TACHO_DATABASE_URL: databaseUrl,
        TACHO_DATABASE_POOL: '4',
        TACHO_PORT: String(port),
        TACHO_DRAIN_DELAY: '2s',
        TACHO_INIT_API_KEY: apiKey,
        TACHO_INIT_OPERATOR_TOKEN: newOperatorToken(randomBytes).text,
      })
      await node.ready()
      return node
    }
    const nodes = []
    for (const port of ports) nodes.push(await start(port))
    const url = await balance(t, (folder, port) => [program, configure(folder, port, ports)])

    const load = startLoad(url, apiKey)
    t.after(() => load.stop())
    await eventually(() => load.counts().requests > 100, 'a hundred requests')
    const before = load.counts().longestMs
    for (const [n, port] of ports.entries()) {
      nodes[n]?.signal('SIGTERM')
      assert.equal(await nodes[n]?.ended(), 0)
      await start(port)
      // Wait like an operator until the balancer has found the new node.
      await wait(3_000)
    }
    const { requests, failures, longestMs } = await load.stop()
    t.diagnostic(
      `${requests} requests, longest ${Math.round(longestMs)} ms (${Math.round(before)} ms before the restart)`,
    )
    assert.deepEqual(failures, [])
    // On an overloaded machine, each request also waits for the processor.
    const busy = Math.max(1, (os.loadavg()[0] ?? 0) / os.availableParallelism())
    assert.ok(longestMs < LONGEST_MS * busy, `${longestMs} ms at a load of ${busy}`)
  })
}

async function balance(t: TestContext, make: (folder: string, port: number) => [string, string[]]): Promise<string> {
  const port = await freePort()
  const [program, args] = make(temporaryDirectory(t), port)
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  t.after(async () => {
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'close')
  })
  const url = `http://127.0.0.1:${port}`
  await eventually(async () => {
    assert.equal(child.exitCode, null, said)
    const reply = await fetch(`${url}/readyz`).catch(() => null)
    return reply?.status === 200
  }, `${program} to find a node`)
  return url
}

function startLoad(url: string, apiKey: string) {
  const failures: string[] = []
  let [requests, longestMs, isGoing] = [0, 0, true]
  async function client(name: number): Promise<void> {
    while (isGoing) {
      const startedAt = performance.now()
      const reply = await fetch(`${url}/openapi/v1/events/batch`, {
        method: 'POST',
        headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
        body: JSON.stringify([event({ runId: `run ${name}` })]),
      }).catch((error: unknown) => String(error))
      const answer = typeof reply === 'string' ? reply : `${reply.status} ${await reply.text()}`
      longestMs = Math.max(longestMs, performance.now() - startedAt)
      requests++
      if (!answer.startsWith('200')) failures.push(answer)
      await wait(20)
    }
  }
  const clients = Array.from({ length: CLIENTS }, (_, name) => client(name))
  const counts = () => ({ requests, failures, longestMs })
  return {
    counts,
    async stop() {
      isGoing = false
      await Promise.all(clients)
      return counts()
    },
  }
}
