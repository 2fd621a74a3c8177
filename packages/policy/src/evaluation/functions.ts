import { DURATION_FIELDS, shownIn, TIMESTAMP_FIELDS, UTC } from './clock.ts'
import {
  Duration,
  LONGEST_NUMBER,
  parseDuration,
  parseTimestamp,
  showDuration,
  showTimestamp,
  Timestamp,
  timestampOfSeconds,
} from './time.ts'
import {
  intOrRefusal,
  isList,
  isMap,
  noOverload,
  outOfRange,
  Refusal,
  type Scope,
  TypeName,
  typeOf,
  type Value,
} from './value.ts'

/** Called with the arguments; the receiver of a method comes first. */
export type Implementation = (values: readonly Value[], scope: Scope) => Value | Refusal

const notANumber = new Refusal('the text is not a number')
const notABool = new Refusal('the text is not true or false')
const notATime = new Refusal('the text is not a time such as 2026-11-20T09:00:00Z')
const noHistory = new Refusal('the history of the run is not known')
const notADuration = new Refusal('the text is not a duration such as 1h30m')

/** Implements signatures.ts. build.ts builds `has`, the loops, `matches` and the time getters with a zone. */
export const FUNCTIONS = new Map<string, Implementation>([
  ['size/1', ([value], scope) => size(value, scope)],
  ['string/1', converting(toText, 0)],
  ['int/1', converting(toInt, 2)],
  ['double/1', converting(toDouble, 2)],
  ['bool/1', converting(toBool, 0)],
  ['type/1', ([value]) => new TypeName(typeOf(value as Value))],
  ['timestamp/1', converting(toTimestamp, 3)],
  ['duration/1', converting(toDuration, 8)],
  ['origin/1', ([value], scope) => origin(value, scope)],
])

export const METHODS = new Map<string, Implementation>([
  ['size/0', ([value], scope) => size(value, scope)],
  ['startsWith/1', onTexts((text, start) => text.startsWith(start))],
  ['endsWith/1', onTexts((text, end) => text.endsWith(end))],
  [
    'contains/1',
    onTexts((text, soughtText, scope) => (spendSearch(text, soughtText, scope), text.includes(soughtText))),
  ],
  ['lowerAscii/0', ([value], scope) => onText(value, scope, (text) => text.replace(/[A-Z]+/g, lower))],
  ['upperAscii/0', ([value], scope) => onText(value, scope, (text) => text.replace(/[a-z]+/g, upper))],
  ['trim/0', ([value], scope) => onText(value, scope, trim)],
  ['split/1', onTexts((text, separator, scope) => split(text, separator, scope))],
  ...[...new Set([...TIMESTAMP_FIELDS.keys(), ...DURATION_FIELDS.keys()])].map(timeField),
])

/** Finds a value in earlier outputs of the run. The first look-up of a value takes up to 30 µs, then it is cached. */
function origin(value: Value | undefined, scope: Scope): Value | Refusal {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'bigint') return noOverload
  if (!scope.history) return noHistory
  scope.spend(60)
  return scope.history.origin(typeof value === 'bigint' ? Number(value) : value)
}

const lower = (letters: string) => letters.toLowerCase()
const upper = (letters: string) => letters.toUpperCase()

function timeField(name: string): [string, Implementation] {
  const ofTimestamp = TIMESTAMP_FIELDS.get(name)
  const ofDuration = DURATION_FIELDS.get(name)
  const field: Implementation = ([value]) => {
    if (ofTimestamp && value instanceof Timestamp) return BigInt(ofTimestamp(shownIn(UTC, value)))
    return ofDuration && value instanceof Duration ? ofDuration(value) : noOverload
  }
  return [`${name}/0`, field]
}

/** The size of a text in code points, of a list or map in elements. */
function size(value: Value | undefined, scope: Scope): bigint | Refusal {
  if (typeof value === 'string') {
    scope.spend(value.length >>> 2)
    let characters = value.length
    for (let i = 0; i < value.length - 1; i++) {
      const isPair = isHigh(value.charCodeAt(i)) && isLow(value.charCodeAt(i + 1))
      if (isPair) characters--
    }
    return BigInt(characters)
  }
  if (value === undefined) return noOverload
  if (isList(value)) return BigInt(value.length)
  return isMap(value) ? BigInt(value.size) : noOverload
}

