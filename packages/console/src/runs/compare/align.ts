/**
 * Aligns the steps of two runs, first by role, such as "a user says something" or "get_order is called", then by kind.
 * Pure.
 */
import { diffArrays } from 'diff'

/** Fields of a step that alignment needs. */
export interface AlignedStep {
  eventType: string
  label: string
}

/** Indexes of a pair in the two runs; null: the other run has no such step here. */
export interface Places {
  a: number | null
  b: number | null
}

export interface Alignment {
  places: Places[]
  /** The runs differ so much that some steps are paired by position alone. */
  isRough: boolean
}

/** Maximum number of steps of each run that are aligned. */
export const ALIGNED = 30_000
/** Time limit of the alignment. Runs that need longer are aligned roughly. */
const ALIGN_MS = 15_000
const STRETCH_MS = 2_000

/** Types whose label is free text, which may be worded differently in each run. */
const SAYS = new Set(['USER_INPUT', 'LLM_CALL', 'ERROR', 'SESSION_OUTCOME'])

const TOOL_TYPES = new Set(['TOOL_START', 'TOOL_CALL'])

/** @param onProgress gets the aligned share of the first run, from 0 to 1. */
export function align(
  a: readonly AlignedStep[],
  b: readonly AlignedStep[],
  onProgress?: (part: number) => void,
): Alignment {
  const [left, right] = [a.slice(0, ALIGNED), b.slice(0, ALIGNED)]
  const roleOf = rolesOf([...left, ...right])
  const runs = [left.map(roleOf), right.map(roleOf)] as const
  const places: Places[] = []
  let isRough = false
  for (const stretch of stretchesOf(runs[0], runs[1], ALIGN_MS, onProgress)) {
    if (stretch.isSame) {
      places.push(...pairsOf(stretch))
      continue
    }
    const kindsIn = (steps: readonly AlignedStep[], range: Range) => steps.slice(...range).map(kindOf)
    for (const innerStretch of stretchesOf(kindsIn(left, stretch.a), kindsIn(right, stretch.b), STRETCH_MS)) {
      const moved = { a: movedBy(stretch.a[0], innerStretch.a), b: movedBy(stretch.b[0], innerStretch.b) }
      isRough ||= innerStretch.isRough
      places.push(...(innerStretch.isSame || innerStretch.isRough ? pairsOf(moved) : alone(moved)))
    }
  }
  return { places, isRough }
}

/** The kind of a step. Calls of different tools are different kinds. */
const kindOf = ({ eventType, label }: AlignedStep): string =>
  TOOL_TYPES.has(eventType) ? JSON.stringify([eventType, label]) : eventType

/** The role of a step. A model call that asks for a tool has another role than one that answers. */
function rolesOf(steps: readonly AlignedStep[]): (step: AlignedStep) => string {
  const tools = new Set(steps.flatMap(({ eventType, label }) => (eventType === 'TOOL_CALL' ? [label] : [])))
  return ({ eventType, label }) =>
    SAYS.has(eventType) && !tools.has(label) ? eventType : JSON.stringify([eventType, label])
}

type Range = [from: number, to: number]

interface Stretch {
  a: Range
  b: Range
}

interface FoundStretch extends Stretch {
  isSame: boolean
  /** Whether the search for an alignment ran out of time. */
  isRough: boolean
}

/** Equal stretches of both runs, and the stretches between them, in order. */
function stretchesOf(
  a: readonly string[],
  b: readonly string[],
  timeout: number,
  onProgress?: (part: number) => void,
): FoundStretch[] {
  const changes = diffArrays([...a.keys()], [...b.keys()], { timeout, comparator: comparing(a, b, onProgress) })
  const whole: Stretch = { a: [0, a.length], b: [0, b.length] }
  if (!changes) return [{ ...whole, isSame: false, isRough: true }]
  const foundStretches: FoundStretch[] = []
  let [i, j] = [0, 0]
  for (const { added, removed, count } of changes) {
    const isSame = !added && !removed
    const [toA, toB] = [added ? i : i + count, removed ? j : j + count]
    const last = foundStretches.at(-1)
    if (last && !last.isSame && !isSame) [last.a[1], last.b[1]] = [toA, toB]
    else foundStretches.push({ a: [i, toA], b: [j, toB], isSame, isRough: false })
    ;[i, j] = [toA, toB]
  }
  return foundStretches
}

/** Compares indexes instead of texts, in order to know how much of the first run is aligned. */
function comparing(
  a: readonly string[],
  b: readonly string[],
  onProgress: ((part: number) => void) | undefined,
): (i: number, j: number) => boolean {
  let furthest = 0
  return (i, j) => {
    if (onProgress && i > furthest) {
      furthest = i
      onProgress(i / a.length)
    }
    return a[i] === b[j]
  }
}

const movedBy = (by: number, [from, to]: Range): Range => [from + by, to + by]

function pairsOf({ a, b }: Stretch): Places[] {
  const length = Math.max(a[1] - a[0], b[1] - b[0])
  const at = ([from, to]: Range, n: number) => (from + n < to ? from + n : null)
  return Array.from({ length }, (_, n) => ({ a: at(a, n), b: at(b, n) }))
}

function alone({ a, b }: Stretch): Places[] {
  const of = ([from, to]: Range) => Array.from({ length: to - from }, (_, n) => from + n)
  return [...of(a).map((at) => ({ a: at, b: null })), ...of(b).map((at) => ({ a: null, b: at }))]
}
