import { barsOf, extentOf } from '@tacho/contract/runs/timeline.ts'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useMemo, useState } from 'react'
import { api } from '../../web/api.ts'
import { useSteps } from '../queries.ts'
import { RunStatusChip, statusWord } from '../run-status.tsx'
import { RunsTabs } from '../../web/ui/tabs.tsx'
import type { JudgeAddress } from '../address.ts'
import { TranscriptView } from '../page/transcript-view.tsx'
import type { RunView } from '@tacho/contract/runs/run-view.ts'
import { ViewMenu } from '../list/view-menu.tsx'
import { filterOf, isQueue, toSearch, toView } from '../list/views.ts'
import { Button } from '../../web/ui/button.tsx'
import { changed, Choice, TextFilter } from '../../web/ui/filters.tsx'
import { useKeys } from '../../web/ui/keys.ts'
import { RangeChoice } from '../../web/ui/range-choice.tsx'
import { NO_RANGE, timesOfRange } from '../../web/address.ts'
import { Empty, PagePending, Trouble } from '../../web/ui/states.tsx'
import { runName } from '../../web/text/format.ts'
import { ShownText } from '../../web/text/shown-text.tsx'
import { Time } from '../../web/text/times.tsx'
import { useTitle } from '../../web/ui/browser.ts'
import { JudgeBar } from './judge-bar.tsx'
import { JudgesDialog } from './judges-dialog.tsx'
import { lastName, scoreNamesQuery } from './queries.ts'
import { useLabels } from './use-labels.ts'

const route = getRouteApi('/w/$workspace/$environment/judge')
/** Number of runs to read at once. More are read when these are judged or skipped. */
const READ_AT_ONCE = 100
/** Maximum number of requests for one batch of runs, because a request may find few that match. */
const LOOKS = 4
const ENDED = ['COMPLETED', 'FAILED', 'CANCELLED'] as const
const SHARES = [5, 10, 25, 50] as const

type Change = { [Name in keyof JudgeAddress]?: JudgeAddress[Name] | string | undefined }

/** Shows ended runs without a score that match a filter, one after another. */
export function JudgePage() {
  const search = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { name = lastName() } = search
  const environmentId = place.environment.id
  useTitle('Judge')
  const [comment, setComment] = useState('')
  const [areJudgesShown, setJudgesShown] = useState(false)
  const labels = useLabels(environmentId, name)
  const { passed, judged } = labels
  const { queue, isMore, readAgain } = useQueue(environmentId, name, search, passed)
  const run = labels.returned ?? queue.data?.find(({ id }) => !passed.has(id))
  labels.useNext(run)
  const unpassed = queue.data?.filter(({ id }) => !passed.has(id) && id !== labels.returned?.id).length ?? 0
  const left = unpassed + (labels.returned ? 1 : 0)
  const mayJudge = place.may('approver')
  const judge = (text: string) => {
    if (!mayJudge || text.trim() === '') return
    labels.press({ act: 'judge', text, comment })
    setComment('')
  }
  const pass = () => labels.press({ act: 'pass' })
  const undo = () => labels.press({ act: 'undo' })
  useKeys({
    1: { name: 'Judge as good', act: () => judge('yes') },
    0: { name: 'Judge as bad', act: () => judge('no') },
    n: { name: 'Skip this run', act: pass },
    u: { name: 'Undo the last judgement or skip', act: undo },
  })
  const set = (change: Change) => void navigate({ to: '.', search: changed(search, change), replace: true })
  return (
    <div className="full-height flex flex-col">
      <div className="border-b border-line px-3 pt-5 pb-3 sm:px-5">
        <h1 className="text-xl font-semibold">Judge</h1>
        <RunsTabs />
        <QueueFilters
          environmentId={environmentId}
          name={name}
          search={search}
          set={set}
          onJudges={() => setJudgesShown(true)}
        />
        {!mayJudge && <p className="text-sm text-soft">Judging needs the role approver.</p>}
        <p role="status" className="text-sm text-soft">
          {run && `Run ${passed.size + 1} of ${passed.size + left}${isMore ? '+' : ''}. `}
          {judged > 0 && `${judged} judged now. `}
          {passed.size > judged && `${passed.size - judged} skipped.`}
        </p>
      </div>
      {areJudgesShown && (
        <JudgesDialog environmentId={environmentId} name={name} range={search} onClose={() => setJudgesShown(false)} />
      )}
      {queue.error ? (
        <Trouble error={queue.error} retry={() => void queue.refetch()} />
      ) : queue.isPending || (!run && queue.isFetching) ? (
        <PagePending />
      ) : run ? (
        <>
          <Judged key={run.id} environmentId={environmentId} run={run} />
          <JudgeBar
            key={`bar ${run.id}`}
            mayJudge={mayJudge}
            canUndo={labels.canUndo}
            error={labels.error}
            comment={comment}
            onComment={setComment}
            onJudge={judge}
            onPass={pass}
            onUndo={undo}
          />
        </>
      ) : (
        <Empty
          title="No run is left to judge"
          action={
            <Button
              onClick={() => {
                labels.forget()
                readAgain()
              }}
            >
              Look again
            </Button>
          }
        >
          {search.by === 'anyone'
            ? `Every ended run of this filter has a score named ${name}, or you skipped it.`
            : `You judged ${name} of every ended run of this filter, or skipped it.`}{' '}
          Choose other runs above, or another name.
        </Empty>
      )}
    </div>
  )
}

