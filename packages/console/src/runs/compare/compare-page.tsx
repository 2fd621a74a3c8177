import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { LEAST_QUESTION, questionLikeness } from '../page/alike-runs.ts'
import { useProblemMarks } from '../page/problem-mark.tsx'
import { useProblems } from '../page/problems.ts'
import { runQuery, useSteps } from '../queries.ts'
import { Button } from '../../web/ui/button.tsx'
import { counted, number, runName } from '../../web/text/format.ts'
import { PagePending, Trouble } from '../../web/ui/states.tsx'
import { useTitle } from '../../web/ui/browser.ts'
import { ALIGNED } from './align.ts'
import { markOf, useDifferences, usePolicyVersions } from './differences.ts'
import { aloneText, partingText } from './parting.ts'
import { PairRow } from './pair-row.tsx'
import { Sums } from './compared-figures.tsx'
import { RunChoice } from './run-choice.tsx'
import { useAlignment, type Pair } from './use-alignment.ts'

const route = getRouteApi('/w/$workspace/$environment/compare')
const SHOWN = 200
/** No lost tools: tools that never ended are marked on the page of a run only. */
const NONE_LOST: ReadonlySet<string> = new Set()

export function ComparePage() {
  const { a, b, bIn } = route.useSearch()
  useTitle('Compare')
  // If the address does not name both runs, ask for them.
  if (a === undefined || b === undefined) return <Choose key={a ?? b} a={a} b={b} bIn={bIn} />
  return <Comparison key={`${a}\n${b}\n${bIn}`} a={a} b={b} />
}

/** Asks for the runs, one after the other. The second one may be in another environment. */
function Choose({ a, b, bIn }: Record<'a' | 'b' | 'bIn', string | undefined>) {
  const { place, otherPlace } = route.useRouteContext()
  const navigate = useNavigate()
  const [next, setNext] = useState<string | null>(null)
  const chosen = a ?? b
  const [chosenIn, nextIn] = a === undefined ? [otherPlace, place] : [place, otherPlace]
  const first = useQuery({ ...runQuery(chosenIn.environment.id, chosen ?? ''), enabled: chosen !== undefined })
  return (
    <form
      className="mx-auto w-full max-w-xl px-3 pb-10 sm:px-5"
      onSubmit={(event) => {
        event.preventDefault()
        if (next === null) return
        const both = a === undefined ? { a: next, ...(b !== undefined && { b }) } : { a, b: next }
        void navigate({ to: '.', search: { ...both, ...(bIn !== undefined && { bIn }) } })
      }}
    >
      <h1 className="pt-5 text-xl font-semibold">Compare</h1>
      <p className="mt-1 mb-4 text-sm [overflow-wrap:anywhere]">
        {chosen === undefined ? (
          'Choose the first of two runs.'
        ) : (
          <>
            Compare <bdi className="font-medium">{first.data ? runName(first.data) : chosen}</bdi> with:
          </>
        )}
      </p>
      <RunChoice
        environmentId={nextIn.environment.id}
        agent={first.data ? (first.data.agentId ?? first.data.agent.name) : undefined}
        except={chosenIn.environment.id === nextIn.environment.id ? chosen : undefined}
        onChange={setNext}
      />
      <Button look="accent" type="submit" className="mt-3" disabled={next === null}>
        {chosen === undefined ? 'Next' : 'Compare'}
      </Button>
    </form>
  )
}

