/** Rows of the tables of filters, such as RUN_FILTERS: what a list can be asked for, said once for every program. */

/** Of US dollars. */
export const AMOUNT_PATTERN = '[0-9]{1,7}(\\.[0-9]{1,9})?'
export const AMOUNT_MAX = 9_999_999

type FilterValue =
  | { kind: 'text'; max: number }
  | { kind: 'uuid' | 'time' }
  /** As text: a decimal number. */
  | { kind: 'amount' }
  /** In milliseconds. */
  | { kind: 'duration' }
  | { kind: 'count'; max: number }
  /** One of these; a filter with one word is on or off. */
  | { kind: 'words'; words: readonly string[] }

export type FilterRow = FilterValue & {
  /** In the reference of the API. */
  describes: string
  /** Flag of the CLI, and what its help says of it; without one, no command has it. */
  flag?: readonly [flags: string, help: string]
}

export type FilterValueOf<Row> = Row extends { kind: 'words'; words: readonly (infer Word)[] }
  ? Word
  : Row extends { kind: 'duration' | 'count' }
    ? number
    : string

/** As the API takes them. */
export type FilterValues<Rows> = { -readonly [Name in keyof Rows]?: FilterValueOf<Rows[Name]> }
