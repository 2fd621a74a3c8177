/**
 * At most one search of an environment runs at a time, and few at once, because they share readers or connections of the
 * store with all other requests. Others wait in order, up to a bound; one whose client has left is passed over.
 */
import { LIMITS } from '@tacho/contract/limits.ts'
import { refuse, type Refusal } from '../reply-error.ts'

export interface Search<Result> {
  environmentId: string
  /** Whether the client has left. */
  isOver: () => boolean
  run: () => Promise<Result>
}

interface Waiting {
  environmentId: string
  begin: () => void
}

export const TOO_MANY = refuse('overloaded', 'Too many searches of this environment are waiting')
const LEFT = refuse('overloaded', 'The client has left')

/** Returns a function that runs a search when its turn has come. */
export function createSearchTurns(atOnce: number) {
  /** Environments of the searches that run. */
  const running = new Set<string>()
  const waiting: Waiting[] = []

  function beginNext(): void {
    while (running.size < atOnce) {
      const next = waiting.findIndex(({ environmentId }) => !running.has(environmentId))
      const [turn] = next === -1 ? [] : waiting.splice(next, 1)
      if (turn === undefined) return
      running.add(turn.environmentId)
      turn.begin()
    }
  }

  return async <Result>({ environmentId, isOver, run }: Search<Result>): Promise<Result | Refusal> => {
    const own = waiting.filter((other) => other.environmentId === environmentId).length
    if (own >= LIMITS.searchesWaiting) return TOO_MANY
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push({ environmentId, begin: resolve })
    beginNext()
    await promise
    try {
      return isOver() ? LEFT : await run()
    } finally {
      running.delete(environmentId)
      beginNext()
    }
  }
}
