import { stepName } from '../page/notes.ts'
import { ProblemMark } from '../page/problem-mark.tsx'
import type { Problem } from '../page/problems.ts'
import { useState, useMemo } from 'react'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { EventType } from '../event-type.tsx'
import { type Step, eventQuery } from '../queries.ts'
import type { Pair } from './use-alignment.ts'
import { type Word, COMPARED_CHARS, wordsOf, type BothWords, partsOf, type ComparedText } from './compared-texts.ts'
import type { Place } from '../../web/queries.ts'
import { LongText } from '../../web/text/long-text.tsx'
import { Refused, Skeleton } from '../../web/ui/states.tsx'
import { ShownText } from '../../web/text/shown-text.tsx'

interface PairRowProps {
  pair: Pair
  /** Ids of the two runs. */
  a: string
  b: string
  /** The differences, in words. */
  mark: string
  /** The problems at the step of each run. */
  problems: { a: Problem | undefined; b: Problem | undefined }
  /** Whether the runs were asked the same question. If not, differing words mean nothing, so none is marked. */
  isSameQuestion: boolean
}

/**
 * A step of each run, side by side; on a phone, one below the other. It opens to show the complete recorded content.
 */
export function PairRow({ pair, a, b, mark, problems, isSameQuestion }: PairRowProps) {
  const [isOpen, setOpen] = useState(false)
  const words = useWords((isSameQuestion && pair.a && stepName(pair.a)) || null, pair.b && stepName(pair.b))
  const isAlone = pair.a === null || pair.b === null
  return (
    <li className="border-b border-line text-sm">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="grid min-h-9 w-full grid-cols-1 gap-x-4 gap-y-1 px-2 py-1.5 text-left hover:bg-hover md:grid-cols-2"
      >
        <Side step={pair.a} words={words?.a} problem={problems.a} side="a" />
        {/* On a phone, show an equal label only once. */}
        <span className={`min-w-0 ${pair.a?.label === pair.b?.label && !problems.b ? 'max-md:hidden' : ''}`}>
          <Side step={pair.b} words={words?.b} problem={problems.b} side="b" />
        </span>
        {mark !== '' && (
          <span className={`tabular pl-20 text-xs md:col-span-2 ${isAlone ? 'font-medium text-amber' : 'text-soft'}`}>
            {mark}
          </span>
        )}
      </button>
      {isOpen && <BothContents pair={pair} a={a} b={b} isSameQuestion={isSameQuestion} />}
    </li>
  )
}

interface SideProps {
  step: Step | null
  words: readonly Word[] | undefined
  problem: Problem | undefined
  side: 'a' | 'b'
}

function Side({ step, words, problem, side }: SideProps) {
  if (step === null) return <span className="hidden h-full rounded bg-side md:block" />
  return (
    <span className="flex min-w-0 gap-2 max-md:flex-wrap max-md:gap-y-0.5">
      <span className="w-18 shrink-0">
        <EventType type={step.eventType} />
      </span>
      <bdi className="line-clamp-2 min-w-0 flex-1 [overflow-wrap:anywhere]" title={step.label}>
        <Words text={stepName(step)} words={words} look={NEUTRAL.has(step.eventType) ? 'question' : side} />
      </bdi>
      {/* On a phone below the label, in full. */}
      <ProblemMark
        problem={problem}
        className="wrap-anywhere max-md:basis-full max-md:pl-20 md:max-w-[60%] md:min-w-16 md:shrink-4 md:truncate"
      />
    </span>
  )
}

const route = getRouteApi('/w/$workspace/$environment/compare')

interface BothContentsProps {
  pair: Pair
  /** Ids of the two runs. */
  a: string
  b: string
  isSameQuestion: boolean
}

/** The recorded content of a step in each run, part by part, with differing words marked. */
function BothContents({ pair, a, b, isSameQuestion }: BothContentsProps) {
  const { place, otherPlace } = route.useRouteContext()
  const [left, right] = [useParts(place, a, pair.a), useParts(otherPlace, b, pair.b)]
  const error = left.error ?? right.error
  if (error) return <Refused error={error} className="p-2" />
  if (!left.parts || !right.parts) return <Skeleton className="m-2 h-16" />
  const names = [...new Set([...left.parts, ...right.parts].map(({ name }) => name))]
  const named = (parts: readonly ComparedText[], name: string) =>
    parts.find((comparedPart) => comparedPart.name === name) ?? null
  return (
    <div className="flex flex-col gap-3 bg-side px-2 py-3">
      {names.map((name) => (
        <BothParts
          key={name}
          a={named(left.parts ?? [], name)}
          b={named(right.parts ?? [], name)}
          name={name}
          isQuestion={isQuestion(pair)}
          isSameQuestion={isSameQuestion}
        />
      ))}
      <p className="flex flex-wrap gap-x-4 text-sm">
        {pair.a && <StepLink place={place} runId={a} step={pair.a} text="Open in the first run" />}
        {pair.b && <StepLink place={otherPlace} runId={b} step={pair.b} text="Open in the second run" />}
      </p>
    </div>
  )
}

