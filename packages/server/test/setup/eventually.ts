/** Waits for a condition, so that no test needs its own loop. */
import { AssertionError } from 'node:assert'
import { setTimeout as wait } from 'node:timers/promises'
import { inspect } from 'node:util'

/** Ten times this is less than the timeout of a test file, so that this error is reported instead of the timeout. */
const TIMEOUT_MS = 50_000
/** On a slow machine, the time is multiplied by up to this factor. */
const SLOWEST = 10
/** Pauses grow, because each look is often a request: hundreds a second would slow down what the test waits for. */
const PAUSES_MS = { first: 5, growth: 1.5, longest: 100 }

/**
 * Calls `look` until it returns a truthy value, and returns that value. A failed assertion in `look` counts as "not yet".
 * Pass `timeoutMs` only where the product promises a time. The time counts pauses by their intended length,
 * because a busy machine makes the pauses longer and the product slower.
 *
 * @throws Error after `timeoutMs`. It names `what` and the last value or failed assertion.
 */
export async function eventually<Value>(
  look: () => Value | Promise<Value>,
  what: string,
  timeoutMs = TIMEOUT_MS,
): Promise<NonNullable<Value>> {
  const begun = performance.now()
  let waited = 0
  for (let pause = PAUSES_MS.first; ; pause = Math.min(pause * PAUSES_MS.growth, PAUSES_MS.longest)) {
    let last: unknown
    try {
      const value = await look()
      if (value) return value
      last = value
    } catch (error) {
      if (!(error instanceof AssertionError)) throw error
      last = error.message
    }
    if (waited > timeoutMs || performance.now() - begun > SLOWEST * timeoutMs)
      throw new Error(`Timed out waiting for ${what}; last: ${inspect(last)}`)
    await wait(pause)
    waited += pause
  }
}
