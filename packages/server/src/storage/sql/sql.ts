/**
 * The small adapter over which portable SQL runs. Each engine implements it on one connection inside a transaction.
 * Statements use `?` placeholders and quoted camelCase aliases, so that rows arrive in the shape of storage.ts.
 */
export interface Sql {
  readonly dialect: 'sqlite' | 'postgres'
  all<Row>(text: string, params?: readonly SqlValue[]): Promise<Row[]>
  get<Row>(text: string, params?: readonly SqlValue[]): Promise<Row | null>
  /** The number of rows written. */
  run(text: string, params?: readonly SqlValue[]): Promise<number>
}

export type SqlValue = string | number | null
