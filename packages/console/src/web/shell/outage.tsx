import { useQueryClient, type Query } from '@tanstack/react-query'
import { useCallback, useSyncExternalStore } from 'react'
import { isTemporary } from '../api.ts'

/** While the server does not answer, pages show what they have read. This says so. */
export function Outage() {
  const queries = useQueryClient().getQueryCache()
  const subscribe = useCallback((listener: () => void) => queries.subscribe(listener), [queries])
  const isOut = useSyncExternalStore(subscribe, () => queries.getAll().some(isOld))
  return (
    <p role="status" className="bg-amber-wash px-4 py-1.5 text-sm text-amber empty:hidden">
      {isOut && 'The server does not answer. You see what was read before; the console tries again.'}
    </p>
  )
}

/** On screen, and the last attempt to read it again failed. */
const isOld = (query: Query): boolean =>
  query.isActive() && query.state.data !== undefined && query.state.status === 'error' && isTemporary(query.state.error)
