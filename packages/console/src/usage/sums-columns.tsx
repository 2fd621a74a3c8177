/** What lists of agents and sessions share: the choices above, and the columns of their sums. */
import type { UsagePoint } from '@tacho/contract/operator/usage.ts'
import { Cost } from '../ui/cost.tsx'
import { costsOf } from '../ui/costs.ts'
import type { Column } from '../ui/data-table.tsx'
import { Failed } from '../ui/failed.tsx'
import { changed, Choice, TextFilter } from '../ui/filters.tsx'
import { compact, number } from '../ui/format.ts'
import type { SumsSearch } from './search.ts'

const DAY_WORDS = [
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
  ['30d', 'Last 30 days'],
  ['90d', 'Last 90 days'],
  ['365d', 'Last year'],
] as const
const ORDER_WORDS = [
  ['cost', 'Most cost'],
  ['tokens', 'Most tokens'],
  ['runs', 'Most runs'],
  ['failed', 'Most failed runs'],
] as const

interface ChoicesProps {
  id: string
  label: string
  search: SumsSearch
  onChange: (search: SumsSearch) => void
}

export function SumsChoices({ id, label, search, onChange }: ChoicesProps) {
  const { since = '7d', order = 'cost', q } = search
  const set = (change: { [Name in keyof SumsSearch]?: string }) => onChange(changed(search, change) as SumsSearch)
  return (
    <div role="search" className="flex flex-wrap items-center gap-2 py-3">
      <TextFilter
        id={id}
        label={label}
        placeholder={label}
        className="w-full sm:w-64"
        value={q}
        onChange={(text) => set({ q: text })}
      />
      <Choice label="Period" value={since} options={DAY_WORDS} onChange={(one) => set({ since: one })} />
      <Choice label="Order" value={order} options={ORDER_WORDS} onChange={(one) => set({ order: one })} />
    </div>
  )
}

export const SUM_COLUMNS: readonly Column<UsagePoint>[] = [
  { head: 'Runs', right: true, cell: ({ runs }) => number(runs) },
  { head: 'Completed', right: true, wide: true, cell: ({ completed }) => number(completed) },
  { head: 'Failed', right: true, cell: (sum) => <Failed of={sum} /> },
  {
    head: 'Running',
    right: true,
    wide: true,
    cell: ({ runs, completed, failed, cancelled }) => number(runs - completed - failed - cancelled),
  },
  { head: 'Tokens', right: true, wide: true, cell: ({ usage }) => compact(usage.totalTokens) },
  { head: 'Cost', right: true, wide: true, cell: (sum) => <Cost of={costsOf(sum)} /> },
]
