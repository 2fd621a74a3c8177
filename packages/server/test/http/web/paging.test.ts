import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import fc from 'fast-check'
import { cursors, listPage, createPaging } from '../../../src/http/web/paging.ts'
import { firstRows } from '../../../src/storage/engine/page.ts'

interface Row {
  id: number
  text: string
}

const page = (rows: Row[], limit: number, cursor?: string) =>
  listPage(
    createPaging(cursors('secret'), ['rows'], { limit, ...(cursor !== undefined && { cursor }) }),
    async (asked) => firstRows(asked.after === null ? rows : rows.slice(asked.after + 1), asked.limit),
    (row: Row) => row,
    ({ id }: Row) => id,
  )

test('with any limit and any row size, pages return every row once, each page at most 1 MiB or one row', async () => {
  const sizes = fc.array(fc.integer({ min: 0, max: 700_000 }), { maxLength: 8 })
  const property = fc.asyncProperty(sizes, fc.integer({ min: 1, max: 9 }), async (bytes, limit) => {
    const rows = bytes.map((size, id) => ({ id, text: 'x'.repeat(size) }))
    const found: Row[] = []
    let cursor: string | undefined
    do {
      const { items, nextCursor } = await page(rows, limit, cursor)
      assert.ok(items.length <= limit)
      const pageBytes = items.reduce((sum, { text }) => sum + text.length, 0)
      assert.ok(items.length <= 1 || pageBytes <= LIMITS.listBytes)
      found.push(...items)
      cursor = nextCursor ?? undefined
    } while (cursor !== undefined)
    assert.deepEqual(found, rows)
  })
  await fc.assert(property, { numRuns: 30 })
})

test('a page may have exactly its maximum of bytes, and not one more', async () => {
  const row = (id: number, bytes: number) => ({ id, text: 'x'.repeat(bytes) })
  const half = LIMITS.listBytes / 2
  assert.equal((await page([row(0, half), row(1, half)], 9)).items.length, 2)
  assert.equal((await page([row(0, half), row(1, half + 1)], 9)).items.length, 1)
})
