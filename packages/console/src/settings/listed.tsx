import type { ReactNode } from 'react'
import { PagePending, Trouble } from '../ui/states.tsx'

interface Props<Item> {
  list: {
    data: readonly Item[] | undefined
    error: unknown
    refetch: () => Promise<unknown>
  }
  /** Says what will be here. */
  empty: ReactNode
  children: (items: readonly Item[]) => ReactNode
}

/** A list in one of its states: failed, loading, empty, or there. */
export function Listed<Item>({ list: { data, error, refetch }, empty, children }: Props<Item>) {
  if (error) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <PagePending />
  return data.length === 0 ? empty : children(data)
}
