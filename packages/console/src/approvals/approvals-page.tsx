import type { ApprovalCard, ApprovalPage } from '@tacho/contract/approvals/operator-approval.ts'
import { sentenceText } from '@tacho/contract/approvals/sentence-text.ts'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import { inShort } from '@tacho/contract/record/payload-reader.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { Button } from '../web/ui/button.tsx'
import { areKeysOn, useKeys } from '../web/ui/keys.ts'
import { PagePending, Trouble, isBlocking } from '../web/ui/states.tsx'
import { Tabs } from '../web/ui/tabs.tsx'
import { useTitle } from '../web/ui/browser.ts'
import { DecideMany } from './decide-many.tsx'
import { HindsightFilters, hindsightItems, HindsightList } from './hindsight-list.tsx'
import { HistoryFilters, HistoryList } from './history-list.tsx'
import { NotifyButton } from './waiting-count.tsx'
import { StandingList } from './standing-list.tsx'
import {
  approvalQuery,
  pendingQuery,
  useGrants,
  useHindsight,
  useHistory,
  type ApprovalListAddress,
} from './queries.ts'
import { needsPerson } from './caller-state.tsx'
import { groupsOf, WaitingList } from './waiting-list.tsx'

const route = getRouteApi('/w/$workspace/$environment/approvals')
/** From this width on, the list and a request are side by side. */
const WIDE = '(min-width: 64rem)'
const SEARCH_ID = 'search-approvals'
const TITLE_CHARS = 60

