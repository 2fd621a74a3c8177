import type { Key, ReactNode } from 'react'
import { useActiveInSight } from './browser.ts'
import { PagePending, Trouble, isBlocking } from './states.tsx'

export interface Column<Item> {
  head: string
  /** The head is visible only to screen readers. */
  isHeadHidden?: boolean
  cell: (item: Item) => ReactNode
  /** Aligns to the right, for numbers. */
  right?: boolean
  /** Hidden on a phone. */
  wide?: boolean
  /** The column takes the remaining room, and always enough to be readable. Longer content is cut. */
  main?: boolean
}

interface DataTableProps<Item> {
  label: string
  columns: readonly Column<Item>[]
  items: readonly Item[]
  keyOf: (item: Item) => Key
  /** The row that was reached by keyboard. */
  current?: Item | undefined
}

/** A table that is not windowed, for short lists and lists that people made. */
export function DataTable<Item>({ label, columns, items, keyOf, current }: DataTableProps<Item>) {
  const box = useActiveInSight<HTMLDivElement>('')
  return (
    // The edge fades where a narrow window hides columns.
    <div ref={box} className="overflow-x-auto" tabIndex={-1}>
      <table aria-label={label} className="w-full text-sm">
        <thead>
          <tr className="h-8 border-b border-line text-xs text-soft">
            {columns.map((column) => (
              <th key={column.head} scope="col" className={`px-2 font-normal ${cellLook(column)}`}>
                {column.isHeadHidden ? <span className="sr-only">{column.head}</span> : column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr
              key={keyOf(item)}
              data-current={item === current}
              className="relative h-9 border-b border-line hover:bg-hover data-[current=true]:bg-accent-wash"
            >
              {columns.map((column) => (
                <td key={column.head} className={`px-2 py-1.5 ${cellLook(column)}`}>
                  <Filled>{column.cell(item)}</Filled>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A cell without a value shows a text, because an empty cell could be a fault. `false` leaves a cell of acts empty. */
function Filled({ children }: { children: ReactNode }) {
  if (children !== null && children !== undefined && children !== '') return children
  return (
    <span title="Not recorded" className="text-soft">
      –
    </span>
  )
}

function cellLook({ right, wide, main }: Column<never>): string {
  return `${right ? 'text-right' : 'text-left'} ${wide ? 'max-sm:hidden' : ''} ${main ? 'w-full max-w-0 min-w-28' : 'whitespace-nowrap'}`
}

/** For the link in the main cell: it covers the whole row. */
export const ROW_LINK = 'block truncate font-medium after:absolute after:inset-0'

interface ListedProps<Item> {
  label: string
  list: {
    data: readonly Item[] | undefined
    error: unknown
    refetch: () => Promise<unknown>
  }
  columns: readonly Column<Item>[]
  /** Shown instead of rows if there are none. */
  empty: ReactNode
  /** The row that was reached by keyboard. */
  current?: Item | undefined
}

/** A table, or its state: failed, loading or empty. */
export function ListedTable<Item extends { id: string | number }>(props: ListedProps<Item>) {
  const { label, list, columns, empty, current } = props
  const { data, error, refetch } = list
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <PagePending />
  if (data.length === 0) return empty
  return <DataTable label={label} columns={columns} items={data} keyOf={({ id }) => id} current={current} />
}
