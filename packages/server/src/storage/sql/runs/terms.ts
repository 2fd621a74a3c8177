import { HOUR_MS } from '../../engine/hours.ts'
import { hashOf } from '../../runs/search-text.ts'
import type { Sql } from '../engine/sql.ts'

/** SQLite finds matches in order of time. PostgreSQL finds all matches of an hour and sorts them. */
export function seedOf({ dialect }: Pick<Sql, 'dialect'>, environmentId: string, time: number): number {
  return hashOf(dialect === 'sqlite' ? environmentId : `${environmentId} ${Math.floor(time / HOUR_MS)}`)
}

export const wordOf = (hash: number): string => (hash >>> 0).toString(36)

/** In SQLite, the place of an event is its time, and in the lowest bits a part of its seq. */
export const TIES = 2_097_152
/** Takes names of parameters. The result exceeds the exact integers of JavaScript. */
export const placeFrom = (time: string, seq: string): string =>
  `CAST(:${time} AS INTEGER) * ${TIES} + CAST(:${seq} AS INTEGER) % ${TIES}`
