/**
 * Spreads work that takes a millisecond or more over turns of the event loop, one piece a turn. So a small request does not
 * wait for all the batches that arrived before it.
 */
const waiting: (() => void)[] = []

/** Resolves when it is the caller's turn, in the order of the calls. */
export function myTurn(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  waiting.push(resolve)
  if (waiting.length === 1) setImmediate(next)
  return promise
}

function next(): void {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(next)
}
