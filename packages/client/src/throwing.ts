/** A client whose calls return the value itself, for callers that handle all errors in one place. */
import type { Failure, Refusal } from './call.ts'

/** Error that a call throws instead of returning its value. */
export class CallError extends Error {
  readonly result: Refusal | Failure

  constructor(result: Refusal | Failure) {
    super(result.reason === 'refused' ? (result.problem.detail ?? result.problem.title) : `No answer: ${result.reason}`)
    this.name = 'CallError'
    this.result = result
  }
}

type AnyCall = (...callArguments: never[]) => Promise<unknown>

/** The same calls; each resolves with the value of its success. */
export type Throwing<Calls extends Readonly<Record<string, AnyCall>>> = {
  readonly [Name in keyof Calls]: (
    ...callArguments: Parameters<Calls[Name]>
  ) => Promise<ValueOf<Awaited<ReturnType<Calls[Name]>>>>
}

type ValueOf<Result> = Result extends { ok: true; value: infer Value } ? Value : never

/** `errorOf` makes the thrown error; default CallError. */
export function throwing<Calls extends Readonly<Record<string, AnyCall>>>(
  client: Calls,
  errorOf: (result: Refusal | Failure) => Error = (result) => new CallError(result),
): Throwing<Calls> {
  const calls = Object.entries(client).map(([name, call]) => [
    name,
    async (...callArguments: never[]) => {
      const result = (await call(...callArguments)) as { ok: true; value: unknown } | Refusal | Failure
      if (result.ok) return result.value
      throw errorOf(result)
    },
  ])
  return Object.fromEntries(calls) as Throwing<Calls>
}
