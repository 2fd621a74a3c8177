import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
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
  for (const name of [...Object.keys(manifest.dependencies), '.bin/node']) {
    const place = path.join(modules, name)
    mkdirSync(path.dirname(place), { recursive: true })
    symlinkSync(path.join(MODULES, name), place)
  }
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

test('the package of server, console and command runs without the repository', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-package-'))
  try {
    const program = await install(folder)
    const server = await serveFrom(path.join(folder, 'data'), {}, program)
    try {
      const variables = { TACHO_URL: server.url, TACHO_OPERATOR_TOKEN: OPERATOR_TOKEN, TACHO_API_KEY: API_KEY }
      const demo = await ended(startTacho(['demo', '--seed', 'packed'], variables, folder, program))
      assert.equal(demo.code, 0, demo.stderr)
      const shown = await ended(startTacho(['runs', 'show', 'demo-packed-09'], variables, folder, program))
      assert.match(shown.stdout, /^FAILED {2}demo-packed-09$/m)
      for (const [address, part] of [
        ['/', '<div id="root">'],
        ['/docs/guide', '<h1'],
        ['/docs', 'swagger'],
      ] as const) {
        assert.ok((await page(server.url + address)).includes(part), address)
      }
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
