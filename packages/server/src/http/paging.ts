import { LIMITS } from '@tacho/contract/limits.ts'
import type { Cursors } from '../domain/cursor.ts'
import type { Page } from '../storage/page.ts'
import { refuse } from './reply-error.ts'

interface ListQuery {
  limit?: number
  cursor?: string
}

interface List<Row, Place, Read> {
  /** Tenant, list and whole filter: a cursor of another list is refused. */
  of: readonly unknown[]
  placeOf: (row: Row) => Place
  /** `lookedTo`: where to continue, if not after the last row. */
  read: (page: { limit: number; after: Place | null }) => Promise<Page<Row> & { lookedTo?: Place } & Read>
  defaultLimit?: number
}

export async function readPage<Row, Place, Read>(
  cursors: Cursors,
  { cursor, limit }: ListQuery,
  { of, read, placeOf, defaultLimit = LIMITS.operatorPageDefault }: List<Row, Place, Read>,
): Promise<Page<Row> & Read & { nextCursor: string | null }> {
  const page = await read({ limit: limit ?? defaultLimit, after: placeAt<Place>(cursors, of, cursor) })
  const last = page.rows.at(-1)
  const place = page.lookedTo ?? (last === undefined ? undefined : placeOf(last))
  return { ...page, nextCursor: page.more && place !== undefined ? cursors.write(of, place) : null }
}

export async function listPage<Row, Item, Place>(
  cursors: Cursors,
  query: ListQuery,
  { toItem, ...list }: List<Row, Place, unknown> & { toItem: (row: Row) => Item },
): Promise<{ items: Item[]; nextCursor: string | null }> {
  const { rows, nextCursor } = await readPage(cursors, query, list)
  return { items: rows.map(toItem), nextCursor }
}

export const byId = ({ id }: { id: string }): string => id
export const byNumber = ({ number }: { number: number }): number => number

/** A filter that no stored row can match. */
export const NOTHING = { items: [], nextCursor: null }

export function placeAt<Place>(cursors: Cursors, of: readonly unknown[], cursor: string | undefined): Place | null {
  if (cursor === undefined) return null
  const after = cursors.read<Place>(of, cursor)
  if (after !== null) return after
  throw refuse('invalid_cursor', 'Start again without cursor', {
    errors: [{ path: '/cursor', message: 'is damaged or belongs to another list' }],
  })
}
