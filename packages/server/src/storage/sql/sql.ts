/**
 * The small adapter over which portable SQL runs. Each engine implements it on one connection inside a transaction.
 * Statements use `?` placeholders and quoted camelCase aliases, so that rows arrive in the shape of storage.ts.
 */
import type { Page } from '../page.ts'

export interface Sql {
  readonly dialect: 'sqlite' | 'postgres'
  all<Row>(text: string, params?: readonly SqlValue[]): Promise<Row[]>
  get<Row>(text: string, params?: readonly SqlValue[]): Promise<Row | null>
  /**
   * The first rows of a statement without LIMIT: at most `limit` of them, and about LIMITS.listBytes, but at least one.
   * What has no room on the page is not read into memory.
   */
  page<Row extends object>(text: string, params: readonly SqlValue[], limit: number): Promise<Page<Row>>
  /** The number of rows written. */
  run(text: string, params?: readonly SqlValue[]): Promise<number>
}

export type SqlValue = string | number | null
