import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { eventQuery, type Step } from '../queries.ts'
import { LongText } from '../../web/text/long-text.tsx'
import { Refused } from '../../web/ui/refused.tsx'
import { Skeleton } from '../../web/ui/states.tsx'
import { partsOf, type Part } from './parts.ts'
import type { Pair } from './use-alignment.ts'
import { useWords, Words } from './both-words.tsx'
import type { Word } from './words.ts'

const route = getRouteApi('/w/$workspace/$environment/compare')

interface BothContentsProps {
  pair: Pair
  /** Ids of the two runs. */
  a: string
  b: string
}

/** What was recorded at one step in each run, part by part; words that differ stand out. */
export function BothContents({ pair, a, b }: BothContentsProps) {
  const [left, right] = [useParts(a, pair.a), useParts(b, pair.b)]
  const error = left.error ?? right.error
  if (error) return <Refused error={error} className="p-2" />
  if (!left.parts || !right.parts) return <Skeleton className="m-2 h-16" />
  const names = [...new Set([...left.parts, ...right.parts].map(({ name }) => name))]
  const named = (parts: readonly Part[], name: string) => parts.find((part) => part.name === name) ?? null
  return (
    <div className="flex flex-col gap-3 bg-side px-2 py-3">
      {names.map((name) => (
        <BothParts key={name} a={named(left.parts ?? [], name)} b={named(right.parts ?? [], name)} name={name} />
      ))}
      <p className="flex flex-wrap gap-x-4 text-sm">
        {pair.a && <StepLink runId={a} step={pair.a} text="Open in the first run" />}
        {pair.b && <StepLink runId={b} step={pair.b} text="Open in the second run" />}
      </p>
    </div>
  )
}

const NONE: Part[] = []

function useParts(runId: string, step: Step | null): { parts: Part[] | undefined; error: Error | null } {
  const { place } = route.useRouteContext()
  const { data, error } = useQuery({
    ...eventQuery(place.environment.id, runId, step?.eventId ?? ''),
    enabled: step !== null,
  })
  return { parts: step === null ? NONE : data && partsOf(data.event), error }
}

function BothParts({ name, a, b }: { name: string; a: Part | null; b: Part | null }) {
  const words = useWords(a?.text ?? null, b?.text ?? null)
  const isSame = a !== null && b !== null && a.text === b.text
  return (
    <section aria-label={name}>
      <h2 className="mb-0.5 text-xs font-medium text-soft">
        {name}
        {isSame ? ', the same in both' : a && b && !words && ', too different to compare word by word'}
      </h2>
      {isSame ? (
        <Box part={a} />
      ) : (
        <div className="grid grid-cols-1 gap-2 md:grid-cols-2">
          {a ? <Box part={a} words={words?.a} side="a" /> : <Absent />}
          {b ? <Box part={b} words={words?.b} side="b" /> : <Absent />}
        </div>
      )}
    </section>
  )
}

interface BoxProps {
  part: Part
  words?: readonly Word[] | undefined
  side?: 'a' | 'b'
}

function Box({ part: { text, isCode }, words, side = 'a' }: BoxProps) {
  return (
    <div
      tabIndex={0}
      role="group"
      aria-label={side === 'a' ? 'In the first run' : 'In the second run'}
      className="max-h-96 min-w-0 overflow-auto rounded-lg border border-line bg-page px-3 py-2 [overflow-wrap:anywhere]"
    >
      {words ? (
        <bdi className={`block whitespace-pre-wrap ${isCode ? 'font-mono text-[0.8125rem]' : ''}`}>
          <Words text={text} words={words} side={side} />
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

function StepLink({ runId, step, text }: { runId: string; step: Step; text: string }) {
  const params = route.useParams()
  return (
    <Link
      to="/w/$workspace/$environment/runs/$runId"
      params={{ ...params, runId }}
      search={{ step: step.eventId }}
      className="link"
    >
      {text}
    </Link>
  )
}
