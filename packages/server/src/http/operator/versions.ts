/** Shared by the versions of prompts and policies. */
import { LIMITS } from '@tacho/contract/limits.ts'
import type { Cursors } from '../../domain/cursor.ts'
import type { Page } from '../../storage/page.ts'
import type { VersionPage } from '../../storage/prompts.ts'
import { pageFrom, startOf, type Walk } from '../paging.ts'
import { isRefusal, refuse, type Refusal } from '../reply-error.ts'

interface ListQuery {
  limit?: number
  cursor?: string
}

/** A page of versions, newest first, or a refusal of its cursor. */
export async function listVersions<Row extends { number: number }, Item>(
  cursors: Cursors,
  walk: Walk,
  { limit = LIMITS.operatorPageDefault, cursor }: ListQuery,
  read: (page: VersionPage) => Promise<Page<Row>>,
  toItem: (row: Row) => Item,
): Promise<{ items: Item[]; nextCursor: string | null } | Refusal> {
  const start = startOf<{ number: number }>(cursors, walk, cursor)
  if (isRefusal(start)) return start
  const page = await read({ limit, before: start.after?.number ?? null })
  return pageFrom(page, toItem, ({ number }) => cursors.write(walk, { number }))
}

/** Refuses because the author has not seen the newest version. */
export function newerVersion(newest: { version: string; author: string }): Refusal {
  const detail = `A newer version exists: ${newest.version}, by ${newest.author}`
  return refuse('conflict', detail, { current: { ...newest } })
}
