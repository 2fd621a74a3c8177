import { barsOf, extentOf } from '@tacho/contract/runs/timeline.ts'
import { neverEnded } from '@tacho/contract/runs/run-activity.ts'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useCallback, useDeferredValue, useMemo, useState } from 'react'
import { JudgeDialog } from '../scores/judge-dialog.tsx'
import { RunScores } from '../scores/run-scores.tsx'
import { useKeys } from '../../web/ui/keys.ts'
import { turnRawMessages } from '../../web/text/message-text.tsx'
import { Empty, isBlocking, PagePending, Trouble } from '../../web/ui/states.tsx'
import { useTitle } from '../../web/ui/browser.ts'
import { PrintedSteps } from './printed-steps.tsx'
import { CompareDialog } from '../compare/compare-dialog.tsx'
import { Inspector } from './inspector.tsx'
import { failedAt, useProblems } from './problems.ts'
import { ProblemChips } from './problem-chips.tsx'
import { RunHeader } from './run-header.tsx'
import { runQuery, useSteps, type Step } from '../queries.ts'
import { FIND_ID, RunToolbar } from './run-toolbar.tsx'
import { Scrubber, zoomed, type Range } from './scrubber.tsx'
import { covers, foldableAt, type Row, useTree } from './tree.ts'
import { TableView } from './table-view.tsx'
import { TimelineView } from './timeline-view.tsx'
import { TranscriptView } from './transcript-view.tsx'
import type { RunAddress } from '../address.ts'
import { useFound } from './step-search.ts'

const route = getRouteApi('/w/$workspace/$environment/runs/$runId')

type Change = { [Name in keyof RunAddress]?: RunAddress[Name] | undefined }

