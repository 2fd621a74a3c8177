import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/limits.ts'
import fc from 'fast-check'
import { pageOf } from '../../src/http/paging.ts'

interface Row {
  id: number
  text: string
}

const page = (rows: Row[], limit: number) =>
  pageOf(
    rows.slice(0, limit + 1),
    limit,
    (row) => row,
    ({ id }) => String(id),
  )

test('with any limit and any row size, pages return every row once, each page at most 1 MiB or one row', () => {
  const sizes = fc.array(fc.integer({ min: 0, max: 700_000 }), { maxLength: 8 })
  const property = fc.property(sizes, fc.integer({ min: 1, max: 9 }), (bytes, limit) => {
    const rows = bytes.map((size, id) => ({ id, text: 'x'.repeat(size) }))
    const found: Row[] = []
    for (let more = true; more;) {
      const { items, nextCursor } = page(rows.slice(found.length), limit)
      assert.ok(items.length <= limit)
      const pageBytes = items.reduce((sum, item) => sum + JSON.stringify(item).length, 0)
      assert.ok(items.length <= 1 || pageBytes <= LIMITS.listBytes)
      found.push(...items)
      more = nextCursor !== null
      if (more) assert.equal(nextCursor, String(found.at(-1)?.id))
    }
    assert.deepEqual(found, rows)
  })
  fc.assert(property, { numRuns: 30 })
})

test('a page may have exactly its maximum of bytes, and not one more', () => {
  const row = (id: number, bytes: number) => ({ id, text: 'x'.repeat(bytes - JSON.stringify({ id, text: '' }).length) })
  const half = LIMITS.listBytes / 2
  assert.equal(page([row(1, half), row(2, half)], 9).items.length, 2)
  assert.equal(page([row(1, half), row(2, half + 1)], 9).items.length, 1)
})
