import { setTimeout as wait } from 'node:timers/promises'

export interface Job {
  stop(): Promise<void>
}

export interface JobOptions {
  intervalMs: number
  run: () => Promise<void>
  onError: (error: unknown) => void
  /** From 0 to 1; spreads the nodes of an installation. */
  random?: () => number
}

/** Runs never overlap. The pause between them is the interval plus or minus a tenth. */
export function every({ intervalMs, run, onError, random = Math.random }: JobOptions): Job {
  const stopped = new AbortController()
  const ended = loop()

  async function loop(): Promise<void> {
    while (!stopped.signal.aborted) {
      try {
        await run()
      } catch (error) {
        onError(error)
      }
      const pause = intervalMs * (0.9 + 0.2 * random())
      await wait(pause, undefined, { signal: stopped.signal }).catch(() => undefined)
    }
  }

  return {
    async stop() {
      stopped.abort()
      await ended
    },
  }
}