/** Reads more runs when all are judged or skipped. */
function useQueue(
  environmentId: string,
  name: string,
  { name: _, by, ...filter }: JudgeAddress,
  passed: ReadonlySet<string>,
) {
  const [round, setRound] = useState(0)
  const queue = useQuery({
    queryKey: ['judge', environmentId, name, by, filter, round],
    queryFn: async ({ signal }) => {
      const without = by === 'anyone' ? { unscored: name } : { unjudged: name }
      const query = { ...filterOf(filter), ...timesOfRange(filter, Date.now()), ...without, limit: READ_AT_ONCE }
      const items: OperatorRun[] = []
      let cursor: string | undefined
      for (let looks = 0; looks < LOOKS && items.length < READ_AT_ONCE; looks++) {
        const page = await api.listOperatorRuns({ params: { environmentId }, query: { ...query, cursor } }, { signal })
        // The outcome of a running run is not known yet.
        items.push(...page.items.filter(({ id, status }) => status !== 'RUNNING' && !passed.has(id)))
        cursor = page.nextCursor ?? undefined
        if (cursor === undefined) break
      }
      return { items, isMore: cursor !== undefined }
    },
    gcTime: 0,
    staleTime: Infinity,
  })
  const readAgain = () => setRound((before) => before + 1)
  const items = queue.data?.items
  const isThrough = items !== undefined && items.length > 0 && items.every(({ id }) => passed.has(id))
  useEffect(() => {
    if (isThrough) setRound((before) => before + 1)
  }, [isThrough])
  return { queue: { ...queue, data: items }, isMore: queue.data?.isMore ?? false, readAgain }
}

interface FiltersProps {
  environmentId: string
  name: string
  search: JudgeAddress
  set: (change: Change) => void
  onJudges: () => void
}

