import { DURATION_FIELDS, TIMESTAMP_FIELDS } from '../evaluation/clock.ts'
import {
  BOOL,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  LIST,
  listOf,
  MAP,
  type Signature,
  STRING,
  TIMESTAMP,
  type Type,
  TYPE,
} from './types.ts'

const same = (type: Type): Signature => [[type, type], type]
const order = (a: Type, b: Type): Signature => [[a, b], BOOL]

const ORDERED: readonly Signature[] = [
  ...[BOOL, INT, DOUBLE, STRING, TIMESTAMP, DURATION].map((type) => order(type, type)),
  order(INT, DOUBLE),
  order(DOUBLE, INT),
]

/** Operators, by number of operands. `==`, `!=`, `in` and `? :` follow the rules of `comparable` instead. */
export const OPERATOR_SIGNATURES: ReadonlyMap<string, readonly Signature[]> = new Map<string, readonly Signature[]>([
  ['!/1', [[[BOOL], BOOL]]],
  [
    '-/1',
    [
      [[INT], INT],
      [[DOUBLE], DOUBLE],
    ],
  ],
  ['&&/2', [same(BOOL)]],
  ['||/2', [same(BOOL)]],
  ...['<', '<=', '>', '>='].map((operator): [string, readonly Signature[]] => [`${operator}/2`, ORDERED]),
  [
    '+/2',
    [
      ...[INT, DOUBLE, STRING, DURATION, LIST].map(same),
      [[TIMESTAMP, DURATION], TIMESTAMP],
      [[DURATION, TIMESTAMP], TIMESTAMP],
    ],
  ],
  [
    '-/2',
    [...[INT, DOUBLE, DURATION].map(same), [[TIMESTAMP, DURATION], TIMESTAMP], [[TIMESTAMP, TIMESTAMP], DURATION]],
  ],
  ['*/2', [INT, DOUBLE].map(same)],
  ['//2', [INT, DOUBLE].map(same)],
  ['%/2', [same(INT)]],
])

const from = (result: Type, ...types: readonly Type[]): Signature[] => types.map((type) => [[type], result])

/** Functions, by name and number of arguments. The argument of `has` is a field, not a value. */
export const FUNCTION_SIGNATURES: ReadonlyMap<string, readonly Signature[]> = new Map([
  ['size/1', from(INT, STRING, LIST, MAP)],
  ['string/1', from(STRING, STRING, INT, DOUBLE, BOOL, TIMESTAMP, DURATION)],
  ['int/1', from(INT, INT, DOUBLE, STRING, TIMESTAMP)],
  ['double/1', from(DOUBLE, DOUBLE, INT, STRING)],
  ['bool/1', from(BOOL, BOOL, STRING)],
  ['type/1', from(TYPE, DYN)],
  ['timestamp/1', from(TIMESTAMP, TIMESTAMP, STRING, INT)],
  ['duration/1', from(DURATION, DURATION, STRING)],
  ['origin/1', from(listOf(STRING), STRING, DOUBLE, INT)],
])

/** Methods, by name and number of arguments, receiver first. Loops are not included, because they bind a variable. */
export const METHOD_SIGNATURES: ReadonlyMap<string, readonly Signature[]> = new Map<string, readonly Signature[]>([
  ['size/0', from(INT, STRING, LIST, MAP)],
  ...['startsWith', 'endsWith', 'contains', 'matches'].map((name): [string, readonly Signature[]] => [
    `${name}/1`,
    [[[STRING, STRING], BOOL]],
  ]),
  ...['lowerAscii', 'upperAscii', 'trim'].map((name): [string, readonly Signature[]] => [
    `${name}/0`,
    from(STRING, STRING),
  ]),
  ['split/1', [[[STRING, STRING], listOf(STRING)]]],
  ...Array.from(TIMESTAMP_FIELDS.keys(), (name): [string, readonly Signature[]] => [
    `${name}/0`,
    from(INT, TIMESTAMP, ...(DURATION_FIELDS.has(name) ? [DURATION] : [])),
  ]),
  ...Array.from(TIMESTAMP_FIELDS.keys(), (name): [string, readonly Signature[]] => [
    `${name}/1`,
    [[[TIMESTAMP, STRING], INT]],
  ]),
])
