/** Maps a value such as a reward to the outcome of a run. Pure. docs/automation.md has the same table. */
import type { RunOutcome } from '@tacho/contract/runs/run.ts'

const WORDS: Record<RunOutcome, readonly string[]> = {
  COMPLETED: ['completed', 'complete', 'success', 'succeeded', 'successful', 'passed', 'pass', 'solved', 'true', '1'],
  FAILED: ['failed', 'fail', 'failure', 'error', 'unsolved', 'false', '0'],
  CANCELLED: ['cancelled', 'canceled', 'aborted'],
}

export type Outcome =
  | { kind: 'known'; status: RunOutcome }
  /** The field is missing or null. */
  | { kind: 'absent' }
  | { kind: 'unclear' }

/** Accepts 1 and 0, true and false, and words in any case. A number between 0 and 1 is unclear. */
export function outcomeOf(value: unknown): Outcome {
  if (value === undefined || value === null) return { kind: 'absent' }
  if (!['number', 'boolean', 'string'].includes(typeof value)) return { kind: 'unclear' }
  const word = String(value as number | boolean | string)
    .trim()
    .toLowerCase()
  const status = (Object.keys(WORDS) as RunOutcome[]).find((known) => WORDS[known].includes(word))
  return status === undefined ? { kind: 'unclear' } : { kind: 'known', status }
}

/** The value at a path such as `reward` or `info.result`. A field whose name contains the dots wins. */
export function fieldAt(fields: Record<string, unknown>, path: string): unknown {
  if (Object.hasOwn(fields, path)) return fields[path]
  let value: unknown = fields
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}
