import { number } from '@tacho/contract/format.ts'
import type { SimulationResult } from '@tacho/contract/operator/simulation.ts'
import type { Fields } from '@tacho/policy/compile.ts'
import { nearestName } from './nearest-name.ts'

export type Path = readonly (string | number)[]
type Warning = SimulationResult['warnings'][number]

/** Members beside a field that are counted. */
const SIBLINGS_COUNTED = 100
const TOOLS_COUNTED = 1_000
const TOOLS_NAMED = 3
/** A longer name is not compared with others. */
const NAME_CHARS = 100

export function fieldCensus({ variables, inputPaths, inputTypes, toolNames }: Fields) {
  const readsInput = variables.includes('tool.input')
  const expected = Map.groupBy(inputTypes, ({ path }) => spelled(path))
  const counts = inputPaths.map((path) => {
    const field = spelled(path)
    return {
      path,
      field,
      expected: expected.get(field)?.map(({ type }) => type) ?? [],
      types: new Map<string, number>(),
      siblings: new Map<string, number>(),
    }
  })
  const named = new Set(toolNames)
  const tools = new Set<string>()
  let isEveryToolKnown = true
  let seen = 0
  let calls = 0
  let withoutInput = 0

  return {
    /** @param names of the tool, as the client says it and without its server. */
    count(input: unknown, names: readonly string[] = []): void {
      seen += 1
      if (names.length > 0 && tools.size < TOOLS_COUNTED) for (const name of names) tools.add(name)
      else isEveryToolKnown = false
      // A field that only other tools have does not help.
      if (named.size > 0 && names.length > 0 && !names.some((name) => named.has(name))) return
      calls += 1
      if (input === undefined) withoutInput += 1
      for (const { path, types, siblings } of counts) {
        countSiblings(siblings, input, path)
        const value = valueAt(input, path)
        if (value !== undefined) types.set(celTypeOf(value), (types.get(celTypeOf(value)) ?? 0) + 1)
      }
    },
    fields: () => counts.map(({ field, types }) => ({ field, recorded: sum(types), types: Object.fromEntries(types) })),
    warnings(): Warning[] {
      const uncalled = seen > 0 && isEveryToolKnown ? toolNames.filter((name) => !tools.has(name)) : []
      // Beside a tool that was called, another may be new: only a name like that of a third one is a misspelling.
      const doubtful = calls === 0 ? uncalled : uncalled.filter((name) => !named.has(nearestTool(name, tools) ?? name))
      const unknown = doubtful.length > 0 ? [unknownTool(doubtful, tools)] : []
      if (calls === 0) return unknown
      const of = named.size > 0 && tools.size > 0 ? toolNames.slice(0, TOOLS_NAMED).join(', ') : null
      const warnings = counts.flatMap(({ field, path, types, siblings, expected: as }) => [
        ...(sum(types) > 0 ? [] : [neverRecorded(field, nearest(path, siblings), calls, of)]),
        ...otherTypes(field, types, as),
      ])
      if (readsInput && withoutInput > 0) {
        const message = `${number(withoutInput)} of ${number(calls)} calls were recorded without their input`
        warnings.push({ code: 'no_input', field: 'tool.input', message })
      }
      return [...unknown, ...warnings]
    },
  }
}

interface Near {
  field: string
  calls: number
}

function neverRecorded(field: string, near: Near | null, calls: number, of: string | null): Warning {
  const none = of === null ? `None of the ${number(calls)} recorded calls has` : `No recorded call of ${of} has`
  const hint = near === null ? '' : `; ${near.field} is in ${number(near.calls)} of ${number(calls)}`
  return { code: 'never_recorded', field, message: `${none} ${field}${hint}` }
}

/** The condition names tools that no recorded call is of. */
function unknownTool(toolNames: readonly string[], tools: ReadonlySet<string>): Warning {
  const near = toolNames.map((name) => nearestTool(name, tools)).find((name) => name !== null)
  const hint = near === undefined ? '' : `; did you mean ${near}?`
  const names = toolNames.slice(0, TOOLS_NAMED).join(', ')
  return { code: 'unknown_tool', field: 'tool.name', message: `No recorded call is of ${names}${hint}` }
}

const nearestTool = (name: string, tools: ReadonlySet<string>): string | null =>
  isShort(name) ? nearestName(name, [...tools].filter(isShort)) : null

function countSiblings(siblings: Map<string, number>, input: unknown, path: Path): void {
  const parent = valueAt(input, path.slice(0, -1))
  if (typeof parent !== 'object' || parent === null || Array.isArray(parent)) return
  for (const key of Object.keys(parent).slice(0, SIBLINGS_COUNTED)) {
    if (!isShort(key)) continue
    if (siblings.has(key) || siblings.size < SIBLINGS_COUNTED) siblings.set(key, (siblings.get(key) ?? 0) + 1)
  }
}

const isShort = (name: string) => name.length <= NAME_CHARS

function nearest(path: Path, siblings: ReadonlyMap<string, number>): Near | null {
  const name = String(path.at(-1))
  const key = isShort(name) ? nearestName(name, [...siblings.keys()]) : null
  return key === null ? null : { field: spelled([...path.slice(0, -1), key]), calls: siblings.get(key) ?? 0 }
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