function QueueFilters({ environmentId, name, search, set, onJudges }: FiltersProps) {
  const { data: names = [] } = useQuery(scoreNamesQuery(environmentId))
  const share = search.share?.toString()
  const [isOpen, setOpen] = useState(false)
  const { by, agent, status, since, from, to } = search
  const count = [by, share, agent, status, since, from ?? to].filter((value) => value !== undefined).length
  return (
    <div role="search" className="flex flex-wrap items-center gap-2 py-2">
      <TextFilter
        label="What you judge"
        placeholder="quality"
        pattern="[^<>=]{1,64}"
        value={name}
        suggestions={names.map((known) => known.name)}
        onChange={(text) => set({ name: text })}
        className="w-36 max-sm:min-w-0 max-sm:flex-1"
      />
      {/* On a phone, the conversation needs the room. */}
      <Button className="sm:hidden" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {count > 0 ? `Filters (${count})` : 'Filters'}
      </Button>
      <div className={`contents ${isOpen ? '' : 'max-sm:hidden'}`}>
        <Choice
          label="Not judged"
          all="Not judged by you"
          value={search.by}
          options={[['anyone', 'Not judged by anyone']]}
          onChange={(by) => set({ by })}
        />
        <Choice
          label="Share of the runs"
          all="All runs"
          value={share}
          options={[...new Set([...SHARES.map(String), ...(share === undefined ? [] : [share])])].map((one) => [
            one,
            `${one} % of the runs`,
          ])}
          onChange={(one) => set({ share: one })}
        />
        <TextFilter label="Agent" placeholder="Agent" value={search.agent} onChange={(agent) => set({ agent })} />
        <Choice
          label="Status"
          all="Any outcome"
          value={search.status}
          options={ENDED.map((status) => [status, statusWord(status)])}
          onChange={(status) => set({ status })}
        />
        <RangeChoice
          label="Started"
          range={search}
          byDefault={null}
          onChange={(range) => set({ ...NO_RANGE, ...range })}
        />
        <Button onClick={onJudges}>Compare judges</Button>
      </div>
      <Queues name={name} search={search} />
    </div>
  )
}

/** Assigns runs to judges: a queue is a saved view of runs that the person who opens it has not judged. */
function Queues({ name, search }: { name: string; search: JudgeAddress }) {
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { name: _, by: __, ...filter } = search
  const { query, lastHours } = toView(filter)
  const open = (view: RunView) => {
    const { columns: _, ...runSearch } = toSearch(view, Date.now())
    const judged = view.query.unjudged
    void navigate({ to: '.', search: { ...runSearch, ...(judged !== undefined && { name: judged }) } })
  }
  return (
    <ViewMenu
      place={place}
      kind={{
        label: 'Queues',
        noun: 'queue',
        save: 'Give these runs to a person',
        empty: 'No queue yet. Choose runs with the filters, and say who is to judge them.',
        hint: 'What is judged, and by whom. Everyone here sees the queue; each person judges it on their own.',
        name: `${name}: `,
        has: isQueue,
      }}
      view={{ query: { ...query, unjudged: name }, ...(lastHours !== undefined && { lastHours }) }}
      onOpen={open}
    />
  )
}

const NO_PROBLEMS: never[] = []

/** The steps of the run, shown as a conversation. */
function Judged({ environmentId, run }: { environmentId: string; run: OperatorRun }) {
  const params = route.useParams()
  const { steps, isPending, error, query } = useSteps(environmentId, run.runId, false)
  const { runId, title, agent, startedAt } = run
  const stepBars = useMemo(() => barsOf(steps), [steps])
  return (
    <section aria-label="Run" className="flex min-h-0 flex-1 flex-col">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-3 py-2 text-sm sm:px-5">
        <Link
          to="/w/$workspace/$environment/runs/$runId"
          params={{ ...params, runId }}
          title={title ?? runId}
          className="link min-w-0 truncate font-medium max-sm:w-full"
        >
          <ShownText text={runName(run)} />
        </Link>
        {title !== null && (
          <bdi className="max-w-40 min-w-0 truncate font-mono text-xs text-soft" title={runId}>
            {runId}
          </bdi>
        )}
        <RunStatusChip run={run} />
        <bdi className="text-soft">{agent.name}</bdi>
        <span className="text-soft">
          <Time at={startedAt} />
        </span>
      </div>
      {error ? (
        <Trouble error={error} retry={() => void query.refetch()} />
      ) : isPending ? (
        <PagePending />
      ) : (
        <TranscriptView
          environmentId={environmentId}
          runId={runId}
          steps={steps}
          problems={NO_PROBLEMS}
          bars={stepBars}
          start={extentOf(stepBars).from}
          selected={null}
          onSelect={() => undefined}
        />
      )}
    </section>
  )
}
