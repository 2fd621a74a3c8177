/** Rows of the tables of filters, such as RUN_FILTERS: the filters of a list, defined once for every program. */

/** An amount in US dollars. */
export const AMOUNT_PATTERN = '[0-9]{1,7}(\\.[0-9]{1,9})?'
export const AMOUNT_MAX = 9_999_999

type FilterValue =
  | { kind: 'text'; max?: number }
  | { kind: 'uuid' | 'time' }
  /** A decimal number, as text. */
  | { kind: 'amount' }
  /** In milliseconds. */
  | { kind: 'duration' }
  | { kind: 'count'; max: number }
  /** One of these words; a filter with one word is on or off. */
  | { kind: 'words'; words: readonly string[] }

export type FilterRow = FilterValue & {
  /** Description in the API reference. */
  describes: string
  /** Flag of the CLI, what its help says of it, and for a flag without a value its word; without one, no command has it. */
  flag?: readonly [flags: string, help: string, word?: string]
  /** Name in the addresses of the console, if it differs. Null: the addresses do not contain it. Times are a range there. */
  address?: string | null
  /** Field above the console's list; without one, the list has none. */
  field?: FilterField
}

interface FilterField {
  label: string
  /** Placeholder, if it differs from the label. */
  placeholder?: string
  /** For a choice: the word for no choice. */
  all?: string
  /** In a choice: the words for its values, if the page has none. */
  words?: readonly string[]
  /** Pattern of a valid text. */
  pattern?: string
  /** For a duration: the offered values, in milliseconds. */
  offered?: readonly number[]
}

export type FilterValueOf<Row> = Row extends { kind: 'words'; words: readonly (infer Word)[] }
  ? Word
  : Row extends { kind: 'duration' | 'count' }
    ? number
    : string

/** Values as the store takes them: times in milliseconds. */
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

/** Values as in the addresses of the console: numbers and `true` as such. */
export type FilterAddress<Rows> = {
  -readonly [Name in keyof Rows as AddressOf<Rows[Name], Name>]?: AddressValue<Rows[Name]>
}

/** Values as the API takes them. */
export type FilterValues<Rows> = { -readonly [Name in keyof Rows]?: FilterValueOf<Rows[Name]> }
