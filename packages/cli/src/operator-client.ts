/** The operator API as commands use it: each call gives its value, or ends the command with a sentence. */
import type { Failure, Input as CallInput, Refusal, Value } from '@tacho/client/call.ts'
import { createOperatorClient, type OperatorClient as Answers, type OperatorRoutes } from '@tacho/client/operator.ts'
import { throwing, type Throwing } from '@tacho/client/throwing.ts'
import { sentenceOf } from './server-trouble.ts'
import { Stop } from './stop.ts'

/** What the call of this name is given, and what it gives. */
export type Input<Name extends keyof Answers> = CallInput<OperatorRoutes[Name]>
export type Reply<Name extends keyof Answers> = Value<OperatorRoutes[Name]>

export interface OperatorClient extends Throwing<Answers> {
  readonly url: string
  /** The same calls with everything that came back, for `answered`. */
  readonly whole: Answers
}

/** No answer, or one that is an error: kept apart because a caller may know what to do with it. */
export class Refused extends Stop {
  readonly result: Refusal | Failure

  constructor(url: string, result: Refusal | Failure) {
    super(1, sentenceOf(url, result))
    this.name = 'Refused'
    this.result = result
  }
}

/** `url` as readUrl gives it. */
export function operatorClient(url: string, token: string): OperatorClient {
  const whole = createOperatorClient({ url, token })
  return { ...throwing(whole, (result) => new Refused(url, result)), url, whole }
}

/** The success of a call, with the text and the headers of its reply. */
export function answered<Answer extends { ok: true }>(url: string, result: Answer | Refusal | Failure): Answer {
  if (result.ok) return result
  throw new Refused(url, result)
}
