import type { ApprovalCard, OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import type { ApprovalStatus } from '@tacho/contract/approvals/approval.ts'
import { APPROVAL_FILTERS } from '@tacho/contract/approvals/approval-filters.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { More } from '../web/ui/button.tsx'
import { FilterBar } from '../web/ui/filter-bar.tsx'
import { ShownText } from '../web/text/shown-text.tsx'
import { Empty } from '../web/ui/states.tsx'
import { Time } from '../web/text/times.tsx'
import { approvalWord, ApprovalStatusChip, InputInShort, Requester, Sentence, ToolName } from './approval-summary.tsx'
import type { useHistory, ApprovalListAddress } from './queries.ts'
import { WaitingLines } from './caller-state.tsx'

const route = getRouteApi('/w/$workspace/$environment/approvals')

interface FiltersProps {
  id: string
  search: ApprovalListAddress
  onChange: (search: ApprovalListAddress) => void
}

export function HistoryFilters({ id, search, onChange }: FiltersProps) {
  return (
    <FilterBar
      id={id}
      filters={APPROVAL_FILTERS}
      widths={{ '': 'w-full' }}
      wordOf={(status) => approvalWord(status as ApprovalStatus)}
      search={search}
      onChange={onChange}
      cleared={{ show: 'history' }}
      isFiltered={Object.keys(search).length > 1}
      className="grid grid-cols-2 gap-2 border-b border-line px-4 py-3"
    />
  )
}

interface ListProps {
  list: ReturnType<typeof useHistory>
  isFiltered: boolean
  current: string | undefined
}

export function HistoryList({ list, isFiltered, current }: ListProps) {
  if (list.items.length === 0) {
    return isFiltered ? (
      <Empty title="No request matches">Each filter matches the whole text. Letters match exactly.</Empty>
    ) : (
      <Empty title="No requests yet">
        Every request stays here: who decided, when and why, and what the agent did then.
      </Empty>
    )
  }
  return (
    <>
      <div role="list" aria-label="Approvals">
        {list.items.map((item) => (
          <ListedApproval
            key={item.id}
            of={item}
            isCurrent={item.id === current}
            chip={<ApprovalStatusChip status={item.status} />}
          >
            <InputInShort of={item} />
            {item.waiting.state === 'withdrawn' && <WaitingLines of={{ waiting: item.waiting, ranBefore: null }} />}
          </ListedApproval>
        ))}
      </div>
      <More list={list} label="Show older requests" />
    </>
  )
}

interface ListedProps {
  of: OperatorApproval & Partial<ApprovalCard>
  isCurrent: boolean
  chip: ReactNode
  /** Shown between the tool and the person who decided. */
  children: ReactNode
}

export function ListedApproval({ of: item, isCurrent, chip, children }: ListedProps) {
  const params = route.useParams()
  const search = route.useSearch()
  return (
    <div
      role="listitem"
      data-current={isCurrent}
      className="relative border-b border-line px-4 py-2.5 hover:bg-hover data-[current=true]:bg-accent-wash"
    >
      <div className="flex items-center justify-between gap-3">
        <Link
          to="/w/$workspace/$environment/approvals/$approvalId"
          params={{ ...params, approvalId: item.id }}
          search={search}
          aria-current={isCurrent ? 'true' : undefined}
          className="line-clamp-2 min-w-0 text-sm font-medium [overflow-wrap:anywhere] after:absolute after:inset-0"
        >
          <Sentence of={item} />
        </Link>
        {chip}
      </div>
      {children}
      <p className="mt-0.5 flex items-baseline justify-between gap-3 text-sm text-soft">
        <ToolName of={item} />
        <bdi className="mr-auto min-w-0 truncate">
          {item.importedAt !== null && 'imported, '}
          {item.decidedBy ? <ShownText text={`by ${item.decidedBy.name}`} /> : <Requester of={item} />}
        </bdi>
        <Time at={item.decidedAt ?? item.createdAt} />
      </p>
    </div>
  )
}
