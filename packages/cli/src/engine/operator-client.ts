/** The operator API for commands: a call returns its value, or ends the command with a sentence. */
import type { Failure, Input as CallInput, Refusal, Value } from '@tacho/client/call.ts'
import { createOperatorClient, type OperatorClient as Answers, type OperatorRoutes } from '@tacho/client/operator.ts'
import { throwing, type Throwing } from '@tacho/client/throwing.ts'
import { sentenceOf } from './server-trouble.ts'
import { Stop } from './stop.ts'

/** Input and result of the call with this name. */
export type Input<Name extends keyof Answers> = CallInput<OperatorRoutes[Name]>
export type Reply<Name extends keyof Answers> = Value<OperatorRoutes[Name]>

/** Used where a command names none: an id, or `workspace/environment`. */
export interface Defaults {
  environment?: string | undefined
  workspace?: string | undefined
}

export interface OperatorClient extends Throwing<Answers> {
  readonly url: string
  readonly defaults: Defaults
  /** The same calls with the full response, for `answered`. */
  readonly whole: Answers
}

/** No response, or an error response. It is a class, so that callers can recognise it. */
export class Refused extends Stop {
  readonly result: Refusal | Failure

  constructor(url: string, result: Refusal | Failure) {
    super(1, sentenceOf(url, result, 'operator token'))
    this.name = 'Refused'
    this.result = result
  }
}

/** `url` and `token` come from `readAccount`. */
export function operatorClient(url: string, token: string, defaults: Defaults = {}): OperatorClient {
  // Loaded by the first call: no help makes one.
  const fetch: typeof globalThis.fetch = async (target, request) => {
    const { patientFetch } = await import('./patient-fetch.ts')
    return patientFetch()(target, request)
  }
  const whole = createOperatorClient({ url, token, fetch })
  return { ...throwing(whole, (result) => new Refused(url, result)), url, defaults, whole }
}

/** The successful result of a call, with text and headers of the response. */
export function answered<Answer extends { ok: true }>(url: string, result: Answer | Refusal | Failure): Answer {
  if (result.ok) return result
  throw new Refused(url, result)
}
