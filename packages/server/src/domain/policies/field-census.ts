import { number } from '@tacho/contract/engine/format.ts'
import type { SimulationResult } from '@tacho/contract/policies/simulation.ts'
import type { Fields } from '@tacho/policy/language/fields.ts'
import { nearestName } from '../web/text.ts'

/** A null stands for each element of a list, or each key of a map. */
export type Path = readonly (string | number | null)[]
type Warning = SimulationResult['warnings'][number]

/** How many members beside a field are counted. */
const SIBLINGS_COUNTED = 100
const TOOLS_COUNTED = 1_000
const TOOLS_NAMED = 3
const ELEMENTS_COUNTED = 1_000
/** Longer names are not compared with others. */
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
      recorded: 0,
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
    /** @param names of the tool, as the client reports it and without its server. */
    count(input: unknown, names: readonly string[] = []): void {
      seen += 1
      if (names.length > 0 && tools.size < TOOLS_COUNTED) for (const name of names) tools.add(name)
      else isEveryToolKnown = false
      // Skip calls of tools that the condition does not name: their fields do not matter.
      if (named.size > 0 && names.length > 0 && !names.some((name) => named.has(name))) return
      calls += 1
      if (input === undefined) withoutInput += 1
      for (const count of counts) {
        countSiblings(count.siblings, input, count.path)
        const types = new Set(inputValuesAt(input, count.path).map(celTypeOf))
        if (types.size > 0) count.recorded += 1
        for (const type of types) count.types.set(type, (count.types.get(type) ?? 0) + 1)
      }
    },
    fields: () => counts.map(({ field, recorded, types }) => ({ field, recorded, types: Object.fromEntries(types) })),
    warnings(): Warning[] {
      const uncalled = seen > 0 && isEveryToolKnown ? toolNames.filter((name) => !tools.has(name)) : []
      // If a named tool was called, the others may be new. A name is then a misspelling only if it resembles another
      // called tool.
      const doubtful = calls === 0 ? uncalled : uncalled.filter((name) => !named.has(nearestTool(name, tools) ?? name))
      const unknown = doubtful.length > 0 ? [unknownTool(doubtful, tools)] : []
      if (calls === 0) return unknown
      const of = named.size > 0 && tools.size > 0 ? toolNames.slice(0, TOOLS_NAMED).join(', ') : null
      // If no call has the list, warn only of the list, not of its elements.
      const missing = counts.filter(({ recorded }) => recorded === 0)
      const isInside = (path: Path) => missing.some((list) => isBefore([...list.path, null], path))
      const warnings = counts.flatMap(({ field, path, recorded, types, siblings, expected: as }) => [
        ...(recorded > 0 || isInside(path) ? [] : [neverRecorded(field, nearest(path, siblings), calls, of)]),
        ...otherTypes(field, recorded, types, as),
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

/** The condition names tools that no recorded call uses. */
function unknownTool(toolNames: readonly string[], tools: ReadonlySet<string>): Warning {
  const near = toolNames.map((name) => nearestTool(name, tools)).find((name) => name !== null)
  const hint = near === undefined ? '' : `; did you mean ${near}?`
  const names = toolNames.slice(0, TOOLS_NAMED).join(', ')
  return { code: 'unknown_tool', field: 'tool.name', message: `No recorded call is of ${names}${hint}` }
}

const nearestTool = (name: string, tools: ReadonlySet<string>): string | null =>
  isShort(name) ? nearestName(name, [...tools].filter(isShort)) : null

const isBefore = (start: Path, path: Path) => start.every((key, index) => index < path.length && path[index] === key)

function countSiblings(siblings: Map<string, number>, input: unknown, path: Path): void {
  const keys = new Set<string>()
  for (const parent of path.at(-1) === null ? [] : inputValuesAt(input, path.slice(0, -1))) {
    if (typeof parent !== 'object' || parent === null || Array.isArray(parent)) continue
    for (const key of Object.keys(parent).slice(0, SIBLINGS_COUNTED)) if (isShort(key)) keys.add(key)
  }
  for (const key of keys) {
    if (siblings.has(key) || siblings.size < SIBLINGS_COUNTED) siblings.set(key, (siblings.get(key) ?? 0) + 1)
  }
}

const isShort = (name: string) => name.length <= NAME_CHARS

function nearest(path: Path, siblings: ReadonlyMap<string, number>): Near | null {
  const name = String(path.at(-1))
  const key = isShort(name) ? nearestName(name, [...siblings.keys()]) : null
  return key === null ? null : { field: spelled([...path.slice(0, -1), key]), calls: siblings.get(key) ?? 0 }
}

/** Values on which the condition fails: not of the expected type, or else not of the most frequent type. */
function otherTypes(
  field: string,
  recorded: number,
  types: Map<string, number>,
  expected: readonly string[],
): Warning[] {
  const [usual] = [...types].toSorted(([, a], [, b]) => b - a)
  if (!usual) return []
  const right = expected.length > 0 ? expected : [usual[0]]
  return [...types]
    .filter(([type]) => !right.includes(type))
    .map(([type, count]) => {
      const message = `${field} is ${type}, not ${right.join(' or ')}, in ${number(count)} of the ${number(recorded)} calls that have it`
      return { code: 'other_type', field, message }
    })
}

export function spelled(path: Path): string {
  const parts = path.map((key) => {
    if (key === null) return '[]'
    return typeof key === 'string' && /^[A-Za-z_]\w*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`
  })
  return `tool.input${parts.join('')}`
}

/** At most one value, unless the path stands for all elements of a list. */
export function inputValuesAt(input: unknown, path: Path): unknown[] {
  let values = [input]
  for (const key of path) {
    values = values.flatMap((value) => {
      if (typeof value !== 'object' || value === null) return []
      if (key === null) return Array.isArray(value) ? (value as unknown[]) : Object.keys(value)
      if (!Object.hasOwn(value, key) || Array.isArray(value) !== (typeof key === 'number')) return []
      return [(value as Record<string | number, unknown>)[key]]
    })
    if (values.length > ELEMENTS_COUNTED) values.length = ELEMENTS_COUNTED
  }
  return values.filter((value) => value !== undefined)
}

function celTypeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  const names: Record<string, string> = { string: 'string', number: 'double', boolean: 'bool' }
  return names[typeof value] ?? 'map'
}
