import type { OperatorRun } from '@tacho/contract/operator/run.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { EventType } from '../runs/event-type.tsx'
import { runQuery, useSteps } from '../runs/run-queries.ts'
import { RunStatusChip } from '../runs/run-status.tsx'
import { Button } from '../ui/button.tsx'
import { Cost, costsOf, wholeCost } from '../ui/cost.tsx'
import { compact, counted, duration, money, number } from '../ui/format.ts'
import { Empty, PagePending, Trouble } from '../ui/states.tsx'
import { useTitle } from '../ui/title.ts'
import { align, ALIGNED, type Pair } from './align.ts'
import { BothContents } from './both-contents.tsx'
import { markOf, useDifferences } from './differences.ts'

const route = getRouteApi('/w/$workspace/$environment/compare')
const SHOWN = 200

export function ComparePage() {
  const { a, b } = route.useSearch()
  useTitle('Compare')
  if (a === undefined || b === undefined) {
    return <Empty title="Two runs are needed">Open a run and press x to compare it with another one.</Empty>
  }
  return <Comparison a={a} b={b} />
}

function Comparison({ a, b }: { a: string; b: string }) {
  const { place } = route.useRouteContext()
  const environmentId = place.environment.id
  const [runA, runB] = [useQuery(runQuery(environmentId, a)), useQuery(runQuery(environmentId, b))]
  const stepsA = useSteps(environmentId, a, false)
  const stepsB = useSteps(environmentId, b, false)
  const isComplete = stepsA.isComplete && stepsB.isComplete
  const pairs = useMemo(
    () => (isComplete ? align(stepsA.steps, stepsB.steps) : null),
    [isComplete, stepsA.steps, stepsB.steps],
  )
  const error = runA.error ?? runB.error ?? stepsA.error ?? stepsB.error
  if (error) return <Trouble error={error} />
  if (!runA.data || !runB.data || !isComplete) return <PagePending />
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-12 sm:px-5">
      <h1 className="pt-5 text-xl font-semibold">Compare</h1>
      <Sums a={runA.data} b={runB.data} />
      {pairs ? (
        <Pairs pairs={pairs} a={a} b={b} />
      ) : (
        <Empty title="These runs have too little in common">Their steps cannot be aligned.</Empty>
      )}
      {Math.max(stepsA.steps.length, stepsB.steps.length) > ALIGNED && (
        <p className="mt-2 text-sm text-soft">The first {number(ALIGNED)} steps of each run are compared.</p>
      )}
    </div>
  )
}

function Sums({ a, b }: { a: OperatorRun; b: OperatorRun }) {
  const params = route.useParams()
  const rows: [name: string, of: (run: OperatorRun) => number | null, format: (value: number) => string][] = [
    ['Length', lengthOf, duration],
    ['Steps', ({ eventCount }) => eventCount, number],
    ['Tokens', ({ usage }) => usage.totalTokens, compact],
    ['Cost', (run) => wholeCost(costsOf(run)), money],
  ]
  return (
    <table aria-label="Sums" className="mt-3 w-full table-fixed text-sm">
      <thead>
        <tr className="border-b border-line text-left">
          <th className="w-20 py-1.5 font-normal text-soft">Run</th>
          {[a, b].map((run, index) => (
            <th key={index} scope="col" className="max-w-0 py-1.5 pr-3 align-top font-medium">
              <span className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
                <Link
                  to="/w/$workspace/$environment/runs/$runId"
                  params={{ ...params, runId: run.runId }}
                  title={run.runId}
                  className="link max-w-full min-w-0 truncate"
                >
                  <bdi>{run.runId}</bdi>
                </Link>
                <RunStatusChip run={run} />
              </span>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, of, format]) => {
          const [left, right] = [of(a), of(b)]
          const differ = left !== right
          return (
            <tr key={name} className="border-b border-line">
              <th scope="row" className="py-1.5 text-left font-normal text-soft">
                {name}
              </th>
              <td className="py-1.5">
                {left === null ? 'running' : name === 'Cost' ? <Cost of={costsOf(a)} /> : format(left)}
              </td>
              <td className={`py-1.5 ${differ ? 'font-medium' : ''}`}>
                {right === null ? 'running' : name === 'Cost' ? <Cost of={costsOf(b)} /> : format(right)}
                {left !== null && right !== null && differ && (
                  <span className="ml-2 text-soft">
                    {right > left ? '+' : '−'}
                    {format(Math.abs(right - left))}
                  </span>
                )}
              </td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

function lengthOf({ startedAt, endedAt }: OperatorRun): number | null {
  return endedAt === null ? null : Date.parse(endedAt) - Date.parse(startedAt)
}

function Pairs({ pairs, a, b }: { pairs: readonly Pair[]; a: string; b: string }) {
  const { place } = route.useRouteContext()
  const [shown, setShown] = useState(SHOWN)
  const read = useDifferences(place.environment.id, a, b, pairs)
  const alone = pairs.filter((pair) => pair.a === null || pair.b === null).length
  return (
    <>
      <p className="mt-5 mb-1 text-sm text-soft">
        {alone === 0 ? 'The runs took the same steps.' : `${counted(alone, 'step')} in one run only.`} Open a step to
        compare what was recorded.
      </p>
      <ol aria-label="Steps">
        {pairs.slice(0, shown).map((pair, index) => (
          <PairRow key={index} pair={pair} a={a} b={b} mark={markOf(pair, read?.get(pair.a?.eventId ?? ''))} />
        ))}
      </ol>
      {shown < pairs.length && (
        <div className="flex justify-center py-4">
          <Button onClick={() => setShown(shown + SHOWN)}>Show more steps</Button>
        </div>
      )}
    </>
  )
}

function PairRow({ pair, a, b, mark }: { pair: Pair; a: string; b: string; mark: string }) {
  const [isOpen, setOpen] = useState(false)
  const step = pair.a ?? pair.b
  if (!step) return null
  const isAlone = pair.a === null || pair.b === null
  return (
    <li
      className={`border-b border-l-3 border-b-line text-sm ${isAlone ? 'border-l-amber bg-side' : 'border-l-transparent'}`}
    >
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex min-h-9 w-full items-center gap-3 px-2 py-1 text-left hover:bg-hover"
      >
        <span className="w-20 shrink-0">
          <EventType type={step.eventType} />
        </span>
        <bdi className="min-w-0 flex-1 truncate" title={step.label}>
          {step.label}
        </bdi>
        <span className={`tabular shrink-0 text-xs ${isAlone ? 'font-medium text-amber' : 'text-soft'}`}>{mark}</span>
      </button>
      {isOpen && <BothContents pair={pair} a={a} b={b} />}
    </li>
  )
}
