/**
 * Whether the data on the pages are current.
 *
 *   current ──no answer for four seconds, or no network──► stale since the last answer
 *   stale ──an answer──► current, which is said for a while
 *   current, stale ──the session has ended──► signed out
 *   signed out ──the same person is signed in again──► current
 *                ──another person is signed in──► the console is loaded anew
 */
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { lastAnswer, operator } from './api.ts'
import { meQuery } from './queries.ts'
import { forgetDrafts } from './ui/draft-state.ts'

export type Freshness =
  | { state: 'current' }
  | { state: 'again'; at: number }
  | { state: 'stale'; since: number; isOffline: boolean }
  | { state: 'signed_out'; since: number }

const TICK_MS = 500
/** After this time without a reply, the console asks who is signed in, which is the cheapest request. */
const QUIET_MS = 2_000
const ANSWER_MS = 2_000
/** If that request gets no reply either, the page is stale after 4.2 s, and shows this at the next tick. */
const STALE_MS = QUIET_MS + ANSWER_MS + 200
const SAID_MS = 10_000
/**
 * A longer gap between ticks means that the machine slept. Then wait for a new reply before anything counts as stale.
 */
const SLEPT_MS = 3_000

/** `check` sends a request to the service at once. */
export function useFreshness(): { freshness: Freshness; check: () => void } {
  const cache = useQueryClient()
  const [freshness, setFreshness] = useState<Freshness>({ state: 'current' })
  const check = useRef(() => {})

  useEffect(() => {
    let known: Freshness = { state: 'current' }
    let isAsking = false
    let [watchedFrom, lastTick] = [Date.now(), Date.now()]
    const become = (next: Freshness) => {
      if (isSame(known, next)) return
      const wasAway = known.state === 'stale' || known.state === 'signed_out'
      known = next
      setFreshness(next)
      if (wasAway && next.state === 'again') void cache.invalidateQueries()
    }

    async function ask(): Promise<void> {
      if (isAsking) return
      isAsking = true
      const me = await operator.readMe({}, { timeoutMs: ANSWER_MS })
      isAsking = false
      if (!me.ok) {
        if (me.reason !== 'refused' || me.status !== 401) return
        if (known.state !== 'signed_out') become({ state: 'signed_out', since: Date.now() })
        return
      }
      if (known.state !== 'signed_out') return
      const before = cache.getQueryData(meQuery.queryKey)
      if (before !== undefined && before.id !== me.value.id) {
        // Another person has signed in, so forget the drafts of the previous one.
        forgetDrafts()
        return window.location.reload()
      }
      become({ state: 'again', at: Date.now() })
    }

    function tick(): void {
      const now = Date.now()
      if (now - lastTick > SLEPT_MS) watchedFrom = now
      lastTick = now
      if (document.visibilityState === 'hidden') return
      if (lastAnswer.isUnauthenticated) {
        lastAnswer.isUnauthenticated = false
        void ask()
      }
      const quietMs = now - Math.max(lastAnswer.at, watchedFrom)
      if (quietMs > QUIET_MS && navigator.onLine) void ask()
      if (known.state === 'signed_out') return
      const isOffline = !navigator.onLine
      if (isOffline || quietMs > STALE_MS) become({ state: 'stale', since: lastAnswer.at, isOffline })
      else if (known.state === 'stale') become({ state: 'again', at: now })
      else if (known.state === 'again' && now - known.at > SAID_MS) become({ state: 'current' })
    }

    const onVisible = () => {
      watchedFrom = Date.now()
    }
    check.current = () => void ask()
    const timer = setInterval(tick, TICK_MS)
    document.addEventListener('visibilitychange', onVisible)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', onVisible)
    }
  }, [cache])

  return { freshness, check: () => check.current() }
}

function isSame(one: Freshness, other: Freshness): boolean {
  if (one.state !== other.state) return false
  return one.state !== 'stale' || other.state !== 'stale' || one.isOffline === other.isOffline
}
