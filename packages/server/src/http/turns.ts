/**
 * Spreads work of a millisecond or more over turns of the event loop, one piece per turn. A small request then does not
 * wait for all earlier batches.
 */
const waiting: (() => void)[] = []

/** Resolves on the caller's turn, in call order. */
export function waitForTurn(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  waiting.push(resolve)
  if (waiting.length === 1) setImmediate(next)
  return promise
}

function next(): void {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(next)
}
