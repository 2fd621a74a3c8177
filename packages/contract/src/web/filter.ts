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
  /** One of these words. A filter with only one word is on or off. */
  | { kind: 'words'; words: readonly string[] }

export type FilterRow = FilterValue & {
  /** Description in the API reference. */
  describes: string
  /** Flag of the CLI, its help text, and the word of a flag without a value. If absent, no command has the filter. */
  flag?: readonly [flags: string, help: string, word?: string]
  /**
   * Name in the console's addresses, if it differs. Null: the addresses do not contain it. Times form a range there.
   */
  address?: string | null
  /** The filter whose former name this is. */
  former?: string
  /** Field above the console's list. If absent, the list has no field for it. */
  field?: FilterField
}

interface FilterField {
  label: string
  /** Placeholder, if it differs from the label. */
  placeholder?: string
  /** For a choice: the text for no choice. */
  all?: string
  /** For a choice: the texts for its values, unless the page has them. */
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

/** Values as the store takes them: times in milliseconds, without former names. */
export type StoredFilter<Rows> = {
  -readonly [Name in keyof Rows as Rows[Name] extends { former: string } ? never : Name]?:
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

/** Values as in the console's addresses: numbers and `true` are not texts. */
export type FilterAddress<Rows> = {
  -readonly [Name in keyof Rows as AddressOf<Rows[Name], Name>]?: AddressValue<Rows[Name]>
}

/** Values as the API takes them. */
export type FilterValues<Rows> = { -readonly [Name in keyof Rows]?: FilterValueOf<Rows[Name]> }
