import { LIMITS } from '@tacho/contract/limits.ts'
import type { Cursors } from '../../domain/cursor.ts'
import type { PageById } from '../../storage/page.ts'
import { pageOf, startOf, type Walk } from '../paging.ts'
import { isRefusal, type Refusal } from '../reply-error.ts'

interface ListQuery {
  limit?: number
  cursor?: string
}

/** A page of a list ordered by id, or a refusal of its cursor. */
export async function listById<Row extends { id: string }, Item>(
  cursors: Cursors,
  walk: Walk,
  { limit = LIMITS.operatorPageDefault, cursor }: ListQuery,
  read: (page: PageById) => Promise<Row[]>,
  toItem: (row: Row) => Item,
): Promise<{ items: Item[]; nextCursor: string | null } | Refusal> {
  const start = startOf<{ id: string }>(cursors, walk, cursor)
  if (isRefusal(start)) return start
  const rows = await read({ limit: limit + 1, after: start.after?.id ?? null })
  return pageOf(rows, limit, toItem, ({ id }) => cursors.write(walk, { id }))
}
