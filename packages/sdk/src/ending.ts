/** When the work of a call ends. Generators and lazy thenables, such as query builders, work only after they are returned. */
import { readSafely } from './json.ts'

export type Failure = { readonly error: unknown }
type End = (failure?: Failure) => void
/** Runs the work in its context. */
type Within = <R>(act: () => R) => R
type Method = (...given: unknown[]) => unknown
type Work = Record<string, unknown>

// oxlint-disable-next-line unicorn/no-thenable
const THEN = 'then'

/** Calls `act` in its context, and returns or throws what it does. Calls `end` once: when the work ends. */
export function untilEnd<T>(act: () => T, within: Within, end: End): T {
  let result: T
  try {
    result = within(act)
  } catch (error) {
    end({ error })
    throw error
  }
  // Return the host's own object, so that the host never depends on ours.
  const work = result as Work
  if (result instanceof Promise) {
    result.then(
      () => end(),
      (error: unknown) => end({ error }),
    )
  } else if (!readSafely(() => observeGenerator(work, within, end) || observeThen(work, within, end), false)) end()
  return result
}

/** False if it is no generator. Otherwise calls `end` with its last step. @param onItem receives each yielded value. */
export function observeGenerator(given: unknown, within: Within, end: End, onItem?: (value: unknown) => void): boolean {
  if (!Object.prototype.toString.call(given).endsWith('Generator]')) return false
  const work = given as Work
  const { finish, failed } = once(end)
  const settled = (step: unknown) => {
    const { done, value } = step as IteratorResult<unknown>
    if (done) finish()
    else onItem?.(value)
    return step
  }
  for (const name of ['next', 'return', 'throw']) {
    const method = work[name] as Method
    work[name] = (...given: unknown[]) => {
      try {
        const step = within(() => Reflect.apply(method, work, given))
        return step instanceof Promise ? step.then(settled, failed) : settled(step)
      } catch (error) {
        return failed(error)
      }
    }
  }
  return true
}

/** False if it is no thenable. Waits for the host's `then`: calling it here could do the work twice. */
function observeThen(work: Work, within: Within, end: End): boolean {
  const then = work?.[THEN] as Method
  if (typeof then !== 'function') return false
  const { finish, failed } = once(end)
  work[THEN] = (onValue?: Method, onError?: Method) =>
    within(() =>
      Reflect.apply(then, work, [
        (value: unknown) => (finish(), onValue ? onValue(value) : value),
        (error: unknown) => (finish({ error }), onError ? onError(error) : failed(error)),
      ]),
    )
  return true
}

function once(end: End): { finish: End; failed(error: unknown): never } {
  let isEnded = false
  const finish: End = (failure) => {
    if (!isEnded) end(failure)
    isEnded = true
  }
  return {
    finish,
    failed(error) {
      finish({ error })
      throw error
    },
  }
}
