import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FastifyReply } from 'fastify'
import { createRateLimit, limitRate } from '../../../src/http/tenants/rate-limit.ts'

/** How many of `tries` concurrent requests are allowed, and the limit headers of the last reply. */
function allowed(nodes: () => number, limit: number | null, tries: number, key = 'key') {
  const headers: Record<string, unknown> = {}
  const reply = {
    header(name: string, value: unknown) {
      headers[name] = value
      return reply
    },
  } as unknown as FastifyReply
  const rateLimit = createRateLimit({ requestsPerSecond: 100, nodes })
  const refusals = Array.from({ length: tries }, () => limitRate(rateLimit, reply, key, limit))
  return { count: refusals.filter((refusal) => refusal === null).length, headers, refusals }
}

test('one node grants the whole limit, and several nodes their share of it', () => {
  assert.equal(allowed(() => 1, null, 150).count, 100)
  assert.equal(allowed(() => 3, null, 150).count, 33)
  assert.equal(allowed(() => 4, 20, 150).count, 5)
})

test('a node grants one request a second with any number of nodes', () => {
  assert.equal(allowed(() => 50, 3, 5).count, 1)
})

test('headers show the share of the answering node, and a 429 also the whole limit', () => {
  const { headers, refusals } = allowed(() => 2, 6, 4)
  assert.equal(headers['ratelimit-limit'], 3)
  assert.match(JSON.stringify(refusals.at(-1)), /6 requests per second, 3 on each of 2 nodes/)
})

test('the share follows the number of live nodes', () => {
  let nodes = 2
  const rateLimit = createRateLimit({ requestsPerSecond: 10, nodes: () => nodes })
  const granted = () => {
    const counted = Array.from({ length: 20 }, () => rateLimit.count('k', null))
    return counted.filter(({ refusal }) => refusal === null).length
  }
  assert.equal(granted(), 5)
  nodes = 1
  assert.equal(granted(), 10)
})
