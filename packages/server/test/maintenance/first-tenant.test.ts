/** The link of the first start creates the first person, an owner, and works once. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { readConfig } from '../../src/config/config.ts'
import { commandAt, firstTenantText } from '../../src/maintenance/first-tenant.ts'
import { startServer } from '../setup/start-server.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-first-'))
after(() => rmSync(directory, { recursive: true }))
const ROOT = path.resolve(import.meta.dirname, '../../../..')
const PASSWORD = 'correct horse battery staple'

async function firstStart(name: string, variables: Record<string, string> = {}) {
  const dataDir = path.join(directory, name)
  const read = readConfig({ port: '0', dataDir, logLevel: 'silent' }, variables)
  assert.ok(read.ok)
  let printed = ''
  const server = await startServer(read.config, { print: (text) => (printed += text) })
  return { server, printed, token: /\/invitation#(\S+)/.exec(printed)?.[1] ?? null }
}

test('with the link of the first start, one person becomes owner with the address they enter', async () => {
  const { server, token } = await firstStart('open')
  try {
    assert.ok(token)
    const accept = async (more: object) => {
      const reply = await fetch(`${server.url}/operator/v1/invitations/accept`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: server.url },
        body: JSON.stringify({ token, password: PASSWORD, ...more }),
      })
      return [reply.status, (await reply.json()) as Record<string, unknown>] as const
    }
    for (const more of [{}, { email: 'nobody' }]) assert.equal((await accept(more))[0], 400)
    const accepted = await accept({ email: 'First@Example.com' })
    assert.deepEqual(accepted, [200, { email: 'first@example.com', role: 'owner', created: true }])
    assert.equal((await accept({ email: 'second@example.com' }))[0], 404)
  } finally {
    await server.close()
  }
})

test('with a given operator token no link is printed, because its owner can invite people', async () => {
  const given = { TACHO_INIT_OPERATOR_TOKEN: `tacho-operator_00000000testtoken_${'t'.repeat(64)}` }
  const { server, token } = await firstStart('given', given)
  await server.close()
  assert.equal(token, null)
})

test('the first start names a command that no registry can answer', () => {
  assert.equal(commandAt(ROOT), './tacho')
  assert.equal(commandAt('/usr/lib/node_modules/tacho'), 'tacho')
  assert.equal(commandAt('/project/node_modules/tacho', '/project'), './node_modules/.bin/tacho')
  const cache = path.resolve('/x/_npx/57c3/node_modules/tacho')
  const command = commandAt(cache).replaceAll("'", '')
  assert.ok(existsSync(path.join(ROOT, path.relative(cache, command))), command)
})

test('a link that needs the console says so where there is none', async () => {
  const { server, printed } = await firstStart('without console', { TACHO_CONSOLE: 'off' })
  await server.close()
  assert.match(
    printed,
    /\n\nThe next link needs the console, which is off: .*TACHO_CONSOLE.*start again\.\nTo create the first account, /,
  )
  const first = {
    workspace: 'w',
    environment: 'e',
    apiKey: null,
    operatorToken: null,
    invitation: { email: null, text: 't' },
  }
  const text = firstTenantText(first, 'http://localhost:1', undefined, 'not built')
  assert.match(text, /which is not built: run `npm run build`, and start again\./)
  assert.doesNotMatch(firstTenantText(first, 'http://localhost:1'), /console/)
})
