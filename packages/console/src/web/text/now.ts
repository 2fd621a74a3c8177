/** Clocks of the page: everything that shows relative times moves with the same tick. */
import { useSyncExternalStore } from 'react'

interface Clock {
  subscribe(listener: () => void): () => void
  read(): number
}

function clock(tickMs: number): Clock {
  let now = Date.now()
  const listeners = new Set<() => void>()
  let timer: ReturnType<typeof setInterval> | undefined
  function tick(): void {
    now = Date.now()
    for (const listener of listeners) listener()
  }
  return {
    subscribe(listener) {
      if (listeners.size === 0) {
        now = Date.now()
        timer = setInterval(tick, tickMs)
      }
      listeners.add(listener)
      return () => {
        listeners.delete(listener)
        if (listeners.size === 0) clearInterval(timer)
      }
    },
    read: () => now,
  }
}

const slow = clock(5_000)
const quick = clock(1_000)

/** Now, every five seconds. */
export function useNow(): number {
  return useSyncExternalStore(slow.subscribe, slow.read)
}

/** Now, every second: for deadlines. */
export function useSecond(): number {
  return useSyncExternalStore(quick.subscribe, quick.read)
}
