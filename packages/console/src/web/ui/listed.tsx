import type { ReactNode } from 'react'
import { DataTable, type Column } from './data-table.tsx'
import { PagePending, Trouble, isBlocking } from './states.tsx'

interface ListedProps<Item> {
  label: string
  list: {
    data: readonly Item[] | undefined
    error: unknown
    refetch: () => Promise<unknown>
  }
  columns: readonly Column<Item>[]
  /** Says what will be here. */
  empty: ReactNode
  /** The row that the keys have chosen. */
  current?: Item | undefined
}

/** A table in one of its states: failed, loading, empty, or there. */
export function ListedTable<Item extends { id: string | number }>(props: ListedProps<Item>) {
  const { label, list, columns, empty, current } = props
  const { data, error, refetch } = list
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <PagePending />
  if (data.length === 0) return empty
  return <DataTable label={label} columns={columns} items={data} keyOf={({ id }) => id} current={current} />
}
