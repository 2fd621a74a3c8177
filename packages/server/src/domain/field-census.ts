import { number } from '@tacho/contract/format.ts'
import type { SimulationResult } from '@tacho/contract/operator/simulation.ts'
import type { Fields } from '@tacho/policy/compile.ts'

export type Path = readonly (string | number)[]
type Warning = SimulationResult['warnings'][number]

export function fieldCensus({ variables, inputPaths, inputTypes }: Fields) {
  const readsInput = variables.includes('tool.input')
  const expected = Map.groupBy(inputTypes, ({ path }) => spelled(path))
  const counts = inputPaths.map((path) => {
    const field = spelled(path)
    return {
      path,
      field,
      expected: expected.get(field)?.map(({ type }) => type) ?? [],
      types: new Map<string, number>(),
    }
  })
  let calls = 0
  let withoutInput = 0

  return {
    count(input: unknown): void {
      calls += 1
      if (input === undefined) withoutInput += 1
      for (const { path, types } of counts) {
        const value = valueAt(input, path)
        if (value !== undefined) types.set(celTypeOf(value), (types.get(celTypeOf(value)) ?? 0) + 1)
      }
    },
    fields: () => counts.map(({ field, types }) => ({ field, recorded: sum(types), types: Object.fromEntries(types) })),
    warnings(): Warning[] {
      if (calls === 0) return []
      const warnings = counts.flatMap(({ field, types, expected: as }) => [
        ...neverRecorded(field, types, calls),
        ...otherTypes(field, types, as),
      ])
      if (readsInput && withoutInput > 0) {
        const message = `${number(withoutInput)} of ${number(calls)} calls were recorded without their input`
        warnings.push({ code: 'no_input', field: 'tool.input', message })
      }
      return warnings
    },
  }
}

function neverRecorded(field: string, types: Map<string, number>, calls: number): Warning[] {
  if (sum(types) > 0) return []
  return [{ code: 'never_recorded', field, message: `None of the ${number(calls)} recorded calls has ${field}` }]
}

/** Values on which the condition fails: not of the expected type or, if none is expected, of the usual one. */
function otherTypes(field: string, types: Map<string, number>, expected: readonly string[]): Warning[] {
  const [usual] = [...types].toSorted(([, a], [, b]) => b - a)
  if (!usual) return []
  const right = expected.length > 0 ? expected : [usual[0]]
  const recorded = sum(types)
  return [...types]
    .filter(([type]) => !right.includes(type))
    .map(([type, count]) => {
      const message = `${field} is ${type}, not ${right.join(' or ')}, in ${number(count)} of the ${number(recorded)} calls that have it`
      return { code: 'other_type', field, message }
    })
}

function sum(types: Map<string, number>): number {
  return types.values().reduce((total, count) => total + count, 0)
}

export function spelled(path: Path): string {
  const parts = path.map((key) =>
    typeof key === 'string' && /^[A-Za-z_]\w*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`,
  )
  return `tool.input${parts.join('')}`
}

export function valueAt(input: unknown, path: Path): unknown {
  let value = input
  for (const key of path) {
    const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    if (!isThere || Array.isArray(value) !== (typeof key === 'number')) return undefined
    value = (value as Record<string | number, unknown>)[key]
  }
  return value
}

function celTypeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  const names: Record<string, string> = { string: 'string', number: 'double', boolean: 'bool' }
  return names[typeof value] ?? 'map'
}