/** The list on the left and the selected request on the right; on a phone, only one of them. */
export function ApprovalsPage() {
  const params = route.useParams()
  const search = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { approvalId } = useParams({ strict: false })
  const { show = 'waiting' } = search
  const isWaiting = show === 'waiting'
  const environmentId = place.environment.id
  const pending = useQuery(pendingQuery(environmentId))
  const history = useHistory(environmentId, search)
  const hindsight = useHindsight(environmentId, search)
  const grants = useGrants(environmentId, search)
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set())
  // The requests for which the dialog was opened. They stay, even if another person decides one.
  const [deciding, setDeciding] = useState<readonly ApprovalCard[]>([])
  const { data: opened } = useQuery({
    ...approvalQuery(environmentId, approvalId ?? ''),
    enabled: approvalId !== undefined,
  })
  useTitle(
    opened === undefined
      ? 'Approvals'
      : `${inShort(printable(sentenceText(opened.sentence)), TITLE_CHARS)} · Approvals`,
  )

  const waiting = groupsOf(pending.data?.items ?? [])
  const lists = {
    waiting: { list: pending, items: waiting.flatMap(({ items }) => items) },
    history: { list: history, items: history.items },
    standing: { list: grants, items: [] },
    hindsight: { list: hindsight, items: hindsightItems(hindsight, search).map(({ approval }) => approval) },
  }
  const { list, items } = lists[show]
  const chosen = waiting.flatMap(({ items }) => items).filter(({ id }) => marked.has(id))
  const open = (id: string | undefined) =>
    id !== undefined &&
    void navigate({
      to: '/w/$workspace/$environment/approvals/$approvalId',
      params: { ...params, approvalId: id },
      search,
      replace: approvalId !== undefined,
    })
  // A wide screen also shows a request: at first the one with the earliest deadline.
  const first = !isWaiting || approvalId !== undefined ? undefined : waiting[0]?.items[0]?.id
  useEffect(() => {
    if (first === undefined || !window.matchMedia(WIDE).matches) return
    void navigate({
      to: '/w/$workspace/$environment/approvals/$approvalId',
      params: { workspace: params.workspace, environment: params.environment, approvalId: first },
      replace: true,
    })
  }, [first, navigate, params.workspace, params.environment])
  const move = (by: 1 | -1) => {
    const at = items.findIndex(({ id }) => id === approvalId)
    open(items[at === -1 ? 0 : at + by]?.id)
  }
  const mark = (ids: readonly string[], isMarked: boolean) => {
    const next = new Set(marked)
    for (const id of ids) {
      if (isMarked) next.add(id)
      else next.delete(id)
    }
    setMarked(next)
  }
  const canDecide = place.may('approver')
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ...(!isWaiting
      ? { '/': () => document.getElementById(SEARCH_ID)?.focus() }
      : canDecide && {
          x: () => approvalId !== undefined && mark([approvalId], !marked.has(approvalId)),
          ...(chosen.length > 0 && { d: () => setDeciding(chosen) }),
        }),
  })

  const setSearch = (change: ApprovalListAddress) => void navigate({ to: '.', search: change, replace: true })
  return (
    <div className="full-height flex short:h-auto">
      <div
        className={`flex w-full flex-col border-line lg:w-96 lg:shrink-0 lg:border-r ${approvalId === undefined ? '' : 'max-lg:hidden'}`}
      >
        <div className="px-4 pt-4">
          <div className="flex items-center justify-between gap-2">
            <h1 className="text-xl font-semibold">Approvals</h1>
            <NotifyButton />
          </div>
          <Tabs
            label="Approvals"
            value={show}
            options={[
              ['waiting', `Waiting${pending.data ? ` ${countText(pending.data)}` : ''}`],
              ['history', 'History'],
              ['hindsight', 'In hindsight'],
              ['standing', 'Standing'],
            ]}
            onChange={(chosen) => setSearch(chosen === 'waiting' ? {} : { show: chosen })}
          />
        </div>
        {show === 'history' && <HistoryFilters id={SEARCH_ID} search={search} onChange={setSearch} />}
        {show === 'hindsight' && (
          <HindsightFilters id={SEARCH_ID} list={hindsight} search={search} onChange={setSearch} />
        )}
        <div className="min-h-0 flex-1 overflow-y-auto overscroll-contain" tabIndex={-1}>
          {isBlocking(list.error, list.data) ? (
            <Trouble error={list.error} retry={() => void list.refetch()} />
          ) : list.isPending ? (
            <PagePending />
          ) : show === 'standing' ? (
            <StandingList environmentId={environmentId} list={grants} mayRevoke={canDecide} />
          ) : show === 'history' ? (
            <HistoryList list={history} isFiltered={Object.keys(search).length > 1} current={approvalId} />
          ) : show === 'hindsight' ? (
            <HindsightList list={hindsight} search={search} current={approvalId} />
          ) : (
            <WaitingList
              groups={waiting}
              isMore={typeof pending.data?.nextCursor === 'string'}
              current={approvalId}
              marked={canDecide ? marked : null}
              onMark={mark}
            />
          )}
        </div>
        {isWaiting && chosen.length > 0 && (
          <div className="flex items-center gap-2 border-t border-line bg-side px-4 py-3">
            <Button look="accent" className="h-10 flex-1" onClick={() => setDeciding(chosen)}>
              Decide {chosen.length}…
            </Button>
            <Button look="quiet" className="h-10" onClick={() => setMarked(new Set())}>
              Clear
            </Button>
          </div>
        )}
      </div>
      <div className={`min-w-0 flex-1 ${approvalId === undefined ? 'max-lg:hidden' : ''}`}>
        {approvalId === undefined ? (
          <p className="p-8 text-soft">
            Choose a request
            {areKeysOn() && (
              <>
                , or press <kbd className="rounded border border-edge px-1.5 font-sans text-xs leading-5">j</kbd>
              </>
            )}
            . The run of a request waits for a decision, or until its deadline.{' '}
            {!canDecide && 'Your role lets you read requests, not decide them.'}
          </p>
        ) : (
          <>
            <h1 className="sr-only lg:hidden">Approvals</h1>
            <Outlet />
          </>
        )}
      </div>
      {deciding.length > 0 && (
        <DecideMany
          environmentId={environmentId}
          approvals={deciding}
          onClose={() => setDeciding([])}
          onDecided={() => setMarked(new Set())}
        />
      )}
    </div>
  )
}

/** Link back to the list on a phone. */
export function BackToList() {
  const params = route.useParams()
  const search = route.useSearch()
  return (
    <Link to="/w/$workspace/$environment/approvals" params={params} search={search} className="link text-sm lg:hidden">
      ‹ All approvals
    </Link>
  )
}

function countText({ items, nextCursor }: ApprovalPage): string {
  const count = items.filter(needsPerson).length
  return nextCursor === null ? String(count) : `${count}+`
}
