/**
 * The calls of a run by a value of their inputs, for loops that ask for one: `c.input.id == tool.input.id`. Others are false, and
 * need no turn.
 */
import { isShort } from '../language/syntax.ts'
import type { Scope, Step, Value } from './value.ts'

export interface Sought {
  /** The member of a call that the condition compares. */
  readonly path: readonly string[]
  /** Reads no call, and spends no step. */
  readonly value: Step
}

interface Index {
  readonly first: Value | undefined
  seen: number
  /** Calls at the beginning that have no input: the history forgets the oldest ones. They have a turn for each value. */
  forgotten: number
  /** Places in the list, also of calls whose input was forgotten. `undefined`: of calls that have a turn for each value. */
  readonly places: Map<Value | undefined, number[]>
}

const INDEXES_MAX = 4

/** By the list of calls, which a history extends, and by path: of all conditions. Each takes up to 110 kB. */
const indexes = new WeakMap<readonly Value[], Map<string, Index>>()

/** The places of the calls that need a turn, in order. Undefined: all do. */
export function placesOf(sought: Sought): (calls: readonly Value[], scope: Scope) => number[] | undefined {
  const path = JSON.stringify(sought.path)
  return (calls, scope) => {
    const value = keyOf(sought.value(scope))
    if (value === undefined) return undefined
    const ofCalls = indexes.get(calls) ?? new Map<string, Index>()
    let index = ofCalls.get(path)
    if (!index && ofCalls.size >= INDEXES_MAX) return undefined
    if (index?.first !== calls[0]) index = undefined
    if (!index) ofCalls.set(path, (index = { first: calls[0], seen: 0, forgotten: 0, places: new Map() }))
    indexes.set(calls, ofCalls)
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
    const { forgotten } = index
    const others = [...(places.get(value) ?? []), ...(places.get(undefined) ?? [])].filter((at) => at >= forgotten)
    return [...Array(forgotten).keys(), ...others.sort((a, b) => a - b)]
  }
}

function hasInput(call: Value | undefined): boolean {
  return (call as ReadonlyMap<string, Value>).has('input')
}

/** Undefined: its comparison costs steps, or it may equal a value of another type. */
function keyOf(value: unknown): Value | undefined {
  return typeof value === 'number' || isShort(value) ? value : undefined
}