function Comparison({ a, b }: { a: string; b: string }) {
  const { place, otherPlace } = route.useRouteContext()
  const [idA, idB] = [place.environment.id, otherPlace.environment.id]
  const [runA, runB] = [useQuery(runQuery(idA, a)), useQuery(runQuery(idB, b))]
  const stepsA = useSteps(idA, a, false)
  const stepsB = useSteps(idB, b, false)
  const areComplete = stepsA.isComplete && stepsB.isComplete
  const policiesA = usePolicyVersions({ environmentId: idA, runId: a }, stepsA.steps, areComplete)
  const policiesB = usePolicyVersions({ environmentId: idB, runId: b }, stepsB.steps, areComplete)
  const problemsA = useProblems(idA, runA.data, stepsA.steps, NONE_LOST)
  const problemsB = useProblems(idB, runB.data, stepsB.steps, NONE_LOST)
  const marksA = useProblemMarks(problemsA.problems)
  const marksB = useProblemMarks(problemsB.problems)
  const areProblemsRead = problemsA.areRead && problemsB.areRead
  const alignedSteps = useAlignment(stepsA.steps, stepsB.steps, areComplete)
  const error =
    runA.error ?? runB.error ?? stepsA.error ?? stepsB.error ?? ('error' in alignedSteps ? alignedSteps.error : null)
  if (error) return <Trouble error={error} />
  if (!runA.data || !runB.data) return <PagePending />
  const read = stepsA.steps.length + stepsB.steps.length
  const isSameQuestion = questionLikeness(runA.data.title, runB.data.title) >= LEAST_QUESTION
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-12 sm:px-5">
      <h1 className="pt-5 text-xl font-semibold">Compare</h1>
      <p className="mt-1 min-h-6">
        <bdi>
          {'pairs' in alignedSteps && areProblemsRead && partingText(alignedSteps.pairs, { a: marksA, b: marksB })}
        </bdi>
      </p>
      <Sums a={runA.data} b={runB.data} policies={policiesA && policiesB && [policiesA, policiesB]} />
      {!isSameQuestion && (
        <p className="mt-3 text-sm text-soft">
          The runs were asked different things, so other words are no difference that counts: they are not marked.
        </p>
      )}
      {'pairs' in alignedSteps ? (
        <>
          {alignedSteps.isRough && (
            <p className="mt-5 text-sm text-amber">
              These runs have little in common: some of their steps stand beside each other by their position alone.
            </p>
          )}
          <Pairs
            pairs={alignedSteps.pairs}
            a={a}
            b={b}
            marks={{ a: marksA, b: marksB }}
            isSameQuestion={isSameQuestion}
          />
        </>
      ) : areComplete ? (
        <Progress name="Aligning the steps" part={'part' in alignedSteps ? alignedSteps.part : 0} />
      ) : (
        <Progress name="Reading the steps" part={read / Math.max(1, runA.data.eventCount + runB.data.eventCount)} />
      )}
      {Math.max(stepsA.steps.length, stepsB.steps.length) > ALIGNED && (
        <p className="mt-2 text-sm text-soft">The first {number(ALIGNED)} steps of each run are compared.</p>
      )}
    </div>
  )
}

function Progress({ name, part }: { name: string; part: number }) {
  return (
    <label className="mt-8 flex flex-col gap-1 text-sm text-soft">
      {name}
      <progress value={Math.min(1, part)} className="h-2 w-full max-w-md accent-accent-fill" />
    </label>
  )
}

interface PairsProps {
  pairs: readonly Pair[]
  a: string
  b: string
  /** The problems of each run, by event id. */
  marks: Record<'a' | 'b', ReturnType<typeof useProblemMarks>>
  isSameQuestion: boolean
}

function Pairs({ pairs, a, b, marks, isSameQuestion }: PairsProps) {
  const { place, otherPlace } = route.useRouteContext()
  const [shown, setShown] = useState(SHOWN)
  const [isBrief, setBrief] = useState(false)
  const read = useDifferences(
    { environmentId: place.environment.id, runId: a },
    { environmentId: otherPlace.environment.id, runId: b },
    pairs,
  )
  const marked = pairs.map((pair, index) => ({ pair, index, mark: markOf(pair, read?.get(pair.a?.eventId ?? '')) }))
  const listed = isBrief ? marked.filter(({ pair, mark }) => mark !== '' || pair.a?.label !== pair.b?.label) : marked
  const differ = marked.filter(({ mark }) => mark.startsWith('≠')).length
  return (
    <>
      <div className="mt-5 mb-1 flex flex-wrap items-center justify-between gap-x-4 gap-y-1 text-sm text-soft">
        <p>
          {aloneText(pairs)}{' '}
          {differ > 0 &&
            `${counted(differ, 'step')} of both ${differ === 1 ? 'differs' : 'differ'} in what was recorded.`}{' '}
          Open a step to compare.
        </p>
        <label className="flex items-center gap-1.5">
          <input type="checkbox" checked={isBrief} onChange={() => setBrief(!isBrief)} className="accent-accent-fill" />
          Only differences
        </label>
      </div>
      <ol aria-label="Steps" className="border-t border-line">
        {listed.slice(0, shown).map(({ pair, index, mark }) => (
          <PairRow
            key={index}
            pair={pair}
            a={a}
            b={b}
            mark={mark}
            problems={{ a: marks.a.get(pair.a?.eventId ?? ''), b: marks.b.get(pair.b?.eventId ?? '') }}
            isSameQuestion={isSameQuestion}
          />
        ))}
      </ol>
      {shown < listed.length && (
        <div className="flex justify-center py-4">
          <Button onClick={() => setShown(shown + SHOWN)}>Show more steps</Button>
        </div>
      )}
    </>
  )
}
