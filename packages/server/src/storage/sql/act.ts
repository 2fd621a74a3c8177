import type { Sql } from './sql.ts'

/**
 * A look needs no transaction: it is one statement, or several that may see different states of the store. A read runs
 * on one snapshot. A write is one read-write transaction.
 */
export type ActKind = 'look' | 'read' | 'write'

interface Act<Args extends unknown[], Result> {
  readonly kind: ActKind
  readonly run: (sql: Sql, ...args: Args) => Promise<Result>
}

export type MethodsOf<Acts> = {
  readonly [Name in keyof Acts]: Acts[Name] extends Act<infer Args, infer Result>
    ? (...args: Args) => Promise<Result>
    : never
}

const declare =
  (kind: ActKind) =>
  <Args extends unknown[], Result>(run: Act<Args, Result>['run']): Act<Args, Result> => ({ kind, run })

export const look = declare('look')
export const read = declare('read')
export const write = declare('write')
