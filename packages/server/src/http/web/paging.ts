import { createHmac } from 'node:crypto'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Page } from '../../storage/engine/page.ts'
import { refuse } from './reply-error.ts'
import { sameHash } from '../../domain/people/credential.ts'

export interface ListQuery {
  limit?: number
  cursor?: string
}

/** Pages of one list: where this page begins, and the cursor of the next. */
export interface Paging {
  limit: number
  /** Null: from the beginning. */
  after: <Place>() => Place | null
  cursorAt: (place: unknown) => string
}

/** A cursor is bound to `of`: the tenant, the list and the whole filter. */
export function createPaging(cursors: Cursors, of: readonly unknown[], query: ListQuery): Paging {
  const { limit = LIMITS.operatorPageDefault, cursor } = query
  return {
    limit,
    after<Place>() {
      if (cursor === undefined) return null
      const after = cursors.read<Place>(of, cursor)
      if (after !== null) return after
      throw refuse('invalid_cursor', 'Start again without cursor', {
        errors: [{ path: '/cursor', message: 'is damaged or belongs to another list' }],
      })
    },
    cursorAt: (place) => cursors.write(of, place),
  }
}

/** `lookedTo`: where to continue, if other than after the last row. */
type Read<Row, Place, More = unknown> = (page: {
  limit: number
  after: Place | null
}) => Promise<Page<Row> & { lookedTo?: Place } & More>

export async function readPage<Row, Place, More>(
  { limit, after, cursorAt }: Paging,
  read: Read<Row, Place, More>,
  placeOf: (row: Row) => Place,
): Promise<Page<Row> & More & { nextCursor: string | null }> {
  const page = await read({ limit, after: after<Place>() })
  const last = page.rows.at(-1)
  const place = page.lookedTo ?? (last === undefined ? undefined : placeOf(last))
  return { ...page, nextCursor: page.more && place !== undefined ? cursorAt(place) : null }
}

interface Listed<Item> {
  items: Item[]
  nextCursor: string | null
}

export async function listPage<Row, Item, Place>(
  paging: Paging,
  read: Read<Row, Place>,
  toItem: (row: Row) => Item,
  placeOf: (row: Row) => Place,
): Promise<Listed<Item>> {
  const { rows, nextCursor } = await readPage(paging, read, placeOf)
  return { items: rows.map(toItem), nextCursor }
}

export function listById<Row extends { id: string }, Item>(
  paging: Paging,
  read: Read<Row, string>,
  toItem: (row: Row) => Item,
): Promise<Listed<Item>> {
  return listPage(paging, read, toItem, ({ id }) => id)
}

export const byNumber = ({ number }: { number: number }): number => number

/** The answer to a filter that no stored row can match. */
export const NOTHING = { items: [], nextCursor: null }

/** Opaque and authenticated. A cursor is bound to its tenant, list, filter or run, but not to the page size. */
export interface Cursors {
  write(list: readonly unknown[], position: unknown): string
  read<Position>(list: readonly unknown[], cursor: string): Position | null
}

/** `secret` is stored, so that cursors stay valid on every node and after a restart. */
export function cursors(secret: string): Cursors {
  const sign = (list: readonly unknown[], text: string): string =>
    createHmac('sha256', secret)
      .update(`cursor v1\n${JSON.stringify(list)}\n${text}`)
      .digest('base64url')
  return {
    write(list, position) {
      const text = Buffer.from(JSON.stringify(position)).toString('base64url')
      return `${text}.${sign(list, text)}`
    },
    read<Position>(list: readonly unknown[], cursor: string) {
      const dot = cursor.indexOf('.')
      const text = cursor.slice(0, Math.max(dot, 0))
      if (dot < 0 || !sameHash(cursor.slice(dot + 1), sign(list, text))) return null
      return JSON.parse(Buffer.from(text, 'base64url').toString()) as Position
    },
  }
}
