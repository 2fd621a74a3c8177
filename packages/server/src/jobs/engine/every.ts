import { setTimeout as wait } from 'node:timers/promises'
import type { HandlerOptions } from './work.ts'
import type { Storage } from '../../storage/storage.ts'

export interface Job {
  stop(): Promise<void>
}

export interface JobOptions<Acts extends keyof Storage> extends HandlerOptions<Acts> {
  onError: (error: unknown) => void
  intervalMs?: number
}

export interface Repetition {
  intervalMs: number
  run: (signal: AbortSignal) => Promise<void>
  onError: (error: unknown) => void
  runsAtEnd?: boolean
}

/** Runs never overlap. Their pause varies by a tenth, which spreads the nodes of an installation. */
export function every({ intervalMs, run, onError, runsAtEnd = false }: Repetition): Job {
  const stopped = new AbortController()
  const ended = loop()

  async function loop(): Promise<void> {
    while (!stopped.signal.aborted) {
      await tryToRun()
      const pause = intervalMs * (0.9 + 0.2 * Math.random())
      await wait(pause, undefined, { signal: stopped.signal }).catch(() => undefined)
    }
  }

  async function tryToRun(): Promise<void> {
    try {
      await run(stopped.signal)
    } catch (error) {
      onError(error)
    }
  }

  return {
    async stop() {
      stopped.abort()
      await ended
      if (runsAtEnd) await tryToRun()
    },
  }
}
