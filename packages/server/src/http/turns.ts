/** Spreads work of a millisecond or more, so that a small request does not wait for earlier batches. */
const waiting: (() => void)[] = []

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

export async function mapInTurns<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  to: (item: Item) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  for (let at = 0; at < items.length; at += atOnce) {
    if (at > 0) await waitForTurn()
    results.push(...items.slice(at, at + atOnce).map(to))
  }
  return results
}

/** A consumer that takes everything at once would get all pieces in one turn. */
export async function* inTurns<Piece>(pieces: AsyncIterable<Piece>): AsyncGenerator<Piece> {
  for await (const piece of pieces) {
    yield piece
    await waitForTurn()
  }
}
