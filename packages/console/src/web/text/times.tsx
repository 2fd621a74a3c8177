/** Times and clocks. All relative times on a page change with the same tick. */
import { useSyncExternalStore } from 'react'
import { exact, relative } from './format.ts'

/** Clocks of the page: everything that shows relative times moves with the same tick. */

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

/** The current time, updated every five seconds. */
export function useNow(): number {
  return useSyncExternalStore(slow.subscribe, slow.read)
}

/** The current time, updated every second, for deadlines. */
function useSecond(): number {
  return useSyncExternalStore(quick.subscribe, quick.read)
}

/** A relative time; on hover, the exact time in the person's zone. */
export function Time({ at }: { at: string }) {
  const now = useNow()
  const time = Date.parse(at)
  return (
    <time dateTime={at} title={exact(time)} className="tabular whitespace-nowrap">
      {relative(time, now)}
    </time>
  )
}

const SOON_MS = 5 * 60_000
const LAST_MS = 60_000

/** Time left until a deadline, by the second. */
export function Countdown({ until }: { until: string }) {
  const time = Date.parse(until)
  const left = time - useSecond()
  const tone = left < LAST_MS ? 'text-red font-semibold' : left < SOON_MS ? 'text-amber font-medium' : 'text-soft'
  return (
    <time dateTime={until} title={exact(time)} className={`tabular text-sm whitespace-nowrap ${tone}`}>
      {left <= 0 ? 'expired' : `${leftText(left)} left`}
    </time>
  )
}

/** A remaining time: `42 s`, `3 m 04 s`, `2 h 05 m`. */
function leftText(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  const two = (value: number) => String(value).padStart(2, '0')
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ${two(seconds % 60)} s`
  return `${Math.floor(seconds / 3_600)} h ${two(Math.floor((seconds % 3_600) / 60))} m`
}
