import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { readConfig } from '@tacho/server/config/config.ts'
import { newApiKey } from '@tacho/server/domain/people/credential.ts'
import { flushCredentialUses } from '@tacho/server/jobs/engine/timers.ts'
import type { CredentialUse } from '@tacho/server/storage/tenants/tenants.ts'
import { startServer } from '../../setup/start-server.ts'

function source(kind: CredentialUse['kind'], uses: Map<string, number>) {
  const takeUses = () => {
    const taken = new Map(uses)
    uses.clear()
    return taken
  }
  return { kind, credentials: { takeUses } }
}

test('uses of both kinds are written together, and later ones when the job stops', async () => {
  const written: CredentialUse[][] = []
  const keys = new Map([['k', 1]])
  const tokens = new Map([['t', 2]])
  const job = flushCredentialUses({
    storage: { touchCredentials: async (uses) => void written.push(uses) },
    sources: [source('api_key', keys), source('operator_token', tokens)],
    onError: (error) => assert.fail(String(error)),
  })
  keys.set('k', 3)
  await job.stop()
  assert.deepEqual(written, [
    [
      { kind: 'api_key', id: 'k', at: 1 },
      { kind: 'operator_token', id: 't', at: 2 },
    ],
    [{ kind: 'api_key', id: 'k', at: 3 }],
  ])
})

test('without uses nothing is written, and a failed write when the job stops is reported', async () => {
  const errors: unknown[] = []
  const uses = new Map<string, number>()
  const job = flushCredentialUses({
    storage: { touchCredentials: () => Promise.reject(new Error('away')) },
    sources: [source('api_key', uses)],
    onError: (error) => errors.push(error),
  })
  await new Promise(setImmediate)
  assert.equal(errors.length, 0)
  uses.set('k', 1)
  await job.stop()
  assert.equal(errors.length, 1)
})

test('a server that stops leaves the last uses in the store', async () => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-uses-'))
  const key = newApiKey(randomBytes)
  const read = readConfig({ port: '0', dataDir: directory }, { TACHO_INIT_API_KEY: key.text })
  assert.ok(read.ok)
  const before = Date.now()
  const server = await startServer(read.config)
  await (await fetch(`${server.url}/openapi/v1/runs`, { headers: { 'x-api-key': key.text } })).text()
  await server.close()
  const db = new Database(path.join(directory, 'tacho.db'), { readonly: true })
  const lastUsedAt = db.prepare('SELECT last_used_at FROM api_keys WHERE id = ?').pluck().get(key.id)
  db.close()
  rmSync(directory, { recursive: true })
  assert.ok(typeof lastUsedAt === 'number' && lastUsedAt >= before)
})
