/** Closed requests with the outcome of each: whether the call ran, when, and with what result. */
import { HINDSIGHT_FILTERS } from '@tacho/contract/approvals/approval-filters.ts'
import { HINDSIGHTS, type Hindsight } from '@tacho/contract/engine/words.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Time } from '../web/text/times.tsx'
import { More } from '../web/ui/button.tsx'
import { State } from '../web/ui/state.tsx'
import { stateWord, type StateName } from '../web/text/state-styles.ts'
import { FilterBar } from '../web/ui/filter-bar.tsx'
import { changed, Choice } from '../web/ui/filters.tsx'
import { Empty } from '../web/ui/states.tsx'
import { approvalWord } from './approval-summary.tsx'
import { ListedApproval } from './history-list.tsx'
import type { ApprovalListAddress, useHindsight } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/approvals')
const STATE_OF: Record<Hindsight, StateName> = {
  ran_before: 'RAN_BEFORE',
  ran_anyway: 'RAN_ANYWAY',
  failed: 'RAN_AND_FAILED',
  another_way: 'ANOTHER_WAY',
  ran: 'RAN',
  not_run: 'NOT_RUN',
  not_known: 'NOT_KNOWN',
}
const OUTCOMES = Object.keys(STATE_OF) as Hindsight[]

type List = ReturnType<typeof useHindsight>

/** Filters, with counts of outcomes over the loaded requests: an outcome is known only after its run was read. */
export function HindsightFilters(props: {
  id: string
  list: List
  search: ApprovalListAddress
  onChange: (search: ApprovalListAddress) => void
}) {
  const { id, list, search, onChange } = props
  const counts = Map.groupBy(list.items, ({ hindsight }) => hindsight)
  return (
    <FilterBar
      id={id}
      filters={HINDSIGHT_FILTERS}
      widths={{ '': 'w-full' }}
      search={search}
      onChange={onChange}
      cleared={{ show: 'hindsight' }}
      isFiltered={Object.keys(search).length > 1}
      className="grid grid-cols-2 gap-2 border-b border-line px-4 py-3"
    >
      <Choice
        label="What became of it"
        all="Any outcome"
        value={search.outcome}
        options={OUTCOMES.map((each) => [each, `${stateWord(STATE_OF[each])} (${counts.get(each)?.length ?? 0})`])}
        onChange={(outcome) => onChange(changed(search, { outcome }))}
      />
    </FilterBar>
  )
}

interface ListProps {
  list: List
  search: ApprovalListAddress
  current: string | undefined
}

export function HindsightList({ list, search, current }: ListProps) {
  const { show: _, outcome, ...filters } = search
  const shown = hindsightItems(list, search)
  const read = list.items.length
  return (
    <>
      {outcome !== undefined && read > 0 && (
        <p role="status" className="border-b border-line px-4 py-2 text-sm text-soft">
          {shown.length} of the {list.hasNextPage ? `newest ${read} closed requests` : read}:{' '}
          {HINDSIGHTS[outcome].toLowerCase()}.
        </p>
      )}
      {read > 0 ? (
        <div role="list" aria-label="Approvals in hindsight">
          {shown.map((item) => (
            <Listed key={item.approval.id} of={item} isCurrent={item.approval.id === current} />
          ))}
        </div>
      ) : Object.keys(filters).length > 0 ? (
        <Empty title="No closed request matches">Each filter matches the whole text. Letters match exactly.</Empty>
      ) : (
        <Empty title="No closed requests yet">
          Each request that is decided or expires stands here with what became of it: whether it ran before the
          decision, ran anyway, failed, or whether the agent took another way.
        </Empty>
      )}
      <More list={list} label="Show older requests" />
    </>
  )
}

/** Items with the chosen outcome. */
export const hindsightItems = ({ items }: Pick<List, 'items'>, { outcome }: ApprovalListAddress) =>
  outcome === undefined ? items : items.filter(({ hindsight }) => hindsight === outcome)

function Listed({
  of: { approval, hindsight, message, call },
  isCurrent,
}: {
  of: List['items'][number]
  isCurrent: boolean
}) {
  const params = route.useParams()
  return (
    <ListedApproval of={approval} isCurrent={isCurrent} chip={<State is={STATE_OF[hindsight]} />}>
      <p className="mt-0.5 text-sm">
        {approvalWord(approval.status)}. {message}.{' '}
        {approval.runId !== null && (
          <Link
            to="/w/$workspace/$environment/runs/$runId"
            params={{ ...params, runId: approval.runId }}
            search={call ? { step: call.eventId } : {}}
            className="link relative z-10 underline"
          >
            {call ? (
              <>
                Its step, <Time at={call.timestamp} />
              </>
            ) : (
              'Its run'
            )}
          </Link>
        )}
      </p>
    </ListedApproval>
  )
}
