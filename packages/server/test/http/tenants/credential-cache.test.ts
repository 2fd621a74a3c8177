import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { newApiKey, parseApiKey, type NewCredential } from '@tacho/server/domain/people/credential.ts'
import { createCredentialCache, type StoredCredential } from '@tacho/server/http/tenants/credential-cache.ts'

const NOW = 1_800_000_000_000
const TRUST_MS = 5_000

interface Clock {
  monotonic: number
}

function row({ id, hash }: NewCredential, changes: Partial<StoredCredential> = {}): StoredCredential {
  return { id, hash, expiresAt: null, revokedAt: null, ...changes }
}

/** A cache over a table of rows that counts its queries, with a stopped clock. */
function open(rows: StoredCredential[], maxEntries = 100) {
  const table = new Map(rows.map((entry) => [entry.id, entry]))
  const clock: Clock = { monotonic: 1_000 }
  const asked: string[] = []
  const cache = createCredentialCache<StoredCredential>({
    parse: parseApiKey,
    load: async (id) => {
      asked.push(id)
      await new Promise(setImmediate)
      return table.get(id) ?? null
    },
    monotonicNow: () => clock.monotonic,
    maxEntries,
  })
  cache.observeRevision(1, clock.monotonic)
  return { table, clock, asked, cache }
}

test('a valid key is looked up once, then cached', async () => {
  const key = newApiKey(randomBytes)
  const { cache, asked } = open([row(key)])
  assert.equal((await cache.find(key.text, NOW))?.id, key.id)
  assert.equal((await cache.find(key.text, NOW))?.id, key.id)
  assert.deepEqual(asked, [key.id])
})

test('an unknown id is looked up once, then cached as unknown', async () => {
  const key = newApiKey(randomBytes)
  const { cache, asked } = open([])
  assert.equal(await cache.find(key.text, NOW), null)
  assert.equal(await cache.find(key.text, NOW), null)
  assert.equal(asked.length, 1)
})

test('a text that cannot be a key never reaches the store', async () => {
  const { cache, asked } = open([])
  for (const text of ['', 'tacho_', 'x'.repeat(10_000), newApiKey(randomBytes).text.toUpperCase()]) {
    assert.equal(await cache.find(text, NOW), null)
  }
  assert.deepEqual(asked, [])
})

test('the right id with a wrong secret is rejected, and does not affect the right one', async () => {
  const key = newApiKey(randomBytes)
  const { cache } = open([row(key)])
  const wrong = `${key.text.slice(0, -1)}${key.text.endsWith('0') ? '1' : '0'}`
  assert.equal(await cache.find(wrong, NOW), null)
  assert.equal((await cache.find(key.text, NOW))?.id, key.id)
  assert.equal(await cache.find(wrong, NOW), null)
})

test('a key expires at its millisecond, cached or not', async () => {
  const key = newApiKey(randomBytes)
  const { cache } = open([row(key, { expiresAt: NOW })])
  assert.equal((await cache.find(key.text, NOW - 1))?.id, key.id)
  assert.equal(await cache.find(key.text, NOW), null)
})

test('a revoked key is rejected', async () => {
  const key = newApiKey(randomBytes)
  const { cache } = open([row(key, { revokedAt: NOW + 1 })])
  assert.equal(await cache.find(key.text, NOW), null)
})

test('a new revision clears the cache: a revocation holds, a new key works', async () => {
  const [old, fresh] = [newApiKey(randomBytes), newApiKey(randomBytes)]
  const { cache, table, clock } = open([row(old)])
  assert.ok(await cache.find(old.text, NOW))
  assert.equal(await cache.find(fresh.text, NOW), null)
  table.set(old.id, row(old, { revokedAt: NOW }))
  table.set(fresh.id, row(fresh))
  cache.observeRevision(1, clock.monotonic)
  assert.ok(await cache.find(old.text, NOW), 'the same revision keeps what is remembered')
  cache.observeRevision(2, clock.monotonic)
  assert.equal(await cache.find(old.text, NOW), null)
  assert.ok(await cache.find(fresh.text, NOW))
})

test('a lookup that began before a change is not cached after it', async () => {
  const key = newApiKey(randomBytes)
  const { cache, table, clock } = open([])
  const before = row(key)
  table.set(key.id, before)
  const early = cache.find(key.text, NOW)
  cache.observeRevision(2, clock.monotonic)
  table.set(key.id, row(key, { revokedAt: NOW }))
  await early
  assert.equal(await cache.find(key.text, NOW), null)
})

test('while the store is silent for five seconds the cache is not used', async () => {
  const key = newApiKey(randomBytes)
  const { cache, table, clock, asked } = open([row(key)])
  assert.ok(await cache.find(key.text, NOW))
  table.set(key.id, row(key, { revokedAt: NOW }))
  clock.monotonic += TRUST_MS - 1
  assert.ok(await cache.find(key.text, NOW))
  clock.monotonic += 1
  assert.equal(await cache.find(key.text, NOW), null)
  assert.equal(asked.length, 2)
})

test('concurrent requests with one key share one lookup', async () => {
  const key = newApiKey(randomBytes)
  const { cache, asked } = open([row(key)])
  const found = await Promise.all(Array.from({ length: 50 }, async () => cache.find(key.text, NOW)))
  assert.ok(found.every((entry) => entry?.id === key.id))
  assert.equal(asked.length, 1)
})

test('a failed lookup rejects all waiting requests and is not cached', async () => {
  const key = newApiKey(randomBytes)
  let fail = true
  const cache = createCredentialCache<StoredCredential>({
    parse: parseApiKey,
    load: async () => {
      if (fail) throw new Error('store is away')
      return row(key)
    },
  })
  const both = await Promise.allSettled([cache.find(key.text, NOW), cache.find(key.text, NOW)])
  assert.deepEqual(
    both.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  fail = false
  assert.ok(await cache.find(key.text, NOW))
})

test('a flood of unknown ids keeps memory bounded and evicts no valid key', async () => {
  const key = newApiKey(randomBytes)
  const { cache, asked } = open([row(key)])
  assert.ok(await cache.find(key.text, NOW))
  for (let sent = 0; sent < 1_000; sent++) await cache.find(newApiKey(randomBytes).text, NOW)
  assert.equal(cache.size(), 1 + 100)
  asked.length = 0
  assert.ok(await cache.find(key.text, NOW))
  assert.deepEqual(asked, [])
})

test('only successful uses are recorded, each with its newest time, and returned once', async () => {
  const key = newApiKey(randomBytes)
  const { cache } = open([row(key)])
  await cache.find(key.text, NOW)
  await cache.find(key.text, NOW + 5)
  await cache.find(newApiKey(randomBytes).text, NOW)
  assert.deepEqual([...cache.takeUses()], [[key.id, NOW + 5]])
  assert.equal(cache.takeUses().size, 0)
})
