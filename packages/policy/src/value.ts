import { Duration, Timestamp } from './time.ts'
import { POLICY_LIMITS } from './limits.ts'

/**
 * What a condition computes with. Maps and lists are our own copies: no object of the host is reachable, so names such
 * as `constructor` or `__proto__` are keys like any other.
 */
export type Value =
  | null
  | boolean
  | string
  | bigint // int
  | number // double
  | readonly Value[]
  | ReadonlyMap<string, Value>
  | Timestamp
  | Duration
  | TypeName

/** What `type(x)` gives. */
export class TypeName {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

/**
 * An error of the evaluation, as a value: `||`, `&&`, `all` and `exists` pass over errors that cannot change their
 * result, thousands of times in a loop, and throwing costs a hundred times more.
 * The message quotes the condition, never a fact: it is recorded where inputs may not be.
 */
export class Failure {
  readonly message: string
  /** Where in the source, or -1 when the facts themselves are at fault. */
  readonly offset: number
  constructor(message: string, offset = -1) {
    this.message = message
    this.offset = offset
  }
}

/** Why an operator or a function has no result for these operands. The node that called it says where. */
export class Refusal {
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

export const noOverload = new Refusal('there is no such operation for values of these types')
export const outOfRange = new Refusal('the result is out of range')

const INT_MAX = 2n ** 63n - 1n
const INT_MIN = -(2n ** 63n)

export function intOrRefusal(value: bigint): bigint | Refusal {
  return value > INT_MAX || value < INT_MIN ? outOfRange : value
}

/** Thrown through the whole evaluation: no operator may pass over it. */
export class OutOfSteps extends Error {
  constructor() {
    super(`it takes more than ${POLICY_LIMITS.evaluationSteps} steps`)
  }
}

/** One evaluation: its facts, its loop variables and what it may still spend. */
export class Scope {
  readonly fact: (slot: number) => Value | Failure
  readonly locals: Value[] = []
  #left: number = POLICY_LIMITS.evaluationSteps

  constructor(fact: (slot: number) => Value | Failure) {
    this.fact = fact
  }

  /**
   * Accounts for work before it is done. One step is one operation within a loop, one element that is compared or
   * copied, or 32 UTF-16 units of a text that are read or written: about 10 to 50 ns each.
   */
  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new OutOfSteps()
  }

  spendText(units: number): void {
    this.spend(units >>> 5)
  }
}

/** One node of a condition, ready to run. */
export type Step = (scope: Scope) => Value | Failure

/** CEL's name of a value's type. */
export function typeOf(value: Value): string {
  switch (typeof value) {
    case 'string':
      return 'string'
    case 'number':
      return 'double'
    case 'bigint':
      return 'int'
    case 'boolean':
      return 'bool'
  }
  if (value === null) return 'null_type'
  if (isList(value)) return 'list'
  if (value instanceof Map) return 'map'
  if (value instanceof Timestamp) return 'google.protobuf.Timestamp'
  if (value instanceof Duration) return 'google.protobuf.Duration'
  return 'type'
}

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value)
}

export function isMap(value: Value): value is ReadonlyMap<string, Value> {
  return value instanceof Map
}
