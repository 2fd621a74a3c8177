/**
 * Work that takes a millisecond or more, one piece in each turn of the event loop: what arrives in between, a question of
 * somebody who waits for one row, is not held up by all the batches that arrived before it.
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