export function RunPage() {
  const { runId } = route.useParams()
  const address = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const [isComparing, setComparing] = useState(false)
  const [isJudging, setJudging] = useState(false)
  const environmentId = place.environment.id
  const run = useQuery(runQuery(environmentId, runId))
  const { steps, isPending, isComplete, error, query } = useSteps(environmentId, runId, run.data?.status === 'RUNNING')
  const lost = useNeverEnded(run.data, steps, isComplete)
  const { problems, areRead } = useProblems(environmentId, run.data, steps, lost)
  const question = run.data?.title ?? null
  const stepBars = useMemo(() => barsOf(steps), [steps])
  // Leave out scores, which come later and are not the run's own steps.
  const extent = useMemo(
    () => extentOf(stepBars.filter((_, index) => steps[index]?.eventType !== 'SCORE')),
    [stepBars, steps],
  )
  const ofRun = useMemo(() => ({ environmentId, runId, areProblemsRead: areRead }), [environmentId, runId, areRead])
  useTitle(question ?? runId)

  const { view = 'timeline', step: chosen, find = '', sort } = address
  const [zoom, setZoom] = useState<Range | null>(null)
  const whole = useMemo(() => ({ from: extent.from, to: extent.from + extent.span }), [extent])
  const search = useFound(
    { environmentId, runId, steps, isRunning: run.data?.status === 'RUNNING' },
    useDeferredValue(find),
  )
  const foundSteps = search.steps
  const shown = useMemo(() => {
    if (zoom === null) return foundSteps
    return foundSteps.filter(({ index }) => {
      const bar = stepBars[index]
      return bar && bar.to >= zoom.from && bar.from <= zoom.to
    })
  }, [foundSteps, stepBars, zoom])
  const { tree, rows, turn } = useTree(shown, stepBars, problems, chosen, find !== '')
  const order = useMemo(() => (view === 'timeline' ? rows.map(({ step }) => step) : shown), [view, rows, shown])
  const selected = useMemo(() => steps.find(({ eventId }) => eventId === chosen) ?? null, [steps, chosen])
  const set = useCallback(
    (change: Change) => {
      const changed = (search: RunAddress) =>
        Object.fromEntries(Object.entries({ ...search, ...change }).filter(([, value]) => (value ?? '') !== ''))
      void navigate({ to: '.', search: changed, replace: true, resetScroll: false })
    },
    [navigate],
  )
  const callBefore = useMemo(
    () => (selected?.eventType === 'LLM_CALL' ? steps.findLast((step) => isCallBefore(step, selected)) : undefined),
    [steps, selected],
  )
  const select = useCallback(
    (step: Step | null | undefined) => step !== undefined && set({ step: step?.eventId }),
    [set],
  )

  const failure = run.data?.failure ?? null
  const failed = useMemo(() => failure && failedAt(failure, problems), [failure, problems])
  const showFailure = () => set({ step: failed?.step.eventId ?? failure?.eventId })

  const onTurn = useCallback(
    (row: Row) => {
      // If this would fold the open step away, open the step of the row instead.
      if (chosen !== undefined && covers(tree, row, chosen)) select(row.step)
      turn(row)
    },
    [tree, chosen, select, turn],
  )
  const zoomBy = (times: number) => {
    const range = zoom ?? whole
    const at = selected ? (stepBars[selected.index]?.from ?? selected.time) : (range.from + range.to) / 2
    setZoom(zoomed(range, whole, Math.min(Math.max(at, range.from), range.to), times))
  }

  useKeys({
    j: () => select(neighbour(order, selected, 1)),
    k: () => select(neighbour(order, selected, -1)),
    '+': { name: 'Zoom in', act: () => zoomBy(0.5) },
    '-': { name: 'Zoom out', act: () => zoomBy(2) },
    '0': { name: 'Show the whole run', act: () => setZoom(null) },
    o: {
      name: 'Fold or open the branch',
      act: () => {
        const branch = selected && foldableAt(tree, selected)
        const row = rows.find(({ step }) => step === branch?.step)
        if (row) onTurn(row)
      },
    },
    ']': () => select(problems.find(({ step }) => step && step.index > (selected?.index ?? -1))?.step ?? undefined),
    '[': () =>
      select(problems.findLast(({ step }) => step && step.index < (selected?.index ?? Infinity))?.step ?? undefined),
    t: { name: 'Show as timeline', act: () => set({ view: 'timeline' }) },
    c: { name: 'Show as transcript', act: () => set({ view: 'transcript' }) },
    b: { name: 'Show as table', act: () => set({ view: 'table' }) },
    e: { name: 'Show the error that ended it', act: showFailure },
    x: { name: 'Compare with another run', act: () => setComparing(true) },
    ...(place.may('approver') && { m: { name: 'Judge this run', act: () => setJudging(true) } }),
    r: { name: 'Messages as plain text or as Markdown', act: turnRawMessages },
    y: { name: 'Copy link', act: () => void navigator.clipboard?.writeText(window.location.href) },
    '/': () => document.getElementById(FIND_ID)?.focus(),
    Escape: () => select(null),
  })

  const trouble = run.error ?? error
  if (isBlocking(trouble, run.data))
    return <Trouble error={trouble} retry={() => void Promise.all([run.refetch(), query.refetch()])} />
  if (!run.data || isPending) return <PagePending />
  const list = { steps: shown, problems, selected, onSelect: select }
  return (
    <div className="full-height flex flex-col print:h-auto print:overflow-visible">
      <div className="border-b border-line px-3 pt-3 sm:px-5">
        <RunHeader
          run={run.data}
          question={question}
          failed={failed}
          blocked={problems.findLast(({ is }) => is === 'BLOCKED') ?? null}
          onCompare={() => setComparing(true)}
          onJudge={() => setJudging(true)}
          onFailure={showFailure}
        />
        <ProblemChips
          environmentId={environmentId}
          runId={runId}
          problems={problems}
          selected={selected}
          onSelect={(eventId) => set({ step: eventId })}
        />
        <RunScores place={place} run={run.data} onStep={(step) => set({ step })} />
        <Scrubber
          steps={steps}
          whole={whole}
          problems={problems}
          selected={selected}
          zoom={zoom}
          onSelect={select}
          onZoom={setZoom}
        />
        <RunToolbar
          view={view}
          find={find}
          shown={shown.length}
          total={steps.length}
          search={search}
          onStep={(by) => select(neighbour(order, selected, by))}
          isComplete={isComplete}
          zoomedTo={zoom && { from: zoom.from - whole.from, to: zoom.to - whole.from }}
          onWhole={() => setZoom(null)}
          onChange={set}
        />
      </div>
      <PrintedSteps runId={runId} steps={order} total={steps.length} problems={problems} />
      <div className="flex min-h-0 flex-1 print:hidden">
        <div className="@container flex min-w-0 flex-1 flex-col">
          {shown.length === 0 ? (
            <Empty title={search.isSearching ? 'No step matches so far' : 'No step matches'}>
              Search looks at labels, types and payloads of all steps, but not at the names of fields
              {zoom === null ? '.' : ', and lists those of the time that is shown.'}
            </Empty>
          ) : view === 'timeline' ? (
            <TimelineView
              rows={rows}
              onTurn={onTurn}
              bars={stepBars}
              start={whole.from}
              range={zoom ?? whole}
              problems={problems}
              ofRun={ofRun}
              snippets={search.snippets}
              selected={selected}
              onSelect={select}
            />
          ) : view === 'transcript' ? (
            <TranscriptView {...list} environmentId={environmentId} runId={runId} bars={stepBars} start={whole.from} />
          ) : (
            <TableView {...list} ofRun={ofRun} sort={sort} onSort={(by) => set({ sort: by })} />
          )}
        </div>
        {selected && (
          <Inspector
            environmentId={environmentId}
            runId={runId}
            step={selected}
            bar={stepBars[selected.index] ?? { from: selected.time, to: selected.time, depth: 0 }}
            start={whole.from}
            isNeverEnded={lost.has(selected.eventId)}
            callBefore={callBefore}
            onClose={() => select(null)}
          />
        )}
      </div>
      {isJudging && (
        <JudgeDialog
          environmentId={environmentId}
          runId={run.data.runId}
          step={selected}
          onClose={() => setJudging(false)}
        />
      )}
      {isComparing && (
        <CompareDialog
          runId={run.data.runId}
          agent={run.data.agentId ?? run.data.agent.name}
          onClose={() => setComparing(false)}
        />
      )}
    </div>
  )
}

/** Tools that never ended. Known once all steps have arrived, because the end of a call may be on a later page. */
function useNeverEnded(run: OperatorRun | undefined, steps: readonly Step[], isComplete: boolean): ReadonlySet<string> {
  return useMemo(() => (run && isComplete ? neverEnded(steps, run, Date.now()) : NONE), [run, steps, isComplete])
}

const NONE: ReadonlySet<string> = new Set()

const isCallBefore = ({ eventType, parentSpanId, index }: Step, call: Step): boolean =>
  index < call.index && eventType === 'LLM_CALL' && parentSpanId === call.parentSpanId

/** The step `by` positions further in the list; the first one if none is selected. */
function neighbour(steps: readonly Step[], selected: Step | null, by: 1 | -1): Step | undefined {
  if (selected === null) return steps[0]
  const at = steps.indexOf(selected)
  if (at !== -1) return steps[at + by]
  return by === 1
    ? steps.find(({ index }) => index > selected.index)
    : steps.findLast(({ index }) => index < selected.index)
}
