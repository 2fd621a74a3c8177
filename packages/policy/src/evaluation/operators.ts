import { Duration, Timestamp } from './time.ts'
import {
  intOrRefusal,
  isList,
  isMap,
  noOverload,
  outOfRange,
  Refusal,
  type Scope,
  TypeName,
  type Value,
} from './value.ts'

type Operator = (left: Value, right: Value, scope: Scope) => Value | Refusal

const divisionByZero = new Refusal('division by zero')

/** Every binary operator that evaluates both sides. */
export const OPERATORS = new Map<string, Operator>([
  ['==', (left, right, scope) => equal(left, right, scope)],
  ['!=', (left, right, scope) => !equal(left, right, scope)],
  ['<', ordered((order) => order < 0)],
  ['<=', ordered((order) => order <= 0)],
  ['>', ordered((order) => order > 0)],
  ['>=', ordered((order) => order >= 0)],
  ['in', isIn],
  ['+', add],
  ['-', subtract],
  [
    '*',
    arithmetic(
      (a, b) => a * b,
      (a, b) => a * b,
    ),
  ],
  [
    '/',
    arithmetic(
      (a, b) => (b === 0n ? divisionByZero : a / b),
      (a, b) => a / b,
    ),
  ],
  [
    '%',
    arithmetic(
      (a, b) => (b === 0n ? divisionByZero : a % b),
      () => noOverload,
    ),
  ],
])

export function not(value: Value): Value | Refusal {
  return typeof value === 'boolean' ? !value : noOverload
}

export function negate(value: Value): Value | Refusal {
  if (typeof value === 'number') return -value
  return typeof value === 'bigint' ? intOrRefusal(-value) : noOverload
}

/** CEL equality: values of different types differ, except an int and a double with the same value. */
export function equal(left: Value, right: Value, scope: Scope): boolean {
  if (typeof left !== 'object' || left === null) {
    if (typeof left === 'string') scope.spendText(left.length)
    return left === right || isSameNumber(left, right) || isSameNumber(right, left)
  }
  if (isList(left)) return isList(right) && equalLists(left, right, scope)
  if (isMap(left)) return right instanceof Map && equalMaps(left, right, scope)
  if (left instanceof Timestamp) return right instanceof Timestamp && left.nanos === right.nanos
  if (left instanceof Duration) return right instanceof Duration && left.nanos === right.nanos
  return right instanceof TypeName && left.name === right.name
}

function isSameNumber(int: Value, double: Value): boolean {
  return typeof int === 'bigint' && typeof double === 'number' && Number.isInteger(double) && BigInt(double) === int
}

function equalLists(left: readonly Value[], right: readonly Value[], scope: Scope): boolean {
  if (left.length !== right.length) return false
  for (const [index, element] of left.entries()) {
    scope.spend(1)
    if (!equal(element, right[index] as Value, scope)) return false
  }
  return true
}

function equalMaps(left: ReadonlyMap<string, Value>, right: ReadonlyMap<string, Value>, scope: Scope): boolean {
  if (left.size !== right.size) return false
  for (const [key, value] of left) {
    scope.spend(2)
    const other = right.get(key)
    if (other === undefined || !equal(value, other, scope)) return false
  }
  return true
}

function isIn(element: Value, container: Value, scope: Scope): boolean | Refusal {
  if (isList(container)) {
    for (const other of container) {
      scope.spend(1)
      if (equal(element, other, scope)) return true
    }
    return false
  }
  // Keys are texts. No map has another scalar as a key; any other value is an error.
  if (!isMap(container) || (typeof element === 'object' && element !== null)) return noOverload
  return typeof element === 'string' && container.has(element)
}

function add(left: Value, right: Value, scope: Scope): Value | Refusal {
  if (typeof left === 'string' && typeof right === 'string') {
    scope.spendText(left.length + right.length)
    return left + right
  }
  if (isList(left) && isList(right)) {
    scope.spend(left.length + right.length)
    return left.concat(right)
  }
  if (left instanceof Timestamp && right instanceof Duration)
    return Timestamp.of(left.nanos + right.nanos) ?? outOfRange
  if (left instanceof Duration && right instanceof Timestamp)
    return Timestamp.of(left.nanos + right.nanos) ?? outOfRange
  if (left instanceof Duration && right instanceof Duration) return Duration.of(left.nanos + right.nanos) ?? outOfRange
  return sum(left, right, scope)
}

function subtract(left: Value, right: Value, scope: Scope): Value | Refusal {
  if (left instanceof Timestamp && right instanceof Timestamp)
    return Duration.of(left.nanos - right.nanos) ?? outOfRange
  if (left instanceof Timestamp && right instanceof Duration)
    return Timestamp.of(left.nanos - right.nanos) ?? outOfRange
  if (left instanceof Duration && right instanceof Duration) return Duration.of(left.nanos - right.nanos) ?? outOfRange
  return difference(left, right, scope)
}

const sum = arithmetic(
  (a, b) => a + b,
  (a, b) => a + b,
)
const difference = arithmetic(
  (a, b) => a - b,
  (a, b) => a - b,
)

/** Arithmetic of two ints or two doubles: CEL never mixes them. */
function arithmetic(
  ints: (left: bigint, right: bigint) => bigint | Refusal,
  doubles: (left: number, right: number) => number | Refusal,
): Operator {
  return (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return doubles(left, right)
    if (typeof left !== 'bigint' || typeof right !== 'bigint') return noOverload
    const result = ints(left, right)
    return typeof result === 'bigint' ? intOrRefusal(result) : result
  }
}

function ordered(holds: (order: number) => boolean): Operator {
  return (left, right, scope) => {
    const order = orderOf(left, right, scope)
    return order === undefined ? noOverload : holds(order)
  }
}

/** Negative, 0 or positive. NaN if a double is NaN, so every comparison is false. Undefined if the values have no order. */
function orderOf(left: Value, right: Value, scope: Scope): number | undefined {
  if (isNumber(left) && isNumber(right)) return left < right ? -1 : left > right ? 1 : left >= right ? 0 : NaN
  if (typeof left === 'string' && typeof right === 'string') {
    scope.spendText(left.length)
    return orderOfTexts(left, right)
  }
  if (typeof left === 'boolean' && typeof right === 'boolean') return Number(left) - Number(right)
  const isSpan = left instanceof Duration && right instanceof Duration
  const isTime = left instanceof Timestamp && right instanceof Timestamp
  if (isSpan || isTime) return left.nanos < right.nanos ? -1 : left.nanos > right.nanos ? 1 : 0
  return undefined
}

/** Compares code points. JavaScript compares UTF-16 units, which puts U+FF61 after U+1F600. */
function orderOfTexts(left: string, right: string): number {
  if (left === right) return 0
  const length = Math.min(left.length, right.length)
  for (let i = 0; i < length; i++) {
    const a = left.charCodeAt(i)
    const b = right.charCodeAt(i)
    if (a !== b) return a >= 0xd800 && b >= 0xd800 ? rank(a) - rank(b) : a - b
  }
  return left.length - right.length
}

/** Orders surrogates, U+D800 to U+DFFF, after all other units. */
function rank(unit: number): number {
  return unit >= 0xe000 ? unit - 0x10000 : unit
}

function isNumber(value: Value): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint'
}
