import type { Loop } from '../language/syntax.ts'
import { placesOf, type Sought } from './sought-calls.ts'
import {
  Failure,
  isList,
  isMap,
  OutOfSteps,
  type Preparation,
  Scope,
  type Step,
  Unreadable,
  type Value,
} from './value.ts'

/** A loop of a condition: its parts, and the cost of one turn. */
export type LoopParts = {
  readonly loop: Loop
  readonly iterable: Step
  readonly bodies: readonly Step[]
  /** Slot of the loop variable in the scope. */
  readonly place: number
  /** Number of nodes of the bodies: the steps of one turn, beside those that the bodies spend themselves. */
  readonly weight: number
  readonly notIterable: Failure
  readonly notBool: Failure
  /** The loop covers the calls of the run, and reads only fields that they never lose. */
  readonly isOfSettled: boolean
  /** Restriction of the calls that can count, if the condition of the loop implies one. */
  readonly sought: Sought | undefined
  /** The list to which the loop adds its preparations. */
  readonly preparations: Preparation[]
}

/** Results of a loop on the calls that it has evaluated. */
interface Past {
  readonly first?: Value | undefined
  readonly seen: number
  readonly steps: number
  readonly result?: Value | Failure
}

const NONE: Past = { seen: 0, steps: 0 }

type Turn = (body: Step, item: Value) => Value | Failure

/** A loop visits the elements of a list, or the keys of a map. */
export function buildLoop(parts: LoopParts): Step {
  const { iterable, place, weight, notIterable, loop, isOfSettled, sought, preparations } = parts
  const run = LOOP_BODIES[loop](parts)
  const soughtPlaces = sought && placesOf(sought)
  const decisive = loop === 'exists/2' || (loop === 'all/2' ? false : undefined)
  const isDecided = (result: Value | Failure) =>
    decisive === undefined ? result instanceof Failure : result === decisive
  /** Past results by the list of calls, which a history extends. */
  const pasts = new WeakMap<readonly Value[], Past>()
  const step: Step = (scope) => {
    const source = iterable(scope)
    if (source instanceof Failure) return source
    const items = isList(source) ? source : isMap(source) ? keysOf(source, scope) : notIterable
    if (items instanceof Failure) return items
    const turn: Turn = (body, item) => {
      scope.spend(weight)
      scope.locals[place] = item
      return body(scope)
    }
    const places = soughtPlaces?.of(items, scope)
    if (places) {
      // The turns of the other calls are false. They are not run, but their steps are spent.
      let [next, before] = [0, -1]
      const result = run(
        places.map((at) => items[at] as Value),
        (body, item) => {
          const at = places[next++] as number
          scope.spend(weight * (at - before - 1))
          before = at
          return turn(body, item)
        },
      )
      if (!isDecided(result)) scope.spend(weight * (items.length - 1 - before))
      return result
    }
    if (!isOfSettled) return run(items, turn)
    // Each call is evaluated once, but its steps are spent in each evaluation.
    let { first, result, seen, steps } = pasts.get(items) ?? NONE
    if (first !== items[0]) ({ first, result, seen, steps } = NONE)
    scope.spend(steps)
    if (result !== undefined && (seen === items.length || isDecided(result))) return result
    const { left } = scope
    const after = run(items.slice(seen), turn)
    if (result === undefined || isDecided(after)) result = after
    else if (isList(result as Value)) result = (result as readonly Value[]).concat(after as Value)
    else if (!(result instanceof Failure)) result = after
    pasts.set(items, { first: items[0], seen: items.length, steps: steps + left - scope.left, result })
    return result
  }
  if (sought || isOfSettled) {
    preparations.push((history) => {
      // The loop is over the calls of the run, and reads nothing else.
      const scope = new Scope({ fact: () => history.calls, history })
      const calls = iterable(scope) as readonly Value[]
      if (soughtPlaces) return soughtPlaces.prepare(calls)
      const past = pasts.get(calls)
      // After 1,000 calls, each call removes the oldest. All would be evaluated again, perhaps for no decision.
      if (past && past.seen > 0 && past.first !== calls[0]) return
      try {
        step(scope)
      } catch (error) {
        // Every decision has the same limit of steps, so the next one would run out too. Infinity makes it fail at once.
        if (error instanceof OutOfSteps) pasts.set(calls, { first: calls[0], seen: calls.length, steps: Infinity })
        throw error
      }
    })
  }
  return step
}

type Run = (items: readonly Value[], turn: Turn) => Value | Failure

const LOOP_BODIES: Record<Loop, (parts: LoopParts) => Run> = {
  'all/2': (parts) => quantify(parts, false),
  'exists/2': (parts) => quantify(parts, true),
  'exists_one/2':
    ({ bodies: [body], notBool }) =>
    (items, turn) => {
      const holding = collect(body as Step, undefined, notBool)(items, turn)
      return holding instanceof Failure ? holding : (holding as readonly Value[]).length === 1
    },
  'filter/2': ({ bodies: [body], notBool }) => collect(body as Step, undefined, notBool),
  'map/2': ({ bodies: [transform], notBool }) => collect(undefined, transform as Step, notBool),
  'map/3': ({ bodies: [condition, transform], notBool }) => collect(condition as Step, transform as Step, notBool),
}

/** A true element decides `exists` and a false one decides `all`, even if the condition fails for other elements. */
function quantify({ bodies: [body], notBool }: LoopParts, decisive: boolean): Run {
  return (items, turn) => {
    let failure: Failure | undefined
    for (const item of items) {
      const holds = turn(body as Step, item)
      if (holds === decisive) return decisive
      if (typeof holds !== 'boolean' && !(failure && !(holds instanceof Unreadable)))
        failure = holds instanceof Failure ? holds : notBool
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
