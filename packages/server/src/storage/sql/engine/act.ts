import type { Sql } from './sql.ts'

/**
 * A look needs no transaction: it is one statement, or several that may see different states of the store. A read runs
 * on one snapshot. A write is one read-write transaction.
 */
export type ActKind = 'look' | 'read' | 'write'

type Run = (sql: Sql, ...args: never[]) => Promise<unknown>

export type MethodsOf<Acts> = {
  readonly [Name in keyof Acts]: Acts[Name] extends { run: (sql: Sql, ...args: infer Args) => infer Result }
    ? (...args: Args) => Result
    : never
}

const declare =
  (kind: ActKind) =>
  <Runs extends Record<string, Run>>(runs: Runs) =>
    Object.fromEntries(Object.entries(runs).map(([name, run]) => [name, { kind, run }])) as {
      readonly [Name in keyof Runs]: { readonly kind: ActKind; readonly run: Runs[Name] }
    }

/** A write to runs that their writer may have cached. `changedRuns` returns their ids; the first argument is the environment. */
export const changesRuns = <Result, Args extends unknown[]>(
  run: (sql: Sql, ...args: Args) => Promise<Result>,
  changedRuns: (result: Result, ...args: Args) => string[],
) => ({ kind: 'write' as ActKind, run, changedRuns })

export const look = declare('look')
export const read = declare('read')
export const write = declare('write')
