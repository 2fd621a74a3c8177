/** A line on every page: since when the data may be outdated, and that they are current again. */
import { useQueryClient, type Query } from '@tanstack/react-query'
import { useCallback, useSyncExternalStore } from 'react'
import { isTemporary } from '../api.ts'
import type { Freshness } from '../freshness.ts'
import { clock, relative } from '../text/format.ts'
import { useNow } from '../text/times.tsx'

export function FreshnessLine({ freshness }: { freshness: Freshness }) {
  const isPartOld = useIsPartOld()
  if (freshness.state === 'again') {
    return (
      <p role="status" className="bg-green-wash px-4 py-1.5 text-sm text-green">
        <span aria-hidden>✓ </span>Current again since {clock(freshness.at)}.
      </p>
    )
  }
  return (
    <p role="status" className="bg-amber-wash px-4 py-1.5 text-sm text-amber empty:hidden">
      {(freshness.state === 'stale' || isPartOld) && <Stale freshness={freshness} />}
    </p>
  )
}

function Stale({ freshness }: { freshness: Freshness }) {
  const now = useNow()
  if (freshness.state !== 'stale') {
    return 'The server does not answer everything. You see what was read before; the console tries again.'
  }
  const { since, isOffline } = freshness
  const main = isOffline ? 'This device is offline.' : 'The server does not answer.'
  return `${main} What you see is of ${clock(since)} (${relative(since, Math.max(now, since))}): what happened since is not known, and counts, states \
and deadlines may be wrong. The console tries again.`
}

/** Whether a visible query failed although the server answers others. */
function useIsPartOld(): boolean {
  const queries = useQueryClient().getQueryCache()
  const subscribe = useCallback((listener: () => void) => queries.subscribe(listener), [queries])
  return useSyncExternalStore(subscribe, () => queries.getAll().some(isOld))
}

const isOld = (query: Query): boolean =>
  query.isActive() && query.state.data !== undefined && query.state.status === 'error' && isTemporary(query.state.error)
