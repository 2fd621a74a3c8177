import Type, { type TUnsafe } from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import { AMOUNT_PATTERN, type FilterRow, type FilterValueOf } from './filter.ts'

/** Text; its length counts Unicode code points. */
export function text(maxLength: number, description: string): Type.TString {
  return Type.String({ maxLength, description })
}

/** Non-empty text: an identifier. */
export function id(maxLength: number, description: string): Type.TString {
  return Type.String({ minLength: 1, maxLength, description })
}

export function uuid(description: string): Type.TString {
  return Type.String({ format: 'uuid', description })
}

/** ISO 8601 time in UTC with milliseconds. */
export function time(description: string): Type.TString {
  return Type.String({ format: 'date-time', description })
}

export function nullableTime(description: string): TUnsafe<string | null> {
  return Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time', description })
}

/** Marks imported records that name an author, because only the import vouches for that name. */
export const importedAt = nullableTime('When an import brought it; null: it was done in this installation')

/** Marks a row whose checksum in the store does not match. */
export function damaged(description: string): Type.TOptional<Type.TLiteral<true>> {
  return Type.Optional(Type.Literal(true, { description }))
}

/** An optional text in a request; null means the same as absent. */
export function optionalText(
  description: string,
  maxLength: number = LIMITS.textChars,
): Type.TOptional<TUnsafe<string | null>> {
  return Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength, description }))
}

export function nullableText(description: string): TUnsafe<string | null> {
  return Type.Unsafe<string | null>({ type: ['string', 'null'], description })
}

/** An integer in a query: `[1-9][0-9]*`, from 1 to `maximum`. */
export function pageLimit(byDefault: number, maximum: number): Type.TOptional<Type.TInteger> {
  return Type.Optional(Type.Integer({ minimum: 1, maximum, default: byDefault, description: 'Page size' }))
}

export const cursor = Type.Optional(
  Type.String({
    minLength: 1,
    description:
      'The opaque `nextCursor` of the previous page of this list; any other text is refused as `invalid_cursor`',
  }),
)

export const nextCursor = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: 'Cursor of the next page; null when there are no more pages',
})

/** A JSON object that the service stores without interpreting it. */
export const anyObject = Type.Unsafe<Record<string, unknown>>({ type: 'object' })

export const IDEMPOTENCY_KEY_HEADER = 'Idempotency-Key'

/** Marks a reply that is the stored reply of the first request with the same key. */
export const REPLAYED_HEADER = 'Idempotency-Replayed'

/** Header of every endpoint that creates something. */
export const CreationHeaders = Type.Object({
  [IDEMPOTENCY_KEY_HEADER]: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: '^[ -~]+$',
      description:
        'Any printable ASCII text; use a new one for each thing you create. A retry within 24 hours creates nothing and gets the first ' +
        'reply, with the header Idempotency-Replayed',
    }),
  ),
})

type FilterSchemas<Rows> = { -readonly [Name in keyof Rows]: Type.TOptional<TUnsafe<FilterValueOf<Rows[Name]>>> }

/** The parameters of a list, from the table of its filters. */
export function filterSchemas<Rows extends Record<string, FilterRow>>(
  rows: Rows,
  describe: (row: Rows[keyof Rows]) => string = ({ describes }) => describes,
): FilterSchemas<Rows> {
  const schemas = Object.entries(rows).map(([name, row]) => {
    return [name, Type.Optional(filterSchema(row, describe(row as Rows[keyof Rows])))]
  })
  return Object.fromEntries(schemas) as FilterSchemas<Rows>
}

function filterSchema(row: FilterRow, description: string): Type.TSchema {
  switch (row.kind) {
    case 'text':
      return Type.String({ minLength: 1, ...(row.max !== undefined && { maxLength: row.max }), description })
    case 'uuid':
      return uuid(description)
    case 'time':
      return time(description)
    case 'amount':
      return Type.String({ pattern: `^${AMOUNT_PATTERN}$`, description })
    case 'duration':
      return Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description })
    case 'count':
      return Type.Integer({ minimum: 1, maximum: row.max, description })
    case 'words':
      return Type.Enum([...row.words], { description })
  }
}
