import { useState } from 'react'
import { EventType } from '../event-type.tsx'
import type { Step } from '../queries.ts'
import { BothContents } from './both-contents.tsx'
import type { Pair } from './use-alignment.ts'
import { useWords, Words } from './both-words.tsx'
import type { Word } from './words.ts'

interface PairRowProps {
  pair: Pair
  /** Ids of the two runs. */
  a: string
  b: string
  /** What differs, in words. */
  mark: string
}

/** One step of each run side by side; on a phone, one below the other. It opens to all that was recorded. */
export function PairRow({ pair, a, b, mark }: PairRowProps) {
  const [isOpen, setOpen] = useState(false)
  const words = useWords(pair.a?.label ?? null, pair.b?.label ?? null)
  const isAlone = pair.a === null || pair.b === null
  return (
    <li className="border-b border-line text-sm">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="grid min-h-9 w-full grid-cols-1 gap-x-4 gap-y-1 px-2 py-1.5 text-left hover:bg-hover md:grid-cols-2"
      >
        <Side step={pair.a} words={words?.a} side="a" />
        {/* A phone shows once what both say. */}
        <span className={`min-w-0 ${pair.a?.label === pair.b?.label ? 'max-md:hidden' : ''}`}>
          <Side step={pair.b} words={words?.b} side="b" />
        </span>
        {mark !== '' && (
          <span className={`tabular pl-20 text-xs md:col-span-2 ${isAlone ? 'font-medium text-amber' : 'text-soft'}`}>
            {mark}
          </span>
        )}
      </button>
      {isOpen && <BothContents pair={pair} a={a} b={b} />}
    </li>
  )
}

function Side({ step, words, side }: { step: Step | null; words: readonly Word[] | undefined; side: 'a' | 'b' }) {
  if (step === null) return <span className="hidden h-full rounded bg-side md:block" />
  return (
    <span className="flex min-w-0 gap-2">
      <span className="w-18 shrink-0">
        <EventType type={step.eventType} />
      </span>
      <bdi className="line-clamp-2 min-w-0 flex-1 [overflow-wrap:anywhere]" title={step.label}>
        <Words text={step.label} words={words} side={side} />
      </bdi>
    </span>
  )
}
