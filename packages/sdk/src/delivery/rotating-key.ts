/**
 * A key that a function of the host returns. The SDK calls the function at first use, and again after the service refuses
 * the key. Loaded only if the key is a function.
 *
 *   unknown --first request--> known --401--> asked again --another key--> the request is repeated once
 *      ^                        ^                 |
 *      |                        +--the same key---+  for a while the function is not asked again
 *      +--the function fails: the request counts as unanswered, so it is tried again with a backoff
 */
import { keyRefusal } from './answer.ts'
import { outside } from '../recording/context.ts'
import type { HttpResult, NoReply } from './http.ts'
import type { GivenKey } from '../options.ts'
import type { Runtime } from './runtime.ts'

export interface RotatingKey {
  /** Empty until it is known. */
  readonly known: string
  /** Rejects if the function returns no key in time. */
  get(timeoutMs: number): Promise<string>
  /** Sends again with another key after a refusal. If both are refused, resolves to a `NoReply`. */
  send(act: (apiKey: string) => Promise<HttpResult>, timeoutMs: number): Promise<HttpResult>
}

/** Pause before the next call of the function, if it returned the refused key again. */
const SAME_KEY_MS = 5_000
const KEY = /^[\x21-\x7e]+$/

export function createRotatingKey(keyFunction: Extract<GivenKey, () => unknown>, { now, timer }: Runtime): RotatingKey {
  let known = ''
  let asking: Promise<string> | undefined
  let notBefore = -Infinity

  /** Asks once at a time. A function that never answers must not hold up a request forever. */
  async function ask(timeoutMs: number): Promise<string> {
    asking ??= Promise.resolve(outside(async () => keyFunction()))
      .then((key: unknown) => {
        if (typeof key !== 'string' || !KEY.test(key)) throw new TypeError('no key')
        return (known = key)
      })
      .finally(() => (asking = undefined))
    const key = asking
    return new Promise((resolve, reject) => {
      const limit = timer(timeoutMs, () => reject(new TypeError('late')))
      void key.then(resolve, reject).finally(() => limit.cancel())
    })
  }

  async function after(refused: string, timeoutMs: number): Promise<string> {
    if (known === refused && now() >= notBefore) {
      if ((await ask(timeoutMs)) === refused) notBefore = now() + SAME_KEY_MS
    }
    return known
  }

  return {
    get known() {
      return known
    },
    get: async (timeoutMs) => known || ask(timeoutMs),
    async send(act, timeoutMs) {
      try {
        const first = known || (await ask(timeoutMs))
        const reply = await act(first)
        if (!isRefused(reply)) return reply
        const second = await after(first, timeoutMs)
        const again = second === first ? reply : await act(second)
        return isRefused(again) ? noReply('the API key is refused, and apiKey() gives no other one') : again
      } catch {
        return noReply('apiKey() gave no key')
      }
    },
  }
}

function isRefused(reply: HttpResult): boolean {
  return reply.kind === 'reply' && keyRefusal(reply) === 'unauthorized'
}

function noReply(message: string): NoReply {
  return { kind: 'no-reply', reason: 'network', message }
}
