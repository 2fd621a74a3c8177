/**
 * Calls the host's function, for every integration. Whatever fails in the SDK, the function is called exactly once with
 * its own arguments, and its own result or error is passed on.
 */
import { coreIn } from '../border.ts'
import { attempt } from '../core.ts'
import { readSafely } from '../recording/json.ts'

interface Recording {
  /** Makes the call's span the current one. */
  within<T>(act: () => T): T
  fail(error: unknown): void
}

export interface HostCall<Call extends Recording, T> {
  /** Undefined if nothing can be recorded. */
  begin(): Call | undefined
  call(): T
  /** Returns the result itself, or an observed copy. */
  observe(recording: Call, result: T): T
}

/** @throws only what the host's function throws. */
export function hostCall<Call extends Recording, T>(tacho: unknown, { begin, call, observe }: HostCall<Call, T>): T {
  const recording = safely(tacho, begin, undefined)
  let made: { readonly result: T } | { readonly error: unknown } | undefined
  const once = (): void => {
    try {
      made ??= { result: call() }
    } catch (error) {
      made = { error }
    }
  }
  if (recording) safely(tacho, () => recording.within(once), undefined)
  once()
  const done = made as unknown as { readonly result: T } | { readonly error: unknown }
  if (!('error' in done))
    return recording ? safely(tacho, () => observe(recording, done.result), done.result) : done.result
  safely(tacho, () => recording?.fail(done.error), undefined)
  throw done.error
}

/** The same for a promise: `observe` gets the resolved value. */
export async function awaitedHostCall<Call extends Recording, T>(
  tacho: unknown,
  { begin, call, observe }: HostCall<Call, T> & { call(): T | PromiseLike<T> },
): Promise<T> {
  let recording: Call | undefined
  const keptRecording = () => (recording = begin())
  try {
    const result = await hostCall<Call, T | PromiseLike<T>>(tacho, {
      begin: keptRecording,
      call,
      observe: (_, made) => made,
    })
    return recording ? safely(tacho, () => observe(recording as Call, result), result) : result
  } catch (error) {
    safely(tacho, () => recording?.fail(error), undefined)
    throw error
  }
}

/** Runs code of the SDK, whose errors must not reach the host. */
function safely<T>(tacho: unknown, act: () => T, otherwise: T): T {
  try {
    return act()
  } catch (error) {
    const { name } = readSafely(() => ({ name: String((error as Error).name) }), { name: 'an error' })
    const message = `A call is recorded in part or not at all: ${name}. The call itself is not affected.`
    attempt(() => coreIn(tacho)?.diagnostics.report('error', 'record_failed', message))
    return otherwise
  }
}
