import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { IdempotencyKey } from '../../../../src/storage/engine/work.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const REPLY = { status: 201, json: '{"id":"é 😀"}' }

const newKey = (): IdempotencyKey => ({ actorKind: 'token', actorId: newId(), key: 'k' })

export function idempotencySuite(open: OpenStorage) {
  describe('an idempotency key', () => {
    const storage = sharedStorage(open)
    const claim = (key: IdempotencyKey, now: number, fingerprint = 'f') =>
      storage().claimIdempotencyKey(key, { fingerprint, now, freeUntil: now - DAY, deadUntil: now - MINUTE })

    test('is claimed once, and its reply is kept for a day', async () => {
      const key = newKey()
      assert.equal(await claim(key, NOON), 'claimed')
      assert.equal(await claim(key, NOON), 'running')
      await storage().keepIdempotentReply(key, NOON, REPLY)
      assert.deepEqual(await claim(key, NOON + DAY - 1), REPLY)
      assert.equal(await claim(key, NOON + DAY), 'claimed')
      assert.equal(await claim(key, NOON + DAY), 'running')
    })

    test('identifies one request of one actor', async () => {
      const key = newKey()
      assert.equal(await claim(key, NOON), 'claimed')
      assert.equal(await claim(key, NOON, 'g'), 'other')
      assert.equal(await claim(key, NOON + MINUTE, 'g'), 'other')
      assert.equal(await claim({ ...key, actorKind: 'operator' }, NOON, 'g'), 'claimed')
      assert.equal(await claim({ ...key, actorId: newId() }, NOON, 'g'), 'claimed')
      assert.equal(await claim({ ...key, key: 'K' }, NOON, 'g'), 'claimed')
      await storage().keepIdempotentReply(key, NOON, REPLY)
      assert.equal(await claim(key, NOON, 'g'), 'other')
      assert.equal(await claim(key, NOON + DAY, 'g'), 'claimed')
    })

    test('can be claimed again after its release', async () => {
      const key = newKey()
      await claim(key, NOON)
      await storage().releaseIdempotencyKey(key, NOON)
      assert.equal(await claim(key, NOON, 'g'), 'claimed')
    })

    test('of a lost request can be claimed again after a minute; then the first request can no longer change it', async () => {
      const key = newKey()
      await claim(key, NOON)
      assert.equal(await claim(key, NOON + MINUTE - 1), 'running')
      assert.equal(await claim(key, NOON + MINUTE), 'claimed')
      await storage().releaseIdempotencyKey(key, NOON)
      await storage().keepIdempotentReply(key, NOON, REPLY)
      assert.equal(await claim(key, NOON + MINUTE), 'running')
      await storage().keepIdempotentReply(key, NOON + MINUTE, REPLY)
      await storage().releaseIdempotencyKey(key, NOON + MINUTE)
      assert.deepEqual(await claim(key, NOON + 3 * MINUTE), REPLY)
    })

    test('is claimed by one of several concurrent requests', async () => {
      const key = newKey()
      const outcomes = await Promise.all(Array.from({ length: 8 }, () => claim(key, NOON)))
      assert.equal(outcomes.filter((outcome) => outcome === 'claimed').length, 1)
      assert.equal(outcomes.filter((outcome) => outcome === 'running').length, 7)
    })

    test('is deleted when it is old, a few at a time', async () => {
      const [old, young] = [[newKey(), newKey(), newKey()], newKey()]
      for (const key of old) await claim(key, 1)
      await claim(young, 2)
      assert.equal(await storage().deleteOldIdempotencyKeys(2, 2), 2)
      assert.equal(await storage().deleteOldIdempotencyKeys(2, 2), 1)
      assert.equal(await storage().deleteOldIdempotencyKeys(2, 2), 0)
      assert.equal(await claim(young, 2), 'running')
    })
  })
}
