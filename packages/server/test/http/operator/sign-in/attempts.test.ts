import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FastifyRequest } from 'fastify'
import { createAttempts } from '../../../../src/http/operator/sign-in/attempts.ts'

const limits = { perAddress: 3, perAccount: 2, windowSeconds: 60 }

test('attempts count separately by account and by address', () => {
  const attempts = createAttempts(limits)
  for (let tries = 0; tries < 2; tries++) assert.equal(attempts.on('ann'), null)
  assert.equal(attempts.on('ann')?.code, 'rate_limited')
  assert.equal(attempts.on('bob'), null)
  for (let tries = 0; tries < 3; tries++) assert.equal(attempts.from('192.0.2.1'), null)
  assert.equal(attempts.from('192.0.2.1')?.code, 'rate_limited')
  assert.equal(attempts.from('192.0.2.2'), null)
})

test('a success resets the attempts of its account, and its share of the address', () => {
  const attempts = createAttempts(limits)
  for (let tries = 0; tries < 9; tries++) {
    assert.equal(attempts.from('192.0.2.1'), null)
    assert.equal(attempts.on('ann'), null)
    attempts.succeeded('ann', '192.0.2.1')
  }
})

test('an IPv4 address counts separately, also in its IPv6 form, which a server on :: sees', () => {
  const attempts = createAttempts(limits)
  for (const address of ['::ffff:192.0.2.1', '192.0.2.1', '::ffff:c000:201']) {
    assert.equal(attempts.from(address), null)
  }
  assert.equal(attempts.from('::ffff:192.0.2.1')?.code, 'rate_limited')
  assert.equal(attempts.from('::ffff:192.0.2.2'), null)
})

test('all addresses of one IPv6 network count as one, in any notation', () => {
  const attempts = createAttempts(limits)
  for (const address of ['2001:db8::1', '2001:db8:0:0::2', '2001:db8:0:0:1:2:3:4']) {
    assert.equal(attempts.from(address), null)
  }
  assert.equal(attempts.from('2001:db8::ffff')?.code, 'rate_limited')
  assert.equal(attempts.from('2001:db8:0:1::1'), null)
})

test('one password of an address is hashed at a time, two in all; twenty of an address wait, and others next', async () => {
  const attempts = createAttempts()
  const begun: string[] = []
  const refused: string[] = []
  const { promise: going, resolve: go } = Promise.withResolvers<void>()
  const hash = async (address: string) => {
    const request = { ip: address, raw: { socket: { destroyed: false } } } as FastifyRequest
    const done = await attempts.inTurn(request, async () => {
      begun.push(address)
      await going
      return 'hashed'
    })
    if (typeof done !== 'string') refused.push(done.detail ?? '')
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
