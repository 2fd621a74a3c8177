import type { Loop } from '../language/syntax.ts'
import { Failure, isList, isMap, type Scope, type Step, type Value } from './value.ts'

/** A loop of a condition: its parts, and the cost of one turn. */
export type LoopParts = {
  readonly loop: Loop
  readonly iterable: Step
  readonly bodies: readonly Step[]
  /** Slot of the loop variable in the scope. */
  readonly place: number
  /** Nodes of the bodies: the steps of one turn, without those that the bodies spend themselves. */
  readonly weight: number
  readonly notIterable: Failure
  readonly notBool: Failure
}

type Turn = (body: Step, item: Value) => Value | Failure

/** A loop visits the elements of a list, or the keys of a map. */
export function buildLoop(parts: LoopParts): Step {
  const { iterable, place, weight, notIterable } = parts
  const run = LOOP_BODIES[parts.loop](parts)
  return (scope) => {
    const source = iterable(scope)
    if (source instanceof Failure) return source
    const items = isList(source) ? source : isMap(source) ? keysOf(source, scope) : notIterable
    if (items instanceof Failure) return items
    return run(items, (body, item) => {
      scope.spend(weight)
      scope.locals[place] = item
      return body(scope)
    })
  }
}

type Run = (items: readonly Value[], turn: Turn) => Value | Failure

const LOOP_BODIES: Record<Loop, (parts: LoopParts) => Run> = {
  'all/2': (parts) => quantify(parts, false),
  'exists/2': (parts) => quantify(parts, true),
  'exists_one/2':
    ({ bodies: [body], notBool }) =>
    (items, turn) => {
      let count = 0
      for (const item of items) {
        const holds = turn(body as Step, item)
        if (typeof holds !== 'boolean') return holds instanceof Failure ? holds : notBool
        if (holds) count++
      }
      return count === 1
    },
  'filter/2': ({ bodies: [body], notBool }) => collect(body as Step, undefined, notBool),
  'map/2': ({ bodies: [transform], notBool }) => collect(undefined, transform as Step, notBool),
  'map/3': ({ bodies: [condition, transform], notBool }) => collect(condition as Step, transform as Step, notBool),
}

/** A true turn decides `exists` and a false turn decides `all`, even if other turns are errors. */
function quantify({ bodies: [body], notBool }: LoopParts, decisive: boolean): Run {
  return (items, turn) => {
    let failure: Failure | undefined
    for (const item of items) {
      const holds = turn(body as Step, item)
      if (holds === decisive) return decisive
      if (typeof holds !== 'boolean') failure ??= holds instanceof Failure ? holds : notBool
    }
    return failure ?? !decisive
  }
}

function collect(condition: Step | undefined, transform: Step | undefined, notBool: Failure): Run {
  return (items, turn) => {
    const collected: Value[] = []
    for (const item of items) {
      const keep = condition ? turn(condition, item) : true
      if (typeof keep !== 'boolean') return keep instanceof Failure ? keep : notBool
      if (!keep) continue
      const value = transform ? turn(transform, item) : item
      if (value instanceof Failure) return value
      collected.push(value)
    }
    return collected
  }
}

function keysOf(map: ReadonlyMap<string, Value>, scope: Scope): string[] {
  scope.spend(map.size)
  return [...map.keys()]
}
