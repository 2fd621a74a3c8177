/** Generators, streams and lazy thenables, such as query builders, work only after they are returned. */
import { readSafely } from '../recording/json.ts'

export type Failure = { readonly error: unknown }
/** The work closes when the promise, if any, resolves. `isCancelled`: its reader left. */
export type End = (failure?: Failure, isCancelled?: boolean) => Promise<unknown> | void
export type Within = <R>(act: () => R) => R
type Method = (...callArguments: unknown[]) => unknown
type Work = Record<string, unknown>

// oxlint-disable-next-line unicorn/no-thenable
const THEN = 'then'
/** Native `then` of any realm. Another `then` may begin lazy work: OpenAI's promises read the answer when awaited. */
const NATIVE_THEN = /^function then\(\) \{\s*\[native code\]/

/** Returns or throws what `act` does. Calls `end` once: when the work ends. */
export function untilEnd<T>(act: () => T, within: Within, end: End): T {
  let result: T
  try {
    result = within(act)
  } catch (error) {
    void end({ error })
    throw error
  }
  // The host must never depend on an object of ours.
  const work = result as Work
  if (!readSafely(() => observeGenerator(work, within, end) || observeThen(work, within, end), false)) void end()
  return result
}

/** False if it is no generator. Otherwise calls `end` with its last step. @param onItem receives each yielded value. */
export function observeGenerator(
  streamValue: unknown,
  within: Within,
  end: End,
  onItem?: (value: unknown) => void,
): boolean {
  const isGenerator = Object.prototype.toString.call(streamValue).endsWith('Generator]')
  if (isGenerator) observeSteps(streamValue as Work, within, end, onItem)
  return isGenerator
}

/** Whether a value's work may continue after it is returned: a stream, a Response, an async iterable. */
export function isStreamed(streamValue: unknown): boolean {
  return readSafely(() => {
    const {
      body,
      getReader,
      [Symbol.asyncIterator]: iterate,
    } = streamValue as { body?: Work } & Partial<AsyncIterable<unknown>> & Work
    return typeof (iterate ?? getReader ?? body?.['getReader']) === 'function'
  }, false)
}

export function observeSteps(work: Work, within: Within, end: End, onItem?: (value: unknown) => void): void {
  const { finish, failed } = once(end)
  for (const name of ['next', 'return', 'throw']) {
    const method = work[name]
    if (typeof method !== 'function') continue
    const settled = (step: unknown) => {
      const { done, value } = step as IteratorResult<unknown>
      return done ? finish(undefined, name === 'return') : onItem?.(value)
    }
    work[name] = (...callArguments: unknown[]) => {
      try {
        const step = within(() => Reflect.apply(method, work, callArguments) as unknown)
        if (step instanceof Promise) return step.then(async (made) => (await settled(made), made), failed)
        void settled(step)
        return step
      } catch (error) {
        return failed(error)
      }
    }
  }
}

/** False if it is no thenable. Waits for the host's `then`: calling it here could begin the work, or do it twice. */
function observeThen(work: Work, within: Within, end: End): boolean {
  const then = work?.[THEN] as Method
  if (typeof then !== 'function') return false
  const { finish, failed } = once(end)
  if (NATIVE_THEN.test(Function.prototype.toString.call(then))) {
    Reflect.apply(then, work, [() => void finish(), (error: unknown) => void finish({ error })])
    return true
  }
  work[THEN] = (onValue?: Method, onError?: Method) =>
    within(() =>
      Reflect.apply(then, work, [
        (value: unknown) => (void finish(), onValue ? onValue(value) : value),
        (error: unknown) => (void finish({ error }), onError ? onError(error) : failed(error)),
      ]),
    )
  return true
}

export function once(end: End): { finish: End; failed(error: unknown): never } {
  let isEnded = false
  const finish: End = (...how) => {
    if (isEnded) return
    isEnded = true
    return end(...how)
  }
  return {
    finish,
    failed(error) {
      void finish({ error })
      throw error
    },
  }
}
