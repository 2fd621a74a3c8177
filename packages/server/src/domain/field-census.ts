/** Counts which of the fields that a condition names were recorded, and of which types. */
import type { SimulationResult } from '@tacho/contract/operator/simulation.ts'

type Path = readonly (string | number)[]
type Warning = SimulationResult['warnings'][number]

export interface FieldCensus {
  /** The input of one call; undefined where none was recorded. */
  count(input: unknown): void
  fields(): SimulationResult['fields']
  warnings(): Warning[]
}

/** `paths` lead into `tool.input`; `readsInput` tells whether the condition needs it at all. */
export function fieldCensus(paths: readonly Path[], readsInput: boolean): FieldCensus {
  const counts = paths.map((path) => ({ path, field: spelled(path), types: new Map<string, number>() }))
  let calls = 0
  let withoutInput = 0

  function fields() {
    return counts.map(({ field, types }) => ({ field, recorded: sum(types), types: Object.fromEntries(types) }))
  }

  return {
    count(input) {
      calls += 1
      if (input === undefined) withoutInput += 1
      for (const { path, types } of counts) {
        const value = valueAt(input, path)
        if (value !== undefined) types.set(typeOf(value), (types.get(typeOf(value)) ?? 0) + 1)
      }
    },
    fields,
    warnings() {
      if (calls === 0) return []
      const warnings = counts.flatMap(({ field, types }) => [
        ...neverRecorded(field, types, calls),
        ...mixed(field, types),
      ])
      if (readsInput && withoutInput > 0) {
        const message = `${withoutInput} of ${calls} calls were recorded without their input`
        warnings.push({ code: 'no_input', field: 'tool.input', message })
      }
      return warnings
    },
  }
}

function neverRecorded(field: string, types: Map<string, number>, calls: number): Warning[] {
  if (sum(types) > 0) return []
  return [{ code: 'never_recorded', field, message: `${field} was in none of ${calls} recorded calls` }]
}

/** Most have one type: the others are what a condition written for it fails on, or passes over. */
function mixed(field: string, types: Map<string, number>): Warning[] {
  const [usual, ...others] = [...types].toSorted(([, a], [, b]) => b - a)
  if (!usual) return []
  const recorded = sum(types)
  return others.map(([type, count]) => {
    const message = `${field} is ${type}, not ${usual[0]}, in ${count} of the ${recorded} calls that have it`
    return { code: 'other_type', field, message }
  })
}

function sum(types: Map<string, number>): number {
  return types.values().reduce((total, count) => total + count, 0)
}

function spelled(path: Path): string {
  const parts = path.map((key) =>
    typeof key === 'string' && /^[A-Za-z_]\w*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`,
  )
  return `tool.input${parts.join('')}`
}

/** Undefined: it is not there. A null is. */
function valueAt(input: unknown, path: Path): unknown {
  let value = input
  for (const key of path) {
    const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    if (!isThere || Array.isArray(value) !== (typeof key === 'number')) return undefined
    value = (value as Record<string | number, unknown>)[key]
  }
  return value
}

/** The names that conditions have for the types of JSON. */
function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  const names: Record<string, string> = { string: 'string', number: 'double', boolean: 'bool' }
  return names[typeof value] ?? 'map'
}
