/** The proxies of examples/proxies: TLS, a path, streams, large bodies, and the caller's address. */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { newApiKey, newOperatorToken } from '../../src/domain/people/credential.ts'
import { eventually } from '../setup/eventually.ts'
import { freePort } from '../setup/free-port.ts'
import { startProcess, temporaryDirectory, type ServerProcess } from '../setup/process.ts'

const EXAMPLES = fileURLToPath(new URL('../../../../examples/proxies/', import.meta.url))
const HOST = 'tacho.example.com'
const LARGE = 19 * 1_048_576

interface Proxy {
  program: string
  version: string
  example: string
  /** Fits the example to this machine, and returns the arguments. */
  run(text: string, folder: string, port: number): { text: string; file: string; args: string[] }
}

const PROXIES: Proxy[] = [
  {
    program: 'nginx',
    version: '-v',
    example: 'nginx.conf',
    run(text, folder, port) {
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      const paths = temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')
      const own = text.replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
      // nginx's workers must be able to read the folder of the test.
      const user = process.getuid?.() === 0 ? 'user root; ' : ''
      const main = `${user}daemon off; pid ${folder}/pid; error_log stderr; worker_processes 1; events {}`
      return {
        text: `${main}\nhttp { access_log off; ${paths}\n${own}\n}`,
        file: 'nginx.conf',
        args: ['-c', `${folder}/nginx.conf`, '-p', folder],
      }
    },
  },
  {
    program: 'haproxy',
    version: '-v',
    example: 'haproxy.cfg',
    run: (text, folder, port) => ({
      text: text.replace('bind :443', `bind 127.0.0.1:${port}`),
      file: 'haproxy.cfg',
      args: ['-f', `${folder}/haproxy.cfg`, '-db'],
    }),
  },
  {
    program: 'caddy',
    version: 'version',
    example: 'Caddyfile',
    run: (text, folder, port) => ({
      text: `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${text.replace(
        `https://${HOST} {`,
        `https://${HOST}:${port} {\n\tbind 127.0.0.1`,
      )}`,
      file: 'Caddyfile',
      args: ['run', '--adapter', 'caddyfile', '--config', `${folder}/Caddyfile`],
    }),
  },
]

interface Asked {
  method?: string
  headers?: Record<string, string>
  body?: Buffer | string
}

for (const proxy of PROXIES) {
  const isMissing = spawnSync(proxy.program, [proxy.version]).error !== undefined && `${proxy.program} is not installed`
  test(`behind ${proxy.program}`, { skip: isMissing }, async (t) => {
    const apiKey = newApiKey(randomBytes).text
    const token = newOperatorToken(randomBytes).text
    const node = startProcess(t, temporaryDirectory(t), {
      TACHO_TRUST_PROXY: '127.0.0.1',
      TACHO_PUBLIC_URL: `https://${HOST}/kept`,
      TACHO_LOG_LEVEL: 'info',
      TACHO_INIT_API_KEY: apiKey,
      TACHO_INIT_OPERATOR_TOKEN: token,
    })
    const port = await startProxy(t, proxy, new URL(await node.ready()).port)
    const origin = `https://${HOST}:${port}`
    const bearer = { authorization: `Bearer ${token}` }

    // The proxies do not remove the last one, which is the path of the public address.
    for (const base of ['', '/tacho', '/kept']) {
      const ask = (place: string, asked: Asked = {}) => answer(port, base + place, asked)
      assert.equal((await ask('/readyz')).status, 200)
      const page = await ask('/w/default/development/runs', { headers: { accept: 'text/html' } })
      const files = Array.from(page.text.matchAll(/(?:src|href)="(\.?[^":]*assets[^"]*)"/g), ([, file = '']) => file)
      const root = new URL(
        /<base href="([^"]*)"/.exec(page.text)?.[1] ?? '',
        `${origin}${base}/w/default/development/runs`,
      )
      for (const file of files) {
        const { pathname } = new URL(file, root)
        assert.ok(pathname.startsWith(`${base}/`), pathname)
        assert.equal((await answer(port, pathname)).status, 200, pathname)
      }
      // The answer must not be 403, because the page has the server's own origin.
      const credentials = JSON.stringify({ email: 'nobody@example.com', password: 'wrong password' })
      const signIn = { method: 'POST', body: credentials, headers: { origin, 'content-type': 'application/json' } }
      const refused = await ask('/operator/v1/session', signIn)
      assert.notEqual(refused.status, 403, refused.text)

      const otlp = { 'x-api-key': apiKey, 'content-type': 'application/json' }
      const large = await ask('/openapi/v1/otlp/v1/traces', { method: 'POST', body: traces(LARGE), headers: otlp })
      assert.equal(large.status, 200, large.text)

      const environments = await ask('/operator/v1/environments', { headers: bearer })
      const environment = /"id":"([^"]+)"/.exec(environments.text)?.[1] ?? ''
      const place = `${base}/operator/v1/environments/${environment}/approvals/stream`
      const startedAt = performance.now()
      const stream = await open(port, place, { headers: bearer })
      const [first] = (await once(stream, 'data')) as [Buffer]
      stream.destroy()
      assert.ok(first.length > 0 && performance.now() - startedAt < 10_000, 'the stream is not buffered')
    }
    for (const place of ['/tacho', '/kept']) {
      const { status, location } = await answer(port, place)
      assert.deepEqual([status, new URL(location, origin).pathname], [308, `${place}/`])
    }
    for (const place of ['/metrics', '/%6Detrics', '/metrics?x', '/tacho/metrics', '/tacho/%6Detrics']) {
      assert.equal((await answer(port, place)).status, 404, place)
    }
    await assertLogged(node)
  })
}

