/** A client whose calls give the value itself, for callers that handle every failure in one place. */
import type { Failure, Refusal } from './call.ts'

/** What a call throws instead of giving its value. */
export class CallError extends Error {
  readonly result: Refusal | Failure

  constructor(result: Refusal | Failure) {
    super(result.reason === 'refused' ? (result.problem.detail ?? result.problem.title) : `No answer: ${result.reason}`)
    this.name = 'CallError'
    this.result = result
  }
}

type AnyCall = (...given: never[]) => Promise<unknown>

/** The same calls; what each resolves with is the value of its success. */
export type Throwing<Calls extends Readonly<Record<string, AnyCall>>> = {
  readonly [Name in keyof Calls]: (
    ...given: Parameters<Calls[Name]>
  ) => Promise<ValueOf<Awaited<ReturnType<Calls[Name]>>>>
}

type ValueOf<Result> = Result extends { ok: true; value: infer Value } ? Value : never

/** `errorOf` makes what is thrown; CallError unless you give another. */
export function throwing<Calls extends Readonly<Record<string, AnyCall>>>(
  client: Calls,
  errorOf: (result: Refusal | Failure) => Error = (result) => new CallError(result),
): Throwing<Calls> {
  const calls = Object.entries(client).map(([name, call]) => [
    name,
    async (...given: never[]) => {
      const result = (await call(...given)) as { ok: true; value: unknown } | Refusal | Failure
      if (result.ok) return result.value
      throw errorOf(result)
    },
  ])
  return Object.fromEntries(calls) as Throwing<Calls>
}
