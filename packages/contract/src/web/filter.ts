/** Rows of the tables of filters, such as RUN_FILTERS: the filters of a list, defined once for every program. */

/** Of US dollars. */
export const AMOUNT_PATTERN = '[0-9]{1,7}(\\.[0-9]{1,9})?'
export const AMOUNT_MAX = 9_999_999

type FilterValue =
  | { kind: 'text'; max?: number }
  | { kind: 'uuid' | 'time' }
  /** As text: a decimal number. */
  | { kind: 'amount' }
  /** In milliseconds. */
  | { kind: 'duration' }
  | { kind: 'count'; max: number }
  /** One of these; a filter with one word is on or off. */
  | { kind: 'words'; words: readonly string[] }

export type FilterRow = FilterValue & {
  /** Its description in the API reference. */
  describes: string
  /** Flag of the CLI, what its help says of it, and for a flag without a value its word; without one, no command has it. */
  flag?: readonly [flags: string, help: string, word?: string]
  /** Its name in the addresses of the console, if that differs. Null: they do not have it. Times are there as a range. */
  address?: string | null
  /** Its field above the console's list; without one, the list has none. */
  field?: FilterField
}

interface FilterField {
  label: string
  /** If it differs from the label. */
  placeholder?: string
  /** In a choice: the word for no choice. */
  all?: string
  /** In a choice: the words for its values, if the page has none. */
  words?: readonly string[]
  /** What a text must look like. */
  pattern?: string
  /** In a duration: the offered values, in milliseconds. */
  offered?: readonly number[]
}

export type FilterValueOf<Row> = Row extends { kind: 'words'; words: readonly (infer Word)[] }
  ? Word
  : Row extends { kind: 'duration' | 'count' }
    ? number
    : string

/** As the store takes them: times in milliseconds. */
export type StoredFilter<Rows> = {
  -readonly [Name in keyof Rows]?:
    | (Rows[Name] extends { kind: 'time' } ? number : FilterValueOf<Rows[Name]>)
    | undefined
}

type AddressOf<Row, Name> = Row extends { address: infer Address }
  ? Address extends string
    ? Address
    : never
  : Row extends { kind: 'time' }
    ? never
    : Name

type AddressValue<Row> = Row extends { kind: 'amount' | 'duration' | 'count' }
  ? number
  : Row extends { words: readonly ['true'] }
    ? true
    : FilterValueOf<Row>

/** As the addresses of the console have them: numbers and `true` as such. */
export type FilterAddress<Rows> = {
  -readonly [Name in keyof Rows as AddressOf<Rows[Name], Name>]?: AddressValue<Rows[Name]>
}

/** As the API takes them. */
export type FilterValues<Rows> = { -readonly [Name in keyof Rows]?: FilterValueOf<Rows[Name]> }
