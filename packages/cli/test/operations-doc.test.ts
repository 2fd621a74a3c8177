/** Keeps docs/operations.md and the deployment examples correct. */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { after, before, test } from 'node:test'
import { readConfig, settingTexts } from '@tacho/server/config/config.ts'
import { parseAllDocuments } from 'yaml'
import { startServer, type TestServer } from './tacho.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const FILE = path.join(ROOT, 'docs/operations.md')
const text = readFileSync(FILE, 'utf8')
const examples = globSync('examples/{compose,kubernetes,systemd}/*', { cwd: ROOT }).filter((file) =>
  /\.\w+$/.test(file),
)
const all = [text, ...examples.map((file) => readFileSync(path.join(ROOT, file), 'utf8'))].join('\n')

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.stop())

function settingsTable(): string {
  const rows = settingTexts().map(({ flag, variable, help, byDefault, fromFile }) => {
    const names = `${flag === null ? '' : `\`${flag.replace(/ .*/, '')}\`<br>`}\`${variable}\`${fromFile ? '<br>`…_FILE`' : ''}`
    return `| ${names} | ${byDefault === null ? '' : `\`${byDefault}\``} | ${help.replaceAll('|', '\\|')} |`
  })
  return ['| setting | default | |', '|---|---|---|', ...rows].join('\n')
}

test('the settings table matches the program', () => {
  const [, table] = /<!-- settings: [^\n]*-->\n(.*?)<!-- end of settings -->/s.exec(text) ?? []
  const wanted = settingsTable()
  // Column widths do not matter.
  const without = (given = '') =>
    given
      .replaceAll(/ +|-{3,}/g, ' ')
      .replaceAll(/ +/g, ' ')
      .trim()
  assert.equal(without(table), without(wanted), `The table must read:\n\n${wanted}\n`)
})

test('every variable in the docs exists', () => {
  const known = settingTexts().flatMap(({ variable, fromFile }) => [
    variable,
    ...(fromFile ? [`${variable}_FILE`] : []),
  ])
  const named = new Set([...all.matchAll(/\bTACHO_[A-Z_]*[A-Z]\b/g)].map(([name]) => name))
  assert.deepEqual(
    [...named].filter((name) => !known.includes(name)),
    [],
  )
})

test('every metric in the docs and on the dashboard is exported', async () => {
  // Request metrics appear after the first request.
  await fetch(`${server.url}/healthz`)
  const metrics = await (await fetch(`${server.url}/metrics`)).text()
  const dashboard = readFileSync(path.join(ROOT, 'examples/grafana/tacho.json'), 'utf8')
  const named = new Set(
    [...(text + dashboard).matchAll(/\b(?:tacho|nodejs|process)_[a-z0-9]+_[a-z0-9_]+\b|\btacho_nodes\b/g)].map(
      ([name]) => name,
    ),
  )
  assert.ok(named.size > 8)
  for (const name of named) assert.ok(metrics.includes(name), name)
  // Every exported metric must be used, in the dashboard or in an alert rule.
  const rules = readFileSync(path.join(ROOT, 'examples/prometheus/alerts.yaml'), 'utf8')
  const exported = Array.from(metrics.matchAll(/^# TYPE (tacho_\w+)/gm), ([, name = '']) => name)
  assert.ok(exported.length > 20)
  assert.deepEqual(
    exported.filter((name) => !`${dashboard} ${rules}`.includes(name)),
    [],
  )
})

test('all links have a target', () => {
  const targets = [...text.matchAll(/\]\(([^)#]+)\)/g)].map(([, target = '']) => target)
  assert.deepEqual(
    targets.filter((target) => !existsSync(path.join(ROOT, 'docs', target))),
    [],
  )
})

interface Container {
  args?: string[]
  env?: { name: string; value?: string }[]
  readinessProbe?: { httpGet: { path: string } }
  livenessProbe?: { httpGet: { path: string } }
}

interface Manifest {
  kind: string
  spec: {
    template?: {
      spec: { enableServiceLinks?: boolean; terminationGracePeriodSeconds?: number; containers: Container[] }
    }
  }
}

test('the Kubernetes manifest leaves time to drain, and its probes and settings exist', async () => {
  const documents = parseAllDocuments(readFileSync(path.join(ROOT, 'examples/kubernetes/tacho.yaml'), 'utf8'))
  assert.deepEqual(
    documents.flatMap(({ errors }) => errors),
    [],
  )
  const manifests = documents.map((document) => document.toJS() as Manifest)
  const deployment = manifests.find(({ kind }) => kind === 'Deployment')?.spec.template?.spec
  const [container] = deployment?.containers ?? []
  assert.ok(deployment && container)
  assert.equal(deployment.enableServiceLinks, false)
  const environment = Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value]))
  const {
    TACHO_INIT_API_KEY_FILE: key,
    TACHO_INIT_OPERATOR_TOKEN_FILE: token,
    TACHO_DATABASE_URL_FILE: database,
    ...settings
  } = environment
  assert.deepEqual([key, token], ['/run/secrets/tacho/api-key', '/run/secrets/tacho/operator-token'])
  assert.equal(database, '/run/secrets/database/url')
  const read = readConfig({}, { ...settings, TACHO_DATABASE_URL: 'postgres://h/d' })
  assert.ok(read.ok, JSON.stringify(read))
  const { drainDelay, drainTimeout } = read.config
  assert.ok((deployment.terminationGracePeriodSeconds ?? 0) * 1000 > drainDelay + drainTimeout)
  for (const probe of [container.readinessProbe, container.livenessProbe]) {
    assert.equal((await fetch(`${server.url}${probe?.httpGet.path}`)).status, 200)
  }
  assert.deepEqual(container.args, ['serve'])
})

test('the compose file is valid and leaves time to drain', () => {
  const [document] = parseAllDocuments(readFileSync(path.join(ROOT, 'examples/compose/compose.yaml'), 'utf8'))
  assert.ok(document)
  assert.deepEqual(document.errors, [])
  const { services } = document.toJS() as {
    services: Record<string, { command: string[]; stop_grace_period: string; build: string }>
  }
  const tacho = services['tacho']
  assert.ok(tacho)
  const [command, ...flags] = tacho.command
  assert.deepEqual([command, flags], ['serve', ['--workers', '2']])
  const read = readConfig({ workers: '2' }, { TACHO_DATABASE_URL: 'postgres://h/d' })
  assert.ok(
    read.ok && Number.parseInt(tacho.stop_grace_period, 10) * 1000 > read.config.drainDelay + read.config.drainTimeout,
  )
  assert.ok(existsSync(path.join(ROOT, 'examples/compose', tacho.build, 'Dockerfile')))
})

test('the compose file for TLS adds a proxy that the server trusts, with the tested configuration', () => {
  const [document] = parseAllDocuments(readFileSync(path.join(ROOT, 'examples/compose/tls.yaml'), 'utf8'))
  assert.deepEqual(document?.errors, [])
  const { services } = document!.toJS() as {
    services: Record<
      'tacho' | 'proxy',
      { environment: Record<string, string>; network_mode: string; volumes: string[] }
    >
  }
  const read = readConfig({}, services.tacho.environment)
  assert.ok(read.ok, JSON.stringify(read))
  assert.deepEqual([read.config.publicUrl, read.config.trustProxy], ['https://tacho.example.com', ['127.0.0.1']])
  assert.equal(services.proxy.network_mode, 'service:tacho')
  const files = services.proxy.volumes.flatMap((volume) =>
    volume.startsWith('../') ? (volume.split(':')[0] ?? '') : [],
  )
  assert.deepEqual(files, ['../proxies/Caddyfile'])
  const caddyfile = readFileSync(path.join(ROOT, 'examples/compose', files[0] ?? ''), 'utf8')
  assert.ok(caddyfile.includes('reverse_proxy 127.0.0.1:4680') && caddyfile.includes('/etc/ssl/tacho.pem'))
})

test('the systemd unit starts the program and leaves time to drain', () => {
  const unit = readFileSync(path.join(ROOT, 'examples/systemd/tacho.service'), 'utf8')
  const read = readConfig({}, {})
  const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(unit) ?? []
  assert.ok(read.ok && Number(seconds) * 1000 > read.config.drainDelay + read.config.drainTimeout)
  const [, program = ''] = /^ExecStart=\/opt\/tacho\/(\S+) serve$/m.exec(unit) ?? []
  assert.ok(existsSync(path.join(ROOT, program)))
})
