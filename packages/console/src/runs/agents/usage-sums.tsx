/** Shared by the lists of agents and sessions: the choices above them, and the columns of their sums. */
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { tokenWords } from '@tacho/contract/runs/run-text.ts'
import type { UsagePoint } from '@tacho/contract/runs/usage.ts'
import { allItems } from '@tacho/client/items.ts'
import { Cost, Failed } from '../../web/text/figures.tsx'
import { costsOf } from '../../web/text/costs.ts'
import type { Column } from '../../web/ui/data-table.tsx'
import { changed, Choice, TextFilter } from '../../web/ui/filters.tsx'
import { compact, number } from '../../web/text/format.ts'
import { RangeChoice } from '../../web/ui/range-choice.tsx'
import {
  NO_RANGE,
  hoursBefore,
  hoursOf,
  hourTimes,
  readRange,
  runsRange,
  type HourWindow,
  type Range,
} from '../../web/address.ts'
import { SUMS_SINCE, type SumsAddress, type SumOrder } from '../address.ts'
import { api } from '../../web/api.ts'

const ORDER_WORDS = [
  ['cost', 'Most cost'],
  ['tokens', 'Most tokens'],
  ['runs', 'Most runs'],
  ['failed', 'Most failed runs'],
] as const

interface ChoicesProps {
  id: string
  label: string
  search: SumsAddress
  onChange: (search: SumsAddress) => void
}

export function SumsChoices({ id, label, search, onChange }: ChoicesProps) {
  const { order = 'cost', q } = search
  const set = (change: { [Name in keyof SumsAddress]?: string | undefined }) => onChange(changed(search, change))
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
      <RangeChoice
        label="Period"
        range={search}
        byDefault={SUMS_SINCE}
        onChange={(range) => set({ ...NO_RANGE, ...range })}
      />
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
  { head: 'Tokens', right: true, wide: true, cell: ({ usage }) => tokenWords(usage.totalTokens, compact) },
]

export const COST_COLUMN: Column<UsagePoint> = {
  head: 'Cost',
  right: true,
  cell: (sum) => <Cost of={costsOf(sum)} />,
}

/** Sums of a period, from the usage rollups, for lists of agents and sessions. */

const REFRESH_MS = 15_000
/** LIMITS.usagePointsPage. Importing the limits would make the page larger. */
const PAGE = 2_000

/** Sums sorted by value, largest first: of all agents, or of the first sessions, because there can be many. */
export function useSums(environmentId: string, by: 'agent' | 'session', search: Range, sort: SumOrder) {
  const range = readRange(search)
  return useQuery({
    queryKey: ['usage sums', environmentId, by, range, sort],
    queryFn: async ({ signal }) => {
      const window = hoursOf(range, SUMS_SINCE, Date.now())
      const query = { by, step: 'window', sort, limit: PAGE } as const
      const input = (time: HourWindow) => ({ params: { environmentId }, query: { ...hourTimes(time), ...query } })
      const runs = runsRange(window, range)
      if (by === 'agent') {
        const read = (time: HourWindow) => allItems((page) => api.readUsagePoints(page, { signal }), input(time))
        const [sums, before] = await Promise.all([read(window), read(hoursBefore(window))])
        return { sums, before, runs, isAll: true }
      }
      const { items, nextCursor } = await api.readUsagePoints(input(window), { signal })
      return { sums: items, before: [], runs, isAll: nextCursor === null }
    },
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}
