import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import Type from 'typebox'
import type { Route } from '@tacho/contract/web/route.ts'
import { ALL_ROWS, worstRequests } from '../src/load/worst-bodies.ts'
import type { WorstRequest } from '../src/load/worst-own.ts'

const decoded = ({ body, headers = {} }: WorstRequest): Buffer => {
  const encoding = headers['content-encoding']
  const bytes = body ?? Buffer.alloc(0)
  return encoding === 'gzip' ? gunzipSync(bytes) : encoding === 'br' ? brotliDecompressSync(bytes) : bytes
}

test('every endpoint has worst requests, none larger than its limit', { timeout: 300_000 }, () => {
  const seen = new Set<unknown>()
  for (const row of ALL_ROWS) {
    // Rows of one shape have the same bodies, and the largest take seconds to make.
    const shape = (row.route.body as { $id?: string } | undefined)?.$id ?? row.name
    if (seen.has(shape)) continue
    seen.add(shape)
    const requests = [...worstRequests(row)]
    assert.ok(requests.length > 0, row.name)
    if (!row.route.body) continue
    const kinds = requests.map(({ kind }) => kind).join(', ')
    for (const kind of ['most', 'deepest', 'longest text', 'escapes', 'faults', 'gzip', 'chunks']) {
      assert.match(kinds, new RegExp(kind), row.name)
    }
    for (const request of requests) {
      const { length } = decoded(request)
      assert.ok(length <= (row.route.bodyBytes ?? 0), `${row.name}, ${request.kind}: ${length}`)
    }
  }
})

test('an endpoint for which none can be made is an error', () => {
  const route: Route = { ...ALL_ROWS[0]!.route, body: Type.Unknown() }
  assert.throws(() => [...worstRequests({ name: 'new', prefix: '', route })], /no worst body of new/)
  const query = Type.Object({ at: Type.Boolean() })
  const { body: _, ...rest } = route
  assert.throws(
    () => [...worstRequests({ name: 'new', prefix: '', route: { ...rest, query } })],
    /no worst value .* at/,
  )
})
