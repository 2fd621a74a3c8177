/**
 * One search of an environment runs at a time, and few at once: they share readers or connections of the store with
 * all other requests. Others wait in order; no more wait than pages are built at the same time (reply-memory.ts).
 */
export type TakeTurn = <Result>(environmentId: string, search: () => Promise<Result>) => Promise<Result>

export function createSearchTurns(atOnce: number): TakeTurn {
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
