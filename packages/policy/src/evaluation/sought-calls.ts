/**
 * An index of a run's calls by one value of their inputs, for loops such as `c.input.id == tool.input.id`. All other calls are
 * false, and need no turn.
 */
import { isShort } from '../language/syntax.ts'
import type { Scope, Step, Value } from './value.ts'

export interface Sought {
  /** The member of a call that the condition compares. */
  readonly path: readonly string[]
  /** The value that the member is compared with. It reads no call and spends no steps. */
  readonly value: Step
}

interface Index {
  readonly first: Value | undefined
  seen: number
  /** Number of the oldest calls, whose inputs the history has forgotten. They need a turn for each value. */
  forgotten: number
  /**
   * Places in the list of calls by value, also of calls whose input was forgotten. Under `undefined`: calls that need a turn
   * for each value.
   */
  readonly places: Map<Value | undefined, number[]>
}

const INDEXES_MAX = 4

/** Indexes of all conditions, by the list of calls, which a history extends, and by path. Each takes up to 110 kB. */
const indexes = new WeakMap<readonly Value[], Map<string, Index>>()

const NONE: readonly number[] = []

export interface SoughtPlaces {
  /** The places of the calls that must be evaluated, in order. Undefined: all must. */
  of(calls: readonly Value[], scope: Scope): readonly number[] | undefined
  /** Adds the calls that the index does not have yet, outside of a decision. */
  prepare(calls: readonly Value[]): void
}

export function placesOf(sought: Sought): SoughtPlaces {
  const path = JSON.stringify(sought.path)
  /** The index with all calls. Undefined if there are too many, or if no decision asks and it would be made again. */
  const indexOf = (calls: readonly Value[], isAsked: boolean): Index | undefined => {
    const ofCalls = indexes.get(calls) ?? new Map<string, Index>()
    let index = ofCalls.get(path)
    const isOld = index?.first !== calls[0]
    if (index ? isOld && !isAsked : ofCalls.size >= INDEXES_MAX) return undefined
    if (!index || isOld) {
      ofCalls.set(path, (index = { first: calls[0], seen: 0, forgotten: 0, places: new Map() }))
      indexes.set(calls, ofCalls)
    }
    const { places } = index
    for (; index.seen < calls.length; index.seen++) {
      const call = calls[index.seen] as ReadonlyMap<string, Value>
      const callKey = keyOf(
        sought.path.reduce<unknown>((at, key) => (at instanceof Map ? at.get(key) : undefined), call),
      )
      const known = places.get(callKey)
      if (known) known.push(index.seen)
      else places.set(callKey, [index.seen])
    }
    while (index.forgotten < calls.length && !hasInput(calls[index.forgotten])) index.forgotten++
    return index
  }
  return {
    of(calls, scope) {
      const value = keyOf(sought.value(scope))
      if (calls.length === 0) return NONE
      const index = value === undefined ? undefined : indexOf(calls, true)
      if (!index) return undefined
      const { forgotten, places } = index
      const [ofValue, ofEach] = [places.get(value) ?? NONE, places.get(undefined) ?? NONE]
      if (forgotten === 0 && ofEach.length === 0) return ofValue
      const others = [...ofValue, ...ofEach].filter((at) => at >= forgotten)
      return [...Array(forgotten).keys(), ...others.sort((a, b) => a - b)]
    },
    prepare(calls) {
      // After 1,000 calls, each call removes the oldest, which makes the index invalid. A new one might never be used.
      if (calls.length > 0) indexOf(calls, false)
    },
  }
}

function hasInput(call: Value | undefined): boolean {
  return (call as ReadonlyMap<string, Value>).has('input')
}

/** The key of a value. Undefined if its comparison costs steps, or if it may equal a value of another type. */
function keyOf(value: unknown): Value | undefined {
  return typeof value === 'number' || isShort(value) ? value : undefined
}
