import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { readConfig } from '@tacho/server/config/config.ts'
import { startServer } from '../setup/start-server.ts'
import { recover, restore, StoreRefused } from '@tacho/server/maintenance/offline.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-offline-'))
after(() => rmSync(folder, { recursive: true }))

const first = { workspace: 'default', environment: 'development' }
const keyOf = (text: string) => /tacho_\w+/.exec(text)?.[0] ?? ''
const tokenOf = (text: string) => /tacho-operator_\w+/.exec(text)?.[0] ?? ''

/** Starts a server on a directory. Returns it with its output. */
async function serve(t: TestContext, dataDir: string) {
  const read = readConfig({ port: '0', dataDir }, {})
  assert.ok(read.ok)
  let text = ''
  const server = await startServer(read.config, { print: (part) => (text += part) })
  t.after(() => server.close())
  const status = async (target: string, headers: Record<string, string>) => {
    const reply = await fetch(`${server.url}${target}`, { headers })
    await reply.arrayBuffer()
    return reply.status
  }
  return {
    ...server,
    printed: () => text,
    operator: (token: string) => status('/operator/v1/workspaces', { authorization: `Bearer ${token}` }),
    api: (key: string) => status('/openapi/v1/runs', { 'x-api-key': key }),
  }
}

/** A store in a new directory, with the credentials of its first start. */
async function newStore(t: TestContext) {
  const dataDir = mkdtempSync(path.join(folder, 'store-'))
  const server = await serve(t, dataDir)
  await server.close()
  return { dataDir, key: keyOf(server.printed()), token: tokenOf(server.printed()) }
}

const refused = (message: RegExp) => (error: unknown) => error instanceof StoreRefused && message.test(error.message)

test('a lost token and key are replaced; the old ones stay valid unless they are revoked', async (t) => {
  const { dataDir, key, token } = await newStore(t)
  const made = await recover({ dataDir, operatorToken: true, apiKeyFor: first })
  assert.deepEqual([made.revokedApiKeys, made.revokedOperatorTokens], [0, 0])
  const server = await serve(t, dataDir)
  assert.deepEqual([await server.operator(made.operatorToken ?? ''), await server.operator(token)], [200, 200])
  assert.deepEqual([await server.api(made.apiKey ?? ''), await server.api(key)], [200, 200])
  await server.close()

  const replaced = await recover({ dataDir, operatorToken: true, apiKeyFor: first, revokeOld: true })
  assert.deepEqual([replaced.revokedApiKeys, replaced.revokedOperatorTokens], [2, 2])
  const again = await serve(t, dataDir)
  assert.deepEqual([await again.operator(replaced.operatorToken ?? ''), await again.operator(token)], [200, 401])
  assert.deepEqual([await again.api(replaced.apiKey ?? ''), await again.api(key)], [200, 401])
})

test('only the requested credentials are replaced', async (t) => {
  const { dataDir, key } = await newStore(t)
  const made = await recover({ dataDir, operatorToken: true, revokeOld: true })
  assert.deepEqual([made.apiKey, made.revokedApiKeys, made.revokedOperatorTokens], [null, 0, 1])
  const server = await serve(t, dataDir)
  assert.equal(await server.api(key), 200)
})

test('an unknown name is reported and changes nothing', async (t) => {
  const { dataDir, token } = await newStore(t)
  const both = { dataDir, operatorToken: true, revokeOld: true }
  await assert.rejects(recover({ ...both, apiKeyFor: { ...first, workspace: 'x' } }), refused(/no workspace "x"/))
  await assert.rejects(recover({ ...both, apiKeyFor: { ...first, environment: 'x' } }), refused(/no environment "x"/))
  const server = await serve(t, dataDir)
  assert.equal(await server.operator(token), 200)
})

test('a store that a server has open, or that does not exist, is refused', async (t) => {
  const { dataDir } = await newStore(t)
  await serve(t, dataDir)
  await assert.rejects(recover({ dataDir, operatorToken: true }), refused(/open in another process/))
  const empty = path.join(folder, 'nothing')
  await assert.rejects(recover({ dataDir: empty, operatorToken: true }), refused(/There is no store in .*nothing/))
  assert.ok(!existsSync(empty))
})

test('a backup is restored into a directory; an existing store is moved aside only on request', async (t) => {
  const { dataDir } = await newStore(t)
  const made = await recover({ dataDir, operatorToken: true })
  const source = await newStore(t)
  const server = await serve(t, source.dataDir)
  const from = path.join(folder, 'backup.db')
  const reply = await fetch(`${server.url}/operator/v1/backups`, {
    method: 'POST',
    headers: { authorization: `Bearer ${source.token}` },
  })
  writeFileSync(from, Buffer.from(await reply.arrayBuffer()))
  await server.close()

  assert.throws(() => restore({ from, dataDir }), refused(/already contains a store/))
  const { replaced } = restore({ from, dataDir, replace: true })
  assert.ok(replaced !== null && readdirSync(dataDir).includes(path.basename(replaced)))
  const restored = await serve(t, dataDir)
  assert.deepEqual(
    [await restored.operator(source.token), await restored.operator(made.operatorToken ?? '')],
    [200, 401],
  )
  assert.throws(() => restore({ from: path.join(folder, 'no such file'), dataDir: folder }), StoreRefused)
})