const isHigh = (unit: number) => unit >= 0xd800 && unit <= 0xdbff
const isLow = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff

/** Parsing a time takes 1 to 2 µs, a duration up to 0.2 µs per character. */
function converting(convert: (value: Value | undefined) => Value | Refusal, stepsPerCharacter: number): Implementation {
  return ([value], scope) => {
    if (typeof value === 'string') scope.spend(40 + stepsPerCharacter * Math.min(value.length, LONGEST_NUMBER))
    else scope.spend(value instanceof Timestamp || value instanceof Duration ? 60 : 10)
    return convert(value)
  }
}

function toText(value: Value | undefined): string | Refusal {
  switch (typeof value) {
    case 'string':
      return value
    case 'number':
    case 'bigint':
    case 'boolean':
      return String(value)
  }
  if (value instanceof Timestamp) return showTimestamp(value)
  return value instanceof Duration ? showDuration(value) : noOverload
}

function toInt(value: Value | undefined): bigint | Refusal {
  if (typeof value === 'bigint') return value
  if (typeof value === 'number') return Math.abs(value) < 2 ** 63 ? BigInt(Math.trunc(value)) : outOfRange
  if (value instanceof Timestamp) return value.seconds
  if (typeof value !== 'string') return noOverload
  return /^[+-]?\d{1,19}$/.test(value) ? intOrRefusal(BigInt(value.replace('+', ''))) : notANumber
}

/** Decimal texts only: "NaN", "Infinity" and "0x10" are rejected, because comparisons with NaN are always false. */
function toDouble(value: Value | undefined): number | Refusal {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  if (typeof value !== 'string') return noOverload
  const isDecimal = value.length <= LONGEST_NUMBER && /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(value)
  const number = isDecimal ? Number(value) : NaN
  return Number.isFinite(number) ? number : notANumber
}

function toBool(value: Value | undefined): boolean | Refusal {
  if (typeof value === 'boolean') return value
  if (typeof value !== 'string') return noOverload
  if (['1', 't', 'true', 'TRUE', 'True'].includes(value)) return true
  return ['0', 'f', 'false', 'FALSE', 'False'].includes(value) ? false : notABool
}

function toTimestamp(value: Value | undefined): Timestamp | Refusal {
  if (value instanceof Timestamp) return value
  if (typeof value === 'bigint') return timestampOfSeconds(value) ?? notATime
  return typeof value === 'string' ? (parseTimestamp(value) ?? notATime) : noOverload
}

function toDuration(value: Value | undefined): Duration | Refusal {
  if (value instanceof Duration) return value
  return typeof value === 'string' ? (parseDuration(value) ?? notADuration) : noOverload
}

function onText(value: Value | undefined, scope: Scope, apply: (text: string) => string): string | Refusal {
  if (typeof value !== 'string') return noOverload
  scope.spend(value.length >>> 2)
  return apply(value)
}

function onTexts(apply: (text: string, other: string, scope: Scope) => Value): Implementation {
  return ([value, other], scope) => {
    if (typeof value !== 'string' || typeof other !== 'string') return noOverload
    scope.spendText(other.length)
    return apply(value, other, scope)
  }
}

/** White space of Unicode and CEL: includes U+0085 but not U+FEFF, unlike String.trim. */
function trim(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && SPACE.test(text.charAt(start))) start++
  while (end > start && SPACE.test(text.charAt(end - 1))) end--
  return text.slice(start, end)
}

const SPACE = /\p{White_Space}/u

function split(text: string, separator: string, scope: Scope): string[] {
  spendSearch(text, separator, scope)
  // An empty separator splits into code points, not into surrogate halves.
  const parts = separator === '' ? Array.from(text) : text.split(separator)
  scope.spend(separator === '' ? text.length : parts.length)
  return parts
}

/** V8 searches a long text in time proportional to the product of both lengths: 2.4 s for 128 kB in 256 kB. */
function spendSearch(text: string, soughtText: string, scope: Scope): void {
  scope.spend(Math.ceil((text.length * (16 + soughtText.length)) / 512))
}
