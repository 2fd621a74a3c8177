import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { eventually } from '../../server/test/setup/eventually.ts'
import { packStaged, stagePackage } from '../../../scripts/pack.mjs'
import { API_KEY, ended, OPERATOR_TOKEN, serveFrom, startTacho } from './tacho.ts'

const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url))

const place = mkdtempSync(path.join(os.tmpdir(), 'tacho-package-'))
// Sibling folders, because npm uses packages from the folders above its own.
const [folder, closed] = [path.join(place, 'installed'), path.join(place, 'closed')]
for (const one of [folder, closed]) mkdirSync(one)
let plain: string
let whole: string
before(async () => {
  const staged = await stagePackage()
  plain = await packStaged(staged, folder)
  whole = await packStaged(staged, closed, { offline: true })
  rmSync(staged, { recursive: true })
})
after(() => rmSync(place, { recursive: true }))

/**
 * Installs the package as npm does: beside exactly the dependencies that it names. These are links, so Node finds their own
 * dependencies where the links lead.
 */
function install(): string {
  const modules = path.join(folder, 'node_modules')
  const installed = path.join(modules, 'tacho')
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['xzf', plain, '-C', installed, '--strip-components=1'])
  const manifest = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8')) as {
    bin: { tacho: string }
    dependencies: Record<string, string>
  }
  for (const name of Object.keys(manifest.dependencies)) {
    const link = path.join(modules, name)
    mkdirSync(path.dirname(link), { recursive: true })
    symlinkSync(path.join(MODULES, name), link)
  }
  // Link the Node that runs these tests.
  for (const one of [installed, folder]) mkdirSync(path.join(one, 'node_modules/.bin'), { recursive: true })
  symlinkSync(process.execPath, path.join(installed, 'node_modules/.bin/node'))
  const program = path.join(modules, '.bin/tacho')
  symlinkSync(path.join(installed, manifest.bin.tacho), program)
  return program
}

/** Requests a page as a browser does. Not with `fetch`, whose headers show that it is not a browser. */
async function page(address: string): Promise<string> {
  const [response] = (await once(get(address, { headers: { accept: 'text/html' } }), 'response')) as [IncomingMessage]
  assert.equal(response.statusCode, 200, address)
  return text(response)
}

/** Uses everything that the server loads on first use or runs in a thread: each is a separate module of the package. */
async function useThreads(url: string): Promise<void> {
  const send = async (address: string, body?: unknown) => {
    const reply = await fetch(url + address, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${OPERATOR_TOKEN}`,
        'x-api-key': API_KEY,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const answer = await reply.text()
    assert.ok(reply.status < 300, `${address}: ${answer}`)
    return answer
  }
  const json = async (address: string, body?: unknown) =>
    JSON.parse(await send(`/operator/v1${address}`, body)) as Record<string, unknown>
  const only = async (address: string) => ((await json(address))['items'] as [{ id: string }])[0].id
  const workspace = await only('/workspaces')
  const environment = `/environments/${await only(`/workspaces/${workspace}/environments`)}`

  // One thread validates a body of this length; another one estimates the cost.
  const usage = { promptTokens: 1_000, completionTokens: 1_000, totalTokens: 2_000 }
  const payload = { model: 'gpt-4o', usage, response: 'r'.repeat(2_000) }
  const event = {
    clientId: 'c',
    runId: 'long',
    agentName: 'a',
    eventType: 'LLM_CALL',
    label: 'l',
    timestamp: Date.now(),
  }
  const events = Array.from({ length: 100 }, (_, n) => ({ ...event, eventId: `e${n}`, payload }))
  assert.match(await send('/openapi/v1/events/batch', events), /"accepted":100/)
  const { estimatedCost } = (await json(`${environment}/runs/long`)) as { estimatedCost: unknown }
  assert.ok(Number(estimatedCost) > 0, String(estimatedCost))

  assert.match(await send(`/operator/v1${environment}/export/parquet?table=runs`), /^PAR1/)
  const asked = await json(`${environment}/simulations`, { condition: 'true', action: 'BLOCK', days: 1 })
  await eventually(async () => {
    const { status } = await json(`${environment}/simulations/${String(asked['id'])}`)
    assert.notEqual(status, 'FAILED')
    return status === 'DONE'
  }, 'the simulation')
  assert.match(await send('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }), /"tools":\[/)
  const signIn = await fetch(`${url}/operator/v1/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url },
    body: JSON.stringify({ email: 'nobody@example.com', password: 'not a password' }),
  })
  assert.equal(signIn.status, 401)
}

test('the package of server, console and command runs without the repository', async () => {
  const program = install()
  const server = await serveFrom(path.join(folder, 'data'), {}, program)
  try {
    const variables = { TACHO_URL: server.url, TACHO_OPERATOR_TOKEN: OPERATOR_TOKEN, TACHO_API_KEY: API_KEY }
    const demo = await ended(startTacho(['demo', '--seed', 'packed'], variables, folder, program))
    assert.equal(demo.code, 0, demo.stderr)
    const shown = await ended(
      startTacho(['runs', 'show', 'demo-packed-09', '-e', 'default/tacho-demo'], variables, folder, program),
    )
    assert.match(shown.stdout, /^FAILED {2}demo-packed-09$/m)
    for (const [address, part] of [
      ['/', '<div id="root">'],
      ['/docs/guide', '<h1'],
      ['/docs', 'swagger'],
    ] as const) {
      assert.ok((await page(server.url + address)).includes(part), address)
    }
    await useThreads(server.url)
    // Hooks have a separate program.
    const hook = await ended(startTacho(['hook', 'codex', '--nonsense'], variables, folder, program))
    assert.doesNotMatch(hook.stderr, /Cannot find/)
  } finally {
    await server.stop()
  }
})

test('the offline package starts by npx where no registry answers, with an empty cache, and asks for no other package', async (t) => {
  assert.match(path.basename(whole), new RegExp(`^tacho-0\\.1\\.0.*-${process.platform}-${process.arch}\\.tgz$`))
  const asked: string[] = []
  const registry = createServer(({ url = '' }, response) => {
    asked.push(url)
    response.destroy()
  }).listen(0, '127.0.0.1')
  t.after(() => registry.close())
  await once(registry, 'listening')
  const env = {
    PATH: process.env['PATH'],
    HOME: closed,
    npm_config_cache: path.join(closed, 'cache'),
    npm_config_registry: `http://127.0.0.1:${(registry.address() as AddressInfo).port}`,
  }
  const { stdout } = await promisify(execFile)('npx', ['--yes', `./${path.basename(whole)}`, '--version'], {
    cwd: closed,
    env,
  })
  assert.match(stdout, /^0\.1\.0/)
  // npm looks for a newer npm and for advisories. It would try for minutes to load a package.
  const forItself = ['/npm', '/-/npm/v1/security/advisories/bulk']
  assert.deepEqual(
    asked.filter((url) => !forItself.includes(url)),
    [],
  )
  const [installed = ''] = globSync(path.join(closed, 'cache/_npx/*/node_modules/tacho'))
  assert.equal(globSync(path.join(installed, 'node_modules/node-*/bin/node')).length, 1, 'it brings its Node')
})
