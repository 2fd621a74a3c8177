import { setTimeout as wait } from 'node:timers/promises'

export interface Job {
  /** Ends the loop, and waits for the run under way. */
  stop(): Promise<void>
}

export interface JobOptions {
  intervalMs: number
  run: () => Promise<void>
  /** A failed run is told here; the next one comes all the same. */
  onError: (error: unknown) => void
  /** From 0 to 1; spreads the nodes of an installation. */
  random?: () => number
}

/** Runs a job again and again, never twice at a time, with a pause of the interval give or take a tenth in between. */
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
