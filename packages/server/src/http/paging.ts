/** Shared by all lists: a cursor comes in; a page and the next cursor go out. */
import { LIMITS } from '@tacho/contract/limits.ts'
import type { Cursors } from '../domain/cursor.ts'
import type { Page } from '../storage/page.ts'
import { refuse, type Refusal } from './reply-error.ts'

/** Identifies one list: tenant, list name and filter. A cursor of another list is rejected. */
export type Walk = readonly unknown[]

/** Where to continue (null: at the start), or the refusal of a damaged or foreign cursor. */
export function startOf<Position extends object>(
  cursors: Cursors,
  walk: Walk,
  cursor: string | undefined,
): { after: Position | null } | Refusal {
  if (cursor === undefined) return { after: null }
  const after = cursors.read<Position>(walk, cursor)
  if (after) return { after }
  return refuse('invalid_cursor', 'Start again without cursor', {
    errors: [{ path: '/cursor', message: 'is damaged or belongs to another list' }],
  })
}

/**
 * A page of at most `limit` items and LIMITS.listBytes, but at least one item. Pass `limit` + 1 rows: the extra row
 * shows that another page follows.
 */
export function pageOf<Row, Item>(
  rows: Row[],
  limit: number,
  toItem: (row: Row) => Item,
  cursorAfter: (last: Row) => string,
): { items: Item[]; nextCursor: string | null } {
  const items: Item[] = []
  let bytes = 0
  for (const row of rows.slice(0, limit)) {
    const item = toItem(row)
    bytes += Buffer.byteLength(JSON.stringify(item))
    if (items.length > 0 && bytes > LIMITS.listBytes) break
    items.push(item)
  }
  const last = items.length < rows.length ? rows[items.length - 1] : undefined
  return { items, nextCursor: last === undefined ? null : cursorAfter(last) }
}

/**
 * A page of items from a page of rows that the store already limited. `lookedTo`: where to continue, if not after the
 * last row.
 */
export function pageFrom<Row, Item, Place = Row>(
  { rows, more, lookedTo }: Page<Row> & { lookedTo?: Place },
  toItem: (row: Row) => Item,
  cursorAfter: (last: Row | Place) => string,
): { items: Item[]; nextCursor: string | null } {
  const last = more ? (lookedTo ?? rows.at(-1)) : undefined
  return { items: rows.map(toItem), nextCursor: last === undefined ? null : cursorAfter(last) }
}