/**
 * Event types whose texts have neutral colours. Red and green mark the first and the second run, so a failed outcome of the
 * second run would be green.
 */
const NEUTRAL = new Set(['USER_INPUT', 'SESSION_OUTCOME'])

const isQuestion = ({ a, b }: Pair): boolean => NEUTRAL.has((a ?? b)?.eventType ?? '')

const NONE: ComparedText[] = []

function useParts(
  place: Place,
  runId: string,
  step: Step | null,
): { parts: ComparedText[] | undefined; error: Error | null } {
  const { data, error } = useQuery({
    ...eventQuery(place.environment.id, runId, step?.eventId ?? ''),
    enabled: step !== null,
  })
  return { parts: step === null ? NONE : data && partsOf(data.event), error }
}

interface BothPartsProps {
  name: string
  a: ComparedText | null
  b: ComparedText | null
  isQuestion: boolean
  isSameQuestion: boolean
}

function BothParts({ name, a, b, isQuestion: isAsked, isSameQuestion }: BothPartsProps) {
  const words = useWords((isSameQuestion && a?.text) || null, b?.text ?? null)
  const isSame = a !== null && b !== null && a.text === b.text
  return (
    <section aria-label={name}>
      <h2 className="mb-0.5 text-xs font-medium text-soft">
        {name}
        {isSame
          ? ', the same in both'
          : isSameQuestion && a && b && !words && ', too different to compare word by word'}
      </h2>
      {isSame ? (
        <Box part={a} />
      ) : (
        <div className="grid grid-cols-1 gap-2 md:grid-cols-2">
          {a ? <Box part={a} words={words?.a} side="a" isQuestion={isAsked} /> : <Absent />}
          {b ? <Box part={b} words={words?.b} side="b" isQuestion={isAsked} /> : <Absent />}
        </div>
      )}
    </section>
  )
}

interface BoxProps {
  part: ComparedText
  words?: readonly Word[] | undefined
  side?: 'a' | 'b'
  isQuestion?: boolean
}

function Box({ part: { text, isCode }, words, side = 'a', isQuestion: isAsked = false }: BoxProps) {
  return (
    <div
      tabIndex={0}
      role="group"
      aria-label={side === 'a' ? 'In the first run' : 'In the second run'}
      className="max-h-96 min-w-0 overflow-auto rounded-lg border border-line bg-page px-3 py-2 [overflow-wrap:anywhere]"
    >
      {words ? (
        <bdi className={`block whitespace-pre-wrap ${isCode ? 'font-mono text-[0.8125rem]' : ''}`}>
          <Words text={text} words={words} look={isAsked ? 'question' : side} />
        </bdi>
      ) : (
        <LongText text={text} mono={isCode} />
      )}
    </div>
  )
}

function Absent() {
  return <p className="px-3 py-2 text-sm text-soft">Nothing here.</p>
}

function StepLink({ place, runId, step, text }: { place: Place; runId: string; step: Step; text: string }) {
  const params = route.useParams()
  return (
    <Link
      to="/w/$workspace/$environment/runs/$runId"
      params={{ ...params, environment: place.environment.name, runId }}
      search={{ step: step.eventId }}
      className="link"
    >
      {text}
    </Link>
  )
}

function useWords(a: string | null, b: string | null): BothWords | null {
  return useMemo(() => (a === null || b === null || a === b ? null : wordsOf(a, b)), [a, b])
}

interface BothWordsProps {
  text: string
  words: readonly Word[] | undefined
  look: keyof typeof OWN
}

/**
 * Colours of the first and the second run. A question is neutral, because a difference in the user's words is no
 * mistake of the agent.
 */
const OWN = {
  a: 'rounded-xs bg-red-wash text-red',
  b: 'rounded-xs bg-green-wash text-green',
  question: 'rounded-xs bg-hover text-ink',
}

/** A text in which the words that only it has are coloured and underlined. */
function Words({ text, words, look }: BothWordsProps) {
  if (!words) return <ShownText text={text} lineBreaks />
  const hiddenText = text.slice(COMPARED_CHARS)
  return (
    <>
      {words.map((word, index) =>
        word.isOwn ? (
          <mark key={index} className={`${OWN[look]} underline decoration-1 underline-offset-2`}>
            <ShownText text={word.text} lineBreaks />
          </mark>
        ) : (
          <ShownText key={index} text={word.text} lineBreaks />
        ),
      )}
      <ShownText text={hiddenText} lineBreaks />
    </>
  )
}
