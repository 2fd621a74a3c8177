/** What every list has in common: a cursor comes in, a page and the next cursor go out. */
import type { Cursors } from '../domain/cursor.ts'
import { refuse, type Refusal } from './reply-error.ts'

/** One walk through a list: the tenant, the list and its filter. A cursor of another walk is refused. */
export type Walk = readonly unknown[]

/** The place to go on from (null: the beginning), or the refusal of a damaged or foreign cursor. */
export function startOf<Position extends object>(
  cursors: Cursors,
  walk: Walk,
  cursor: string | undefined,
): { after: Position | null } | Refusal {
  if (cursor === undefined) return { after: null }
  const after = cursors.read<Position>(walk, cursor)
  if (after) return { after }
  return refuse('invalid_cursor', undefined, {
    errors: [{ path: '/cursor', message: 'is damaged or belongs to another list' }],
  })
}

/**
 * A page of at most `limit` items from rows that were asked for with one more than that: the surplus row tells that
 * another page follows.
 */
export function pageOf<Row, Item>(
  rows: Row[],
  limit: number,
  toItem: (row: Row) => Item,
  cursorAfter: (last: Row) => string,
): { items: Item[]; nextCursor: string | null } {
  const last = rows.length > limit ? rows[limit - 1] : undefined
  return { items: rows.slice(0, limit).map(toItem), nextCursor: last === undefined ? null : cursorAfter(last) }
}
