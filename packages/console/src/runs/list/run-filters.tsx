import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { RUN_FILTERS, type RunFilterName } from '@tacho/contract/runs/run-filters.ts'
import { useMemo, useState } from 'react'
import { Button } from '../../web/ui/button.tsx'
import { changed, Choice } from '../../web/ui/filters.tsx'
import { FilterBar, FilterFields } from '../../web/ui/filter-bar.tsx'
import { Facets } from './facets.tsx'
import { statusWord } from '../run-status.tsx'
import { isOpen, RUN_ORDERS, STATUS_FILTERS, type RunSort, type RunListAddress } from '../address.ts'

export const SEARCH_ID = 'search-runs'
const FIRST: readonly RunFilterName[] = ['q', 'status', 'from']
/** On a phone, these are behind the button, because room is scarce and the first field finds both. */
const OWNERS: readonly RunFilterName[] = ['agent', 'session']
/** Filters behind the button "More filters". */
const MORE = Object.entries(RUN_FILTERS).flatMap(([name, row]) =>
  'field' in row && ![...FIRST, ...OWNERS].includes(name as RunFilterName) ? [name as keyof RunListAddress] : [],
)

/** An empty text or undefined leaves its filter out. */
type Change = { [Name in keyof RunListAddress]?: RunListAddress[Name] | string | undefined }

interface Props {
  search: RunListAddress
  /** The runs in the list, whose names are suggested. */
  items: readonly OperatorRun[]
  onChange: (search: RunListAddress) => void
}

export function RunFilters({ search, items, onChange }: Props) {
  const set = (change: Change) => onChange(changed(search, change))
  const count = [...MORE, 'share' as const].filter((name) => search[name] !== undefined).length
  const [isMore, setMore] = useState(count > 0)
  const { columns: chosenColumns, ...filter } = search
  const isOwned = search.agent !== undefined || search.sessionId !== undefined
  const statuses = STATUS_FILTERS.map((one) => [one, one === 'STALLED' ? 'Stalled' : statusWord(one)] as const)
  const status = (
    <Choice
      key="status"
      label="Status"
      all="Any status"
      value={search.status}
      options={statuses}
      onChange={(chosen) => set({ status: chosen, ...(isOpen(chosen) && { order: undefined }) })}
    />
  )
  return (
    <FilterBar
      id={SEARCH_ID}
      filters={RUN_FILTERS}
      names={FIRST}
      widths={{ q: 'w-full sm:w-48' }}
      search={search}
      onChange={onChange}
      instead={{ status }}
      cleared={chosenColumns === undefined ? {} : { columns: chosenColumns }}
      isFiltered={Object.keys(filter).length > 0}
      more={isMore && <MoreFilters search={search} items={items} onChange={onChange} />}
    >
      <Order search={search} onChange={set} />
      <FilterFields
        filters={RUN_FILTERS}
        names={OWNERS}
        search={search}
        onChange={onChange}
        widths={{ '': `w-28 ${isMore || isOwned ? '' : 'max-sm:hidden'}` }}
      />
      {search.promptVersionId !== undefined && (
        <span className="text-sm text-soft">
          prompt version <span className="font-mono">{search.promptVersionId.slice(0, 8)}</span>
        </span>
      )}
      <Button look="quiet" aria-expanded={isMore} onClick={() => setMore(!isMore)}>
        {isMore ? 'Fewer filters' : count > 0 ? `More filters (${count})` : 'More filters'}
      </Button>
    </FilterBar>
  )
}

const ORDER_WORDS: Record<RunSort, string> = {
  cost: 'Highest cost',
  length: 'Longest',
  tokens: 'Most tokens',
  failures: 'Most errors',
}
const SCORE_ORDERS = [
  ['lowest', 'Lowest score first'],
  ['highest', 'Highest score first'],
] as const

function Order({ search, onChange }: { search: RunListAddress; onChange: (change: Change) => void }) {
  const { order: chosen, score, scoreOrder, status } = search
  const sorts = isOpen(status) ? [] : RUN_ORDERS.map((one) => [one, ORDER_WORDS[one]] as const)
  const options = [...sorts, ...(score === undefined ? [] : SCORE_ORDERS)]
  if (options.length === 0) return null
  return (
    <Choice
      label="Order"
      all="Newest first"
      value={chosen ?? (score === undefined ? undefined : scoreOrder)}
      options={options}
      onChange={(order) => {
        const known = RUN_ORDERS.find((one) => one === order)
        onChange({ order: known, scoreOrder: known ? undefined : order })
      }}
    />
  )
}

/** Filters on properties that the server checks run by run. */
function MoreFilters({ search, items, onChange }: Props) {
  const known = useMemo(() => {
    const names = (of: (run: OperatorRun) => readonly string[]) => [...new Set(items.flatMap(of))].toSorted()
    return {
      tool: names(({ tools }) => tools),
      model: names(({ models }) => models),
      policyId: names(({ policyIds }) => policyIds),
      score: names(({ scores }) => scores.map(({ name }) => name)),
    }
  }, [items])
  // The filter `unscored` is shown only if a link from another page set it.
  const shown = search.unscored === undefined ? MORE.filter((name) => name !== 'unscored') : MORE
  return (
    <div className="flex w-full flex-wrap items-center gap-2">
      <FilterFields
        filters={RUN_FILTERS}
        names={shown}
        search={search}
        widths={{ minCost: 'w-28', score: 'w-44' }}
        suggestions={known}
        // When the score filter is removed, also remove the sort order by scores.
        onChange={(next) => onChange(next.score === undefined ? changed(next, { scoreOrder: undefined }) : next)}
      />
      <Facets search={search} onChange={(change) => onChange(changed(search, change))} />
    </div>
  )
}
