/** The hits of a simulation with the largest numbers, as sentences: they say whether a limit is where it was meant to be. */
import { number } from '@tacho/contract/engine/format.ts'
import type { CallState, SimulationResult } from '@tacho/contract/policies/simulation.ts'
import type { Fields } from '@tacho/policy/compile.ts'
import { isoTime } from '../../storage/engine/iso-time.ts'
import { spelled, inputValuesAt, type Path } from './field-census.ts'

type LargestHit = NonNullable<SimulationResult['largest']>[number]

export interface Hit {
  run: string
  runId: string
  eventId: string
  time: number
  toolName: string
  state: CallState
  values: readonly { path: Path; value: number }[]
}

const LISTED = 5
const FIELDS_READ = 10
const NAME_CHARS = 60

const BECAME: Record<CallState, string> = {
  ran: 'ran',
  held: 'asked a person and did not run',
  blocked: 'was blocked',
  neverRan: 'never ran',
}

export function largestHits({ inputTypes }: Fields) {
  const paths = inputTypes.filter(({ type }) => type === 'double').map(({ path }) => path)
  const hits: LargestHit[] = []
  return {
    valuesOf: (input: unknown): Hit['values'] =>
      paths.slice(0, FIELDS_READ).flatMap((path) => {
        const numbers = inputValuesAt(input, path).filter((value) => typeof value === 'number')
        return numbers.length > 0 ? [{ path, value: Math.max(...numbers) }] : []
      }),
    add({ run: id, runId, eventId, time, toolName, state, values }: Hit): void {
      for (const { path, value } of values) {
        if (hits.length === LISTED && value <= (hits.at(-1)?.value ?? 0)) continue
        const field = spelled(path)
        const name = toolName.length > NAME_CHARS ? `${toolName.slice(0, NAME_CHARS)}…` : toolName
        const message = `${name} with ${field.replace('tool.input.', '')} ${number(value)} ${BECAME[state]}`
        hits.push({ field, value, toolName, state, runId, id, eventId, at: isoTime(time), message })
        hits.sort((a, b) => b.value - a.value || (a.at < b.at ? -1 : 1))
        hits.splice(LISTED)
      }
    },
    listed: () => hits,
  }
}
