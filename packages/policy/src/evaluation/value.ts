import { Duration, Timestamp } from './time.ts'
import { POLICY_LIMITS } from '../limits.ts'

/**
 * Values of a condition. Maps and lists are copies, so no host object is reachable: `constructor` and `__proto__` are
 * ordinary keys.
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

/** The result of `type(x)`. */
export class TypeName {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

/**
 * An evaluation error as a value. `||`, `&&`, `all` and `exists` ignore errors that cannot change their result, perhaps
 * thousands of times in a loop, and throwing costs a hundred times more.
 * The message quotes the condition, never a fact, because it is recorded where inputs are not allowed.
 */
export class Failure {
  readonly message: string
  /** Offset in the source, or -1 if the facts are invalid. */
  readonly offset: number
  constructor(message: string, offset = -1) {
    this.message = message
    this.offset = offset
  }
}

/**
 * The input cannot be read. Not a failure of the condition: it counts as a match at every severity, and takes precedence over
 * other failures.
 */
export class Unreadable extends Failure {}

/** Why an operator or function has no result for these operands. The calling node adds the position. */
export class Refusal {
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

export const noOverload = new Refusal('this operation does not exist for values of these types')
export const outOfRange = new Refusal('the result is out of range')

const INT_MAX = 2n ** 63n - 1n
const INT_MIN = -(2n ** 63n)

export function intOrRefusal(value: bigint): bigint | Refusal {
  return value > INT_MAX || value < INT_MIN ? outOfRange : value
}

/** Thrown, so that no operator can ignore it. */
export class OutOfSteps extends Error {
  constructor() {
    super(`the evaluation needs more than ${POLICY_LIMITS.evaluationSteps} steps`)
  }
}

/** The past of a run as conditions see it (history/run-history.ts). */
export interface History {
  readonly labels: readonly string[]
  readonly calls: readonly Value[]
  callsOf(tool: string): readonly Value[]
  origin(value: string | number): readonly string[]
}

/** Prepares a history for a condition when a call has ended, so that no decision waits for it. May throw OutOfSteps. */
export type Preparation = (history: History) => void

export interface FactReader {
  /** The value of a variable, by its index in VARIABLE_NAMES. */
  readonly fact: (slot: number) => Value | Failure
  readonly history: History | undefined
}

/** State of one evaluation: its facts, loop variables and remaining steps. */
export class Scope {
  readonly fact: FactReader['fact']
  readonly history: FactReader['history']
  readonly locals: Value[] = []
  left: number = POLICY_LIMITS.evaluationSteps

  constructor({ fact, history }: FactReader) {
    this.fact = fact
    this.history = history
  }

  /**
   * Spends steps before the work is done. One step is one operation in a loop, one compared or copied element, or 32 UTF-16
   * units of a text that is read or written: about 10 to 50 ns each.
   */
  spend(steps: number): void {
    this.left -= steps
    if (this.left < 0) throw new OutOfSteps()
  }

  spendText(units: number): void {
    this.spend(units >>> 5)
  }
}

/** An executable node of a condition. */
export type Step = (scope: Scope) => Value | Failure

/** The CEL name of a value's type. */
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
