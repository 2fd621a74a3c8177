/** What every list has in common: a cursor comes in, a page and the next cursor go out. */
import { LIMITS } from '@tacho/contract/limits.ts'
import type { Cursors } from '../domain/cursor.ts'
import type { Page } from '../storage/page.ts'
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
  return refuse('invalid_cursor', 'Start again without cursor', {
    errors: [{ path: '/cursor', message: 'is damaged or belongs to another list' }],
  })
}

/**
 * A page of at most `limit` items and LIMITS.listBytes, but at least one item, from rows that were asked for with one
 * more than `limit`: the surplus row tells that another page follows.
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

/** A page of items from a page of rows, which the store has cut. */
export function pageFrom<Row, Item>(
  { rows, more }: Page<Row>,
  toItem: (row: Row) => Item,
  cursorAfter: (last: Row) => string,
): { items: Item[]; nextCursor: string | null } {
  const last = more ? rows.at(-1) : undefined
  return { items: rows.map(toItem), nextCursor: last === undefined ? null : cursorAfter(last) }
}
