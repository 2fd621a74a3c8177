import { CallError } from '@tacho/client/throwing.ts'
import { refusalOf } from '../api.ts'

/** The same refusal, with the form's labels instead of the API's field names. */
export function withLabels(error: unknown, labels: Readonly<Record<string, string>>): unknown {
  const refusal = refusalOf(error)
  const faults = refusal?.problem.errors ?? []
  const labelOf = (path: string) => (Object.hasOwn(labels, path.slice(1)) ? labels[path.slice(1)] : undefined)
  if (!refusal || !faults.some(({ path }) => labelOf(path) !== undefined)) return error
  const detail = faults.map(({ path, message }) => `${labelOf(path) ?? path.slice(1)}: ${message}`).join('; ')
  return new CallError({ ...refusal, problem: { ...refusal.problem, detail } })
}
