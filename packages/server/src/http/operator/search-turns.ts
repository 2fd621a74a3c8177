/**
 * Spreads searches over time, because they share threads or connections with all other requests: one of an environment
 * at a time, few at once. Others wait in order. Bounded.
 */
import { refuse, type Refusal } from '../reply-error.ts'

export interface SearchBounds {
  /** Searches that run at the same time. */
  atOnce: number
  /** Searches of one environment that run or wait. */
  ofEnvironment: number
}

export type TakeTurn = <Result>(environmentId: string, search: () => Promise<Result>) => Promise<Result | Refusal>

export function createSearchTurns({ atOnce, ofEnvironment }: SearchBounds): TakeTurn {
  /** Environments of the searches that run. */
  const running = new Set<string>()
  const waiting: { environmentId: string; begin: () => void }[] = []

  function beginNext(): void {
    while (running.size < atOnce) {
      const next = waiting.findIndex(({ environmentId }) => !running.has(environmentId))
      const [turn] = next === -1 ? [] : waiting.splice(next, 1)
      if (turn === undefined) return
      running.add(turn.environmentId)
      turn.begin()
    }
  }

  return async (environmentId, search) => {
    const others = waiting.filter((turn) => turn.environmentId === environmentId).length
    if (others + (running.has(environmentId) ? 1 : 0) >= ofEnvironment) {
      return refuse('overloaded', 'Too many searches of this environment are in progress')
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push({ environmentId, begin: resolve })
    beginNext()
    await promise
    try {
      return await search()
    } finally {
      running.delete(environmentId)
      beginNext()
    }
  }
}
