import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { eventually } from '../../server/test/setup/eventually.ts'
import { pack } from '../../../scripts/pack.mjs'
import { API_KEY, ended, OPERATOR_TOKEN, serveFrom, startTacho } from './tacho.ts'

const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url))

/** As npm installs it: beside exactly the packages that it names. Their own packages are found where they really are. */
async function install(folder: string): Promise<string> {
  const modules = path.join(folder, 'node_modules')
  const installed = path.join(modules, 'tacho')
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['xzf', await pack(folder), '-C', installed, '--strip-components=1'])
  const manifest = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8')) as {
    bin: { tacho: string }
    dependencies: Record<string, string>
  }
  for (const name of Object.keys(manifest.dependencies)) {
    const place = path.join(modules, name)
    mkdirSync(path.dirname(place), { recursive: true })
    symlinkSync(path.join(MODULES, name), place)
  }
  // The Node that these tests run on.
  for (const place of [installed, folder]) mkdirSync(path.join(place, 'node_modules/.bin'), { recursive: true })
  symlinkSync(process.execPath, path.join(installed, 'node_modules/.bin/node'))
  const program = path.join(modules, '.bin/tacho')
  symlinkSync(path.join(installed, manifest.bin.tacho), program)
  return program
}

/** A page as a browser requests it; `fetch` says that it is no browser. */
async function page(address: string): Promise<string> {
  const [response] = (await once(get(address, { headers: { accept: 'text/html' } }), 'response')) as [IncomingMessage]
  assert.equal(response.statusCode, 200, address)
  return text(response)
}

/** What the server loads on first use, and what it does on threads: each is a module of its own in the package. */
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

  // A body of this length is checked on a thread; estimates are made on another.
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
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-package-'))
  try {
    const program = await install(folder)
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
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the offline package starts by npx where no registry answers, with an empty cache', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-offline-'))
  try {
    const archive = await pack(folder, { offline: true })
    assert.match(path.basename(archive), new RegExp(`^tacho-0\\.1\\.0.*-${process.platform}-${process.arch}\\.tgz$`))
    const env = {
      PATH: process.env['PATH'],
      HOME: folder,
      npm_config_cache: path.join(folder, 'cache'),
      npm_config_registry: 'http://127.0.0.1:9',
    }
    const startedAt = performance.now()
    const answer = execFileSync('npx', ['--yes', `./${path.basename(archive)}`, '--version'], {
      cwd: folder,
      env,
      encoding: 'utf8',
    })
    assert.match(answer, /^0\.1\.0/)
    // It waits for no registry: npm would try for 150 seconds.
    assert.ok(performance.now() - startedAt < 120_000)
    const [installed = ''] = globSync(path.join(folder, 'cache/_npx/*/node_modules/tacho'))
    assert.equal(globSync(path.join(installed, 'node_modules/node-*/bin/node')).length, 1, 'it brings its Node')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
