import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FastifyRequest } from 'fastify'
import type { Refusal } from '../../../src/http/web/reply-error.ts'
import { createAttempts } from '../../../src/http/people/attempts.ts'

const TOO_MANY = { code: 'rate_limited' }
const limits = { perAddress: 3, perAccount: 2, begunPerAddress: 4, windowSeconds: 60 }

test('attempts count separately by account and by address', () => {
  const attempts = createAttempts(limits)
  for (let tries = 0; tries < 2; tries++) attempts.on('ann')
  assert.throws(() => attempts.on('ann'), TOO_MANY)
  attempts.on('bob')
  for (let tries = 0; tries < 3; tries++) attempts.from('192.0.2.1')
  assert.throws(() => attempts.from('192.0.2.1'), TOO_MANY)
  attempts.from('192.0.2.2')
})

test('a success resets the attempts of its account, and its share of the address', () => {
  const attempts = createAttempts(limits)
  for (let tries = 0; tries < 9; tries++) {
    attempts.from('192.0.2.1')
    attempts.on('ann')
    attempts.succeeded('ann', '192.0.2.1')
  }
})

test('a right password before a second factor costs the address nothing, and its account the attempt', () => {
  const attempts = createAttempts(limits)
  for (let tries = 0; tries < 2; tries++) {
    attempts.from('192.0.2.1')
    attempts.on('ann')
    attempts.passed('192.0.2.1')
  }
  assert.throws(() => attempts.on('ann'), TOO_MANY)
  for (let tries = 0; tries < 3; tries++) attempts.from('192.0.2.1')
  assert.throws(() => attempts.from('192.0.2.1'), TOO_MANY)
})

test('what an address begins and does not finish counts apart from what it gets wrong', () => {
  const attempts = createAttempts(limits)
  for (let tries = 0; tries < 9; tries++) {
    attempts.begin('192.0.2.1')
    attempts.finished('192.0.2.1')
  }
  for (let tries = 0; tries < 4; tries++) attempts.begin('192.0.2.1')
  assert.throws(() => attempts.begin('192.0.2.1'), TOO_MANY)
  assert.ok(attempts.mayTry('192.0.2.1'))
  for (let tries = 0; tries < 3; tries++) attempts.from('192.0.2.1')
  assert.ok(!attempts.mayTry('192.0.2.1'))
  assert.ok(attempts.mayTry('192.0.2.2'))
})

test('an IPv4 address counts separately, also in its IPv6 form, which a server on :: sees', () => {
  const attempts = createAttempts(limits)
  for (const address of ['::ffff:192.0.2.1', '192.0.2.1', '::ffff:c000:201']) {
    attempts.from(address)
  }
  assert.throws(() => attempts.from('::ffff:192.0.2.1'), TOO_MANY)
  attempts.from('::ffff:192.0.2.2')
})

test('all addresses of one IPv6 network count as one, in any notation', () => {
  const attempts = createAttempts(limits)
  for (const address of ['2001:db8::1', '2001:db8:0:0::2', '2001:db8:0:0:1:2:3:4']) {
    attempts.from(address)
  }
  assert.throws(() => attempts.from('2001:db8::ffff'), TOO_MANY)
  attempts.from('2001:db8:0:1::1')
})

test('one password of an address is hashed at a time, two in all; twenty of an address wait, and others next', async () => {
  const attempts = createAttempts()
  const begun: string[] = []
  const refused: string[] = []
  const { promise: going, resolve: go } = Promise.withResolvers<void>()
  const hash = async (address: string) => {
    const request = { ip: address, raw: { socket: { destroyed: false } } } as FastifyRequest
    const hashed = attempts.inTurn(request, async () => {
      begun.push(address)
      await going
    })
    await hashed.catch((error: Refusal) => refused.push(error.detail ?? ''))
  }
  const [one, two, three] = ['192.0.2.1', '198.51.100.2', '203.0.113.3']
  const all = Array.from({ length: 22 }, () => hash(one))
  await new Promise(setImmediate)
  assert.deepEqual(begun, [one])
  assert.deepEqual(refused, ['Too many passwords are being checked'])
  all.push(...[two, three, three].map(hash))
  await new Promise(setImmediate)
  assert.deepEqual(begun, [one, two])
  go()
  await Promise.all(all)
  assert.equal(begun.length, 24)
  assert.equal(begun.slice(2, 6).filter((address) => address === three).length, 2)
})
