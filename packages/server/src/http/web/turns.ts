/**
 * Spreads work of a millisecond or more, so that a small request does not wait for earlier batches. Turns go round the
 * workspaces: a request waits for one turn of each other workspace, however many requests that workspace has.
 */
import type { Holder } from '../../storage/engine/turns-by-workspace.ts'
import { TurnsByWorkspace } from '../../storage/engine/turns-by-workspace.ts'

interface WaitingPiece {
  holder: Holder
  begin: () => void
}

/** Work that is nobody's request. */
const NOBODY: Holder = { workspace: '', credential: '' }

const waiting = new TurnsByWorkspace<WaitingPiece>()

export function waitForTurn(holder: Holder = NOBODY): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  waiting.push({ holder, begin: resolve })
  if (waiting.size === 1) setImmediate(next)
  return promise
}

function next(): void {
  waiting.shift(() => true)?.begin()
  if (waiting.size > 0) setImmediate(next)
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