/** Asserts that the log has the client's real address, not the one it claims, and the proxy's request id. */
async function assertLogged(node: ServerProcess): Promise<void> {
  const line = await eventually(
    () =>
      node
        .stderr()
        .split('\n')
        .find((text) => text.includes('/otlp/v1/traces') && text.includes('proxyRequestId')),
    'the line of the request',
  )
  assert.equal((JSON.parse(line) as { address?: string }).address, '127.0.0.1', line)
}

async function startProxy(t: TestContext, { program, example, run }: Proxy, node: string): Promise<number> {
  const folder = temporaryDirectory(t)
  const port = await freePort()
  const [key, certificate] = [`${folder}/tacho.key`, `${folder}/tacho.pem`]
  const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', `/CN=${HOST}`]
  execFileSync('openssl', [...made, '-addext', `subjectAltName=DNS:${HOST}`, '-keyout', key, '-out', certificate], {
    stdio: 'ignore',
  })
  // HAProxy reads the certificate and its key from one file.
  if (program === 'haproxy') writeFileSync(certificate, readFileSync(certificate, 'utf8') + readFileSync(key, 'utf8'))
  const written = readFileSync(path.join(EXAMPLES, example), 'utf8')
  const local = written.replaceAll('/etc/ssl/', `${folder}/`).replaceAll('127.0.0.1:4680', `127.0.0.1:${node}`)
  const { text, file, args } = run(local, folder, port)
  writeFileSync(path.join(folder, file), text)
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (more: string) => (said += more))
  t.after(async () => {
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'close')
  })
  await eventually(async () => {
    assert.equal(child.exitCode, null, said)
    return (await answer(port, '/readyz').catch(() => null))?.status === 200
  }, `${program} to find the node`)
  return port
}

async function open(
  port: number,
  place: string,
  { method = 'GET', headers = {}, body }: Asked,
): Promise<IncomingMessage> {
  const request = httpsRequest({
    host: '127.0.0.1',
    port,
    path: place,
    method,
    servername: HOST,
    rejectUnauthorized: false,
    agent: false,
    headers: { host: `${HOST}:${port}`, ...headers },
  })
  request.end(body)
  const [reply] = (await once(request, 'response')) as [IncomingMessage]
  return reply
}

async function answer(port: number, place: string, asked: Asked = {}) {
  const reply = await open(port, place, asked)
  const text = (await reply.setEncoding('utf8').toArray()).join('')
  return { status: reply.statusCode, text, location: reply.headers.location ?? '' }
}

/** One span with about this many bytes of text. */
function traces(bytes: number): string {
  const attributes = [{ key: 'text', value: { stringValue: 'x'.repeat(bytes) } }]
  const now = BigInt(Date.now()) * 1_000_000n
  const times = { startTimeUnixNano: String(now), endTimeUnixNano: String(now) }
  const ids = { traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex') }
  const span = { ...ids, ...times, name: 'large', attributes }
  return JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] })
}
