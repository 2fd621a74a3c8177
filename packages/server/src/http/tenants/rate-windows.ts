import { LRUCache } from 'lru-cache'

export interface Taken {
  allowed: boolean
  remaining: number
  resetMs: number
}

export type Windows = ReturnType<typeof createWindows>

export interface WindowsOptions {
  windowMs: number
  monotonicNow?: () => number
  maxSubjects?: number
}

interface Window {
  used: number
  endsAt: number
}

const MAX_SUBJECTS = 50_000

export function createWindows({
  windowMs,
  monotonicNow = () => performance.now(),
  maxSubjects = MAX_SUBJECTS,
}: WindowsOptions) {
  // Not `max`: that reserves the memory of all subjects at once, 1.4 MB.
  const windows = new LRUCache<string, Window>({ maxSize: maxSubjects, sizeCalculation: () => 1 })

  return {
    take(subject: string, points: number): Taken {
      const now = monotonicNow()
      let window = windows.get(subject)
      if (window === undefined) {
        window = { used: 0, endsAt: now + windowMs }
        windows.set(subject, window)
      } else if (window.endsAt <= now) {
        window.used = 0
        window.endsAt = now + windowMs
      }
      const allowed = window.used < points
      if (allowed) window.used += 1
      return { allowed, remaining: Math.max(0, points - window.used), resetMs: window.endsAt - now }
    },
    isFull(subject: string, points: number): boolean {
      const window = windows.get(subject)
      return window !== undefined && window.endsAt > monotonicNow() && window.used >= points
    },
    giveBack(subject: string): void {
      const window = windows.get(subject)
      if (window && window.used > 0) window.used -= 1
    },
    forget: (subject: string) => void windows.delete(subject),
    clear: () => windows.clear(),
    size: () => windows.size,
  }
}
