/** Renders states, in the same way everywhere. */
import type { ReactNode } from 'react'
import { STATES, type StateName } from '../text/state-styles.ts'
import { Chip, type Tone } from './chip.tsx'

interface Props {
  is: StateName
  /** Text shown on hover. */
  note?: string | undefined
  /** Text instead of the state's word. */
  children?: ReactNode
}

export function State({ is, note, children }: Props) {
  const [tone, sign, word] = STATES[is]
  const chip = (
    <Chip tone={tone}>
      <span aria-hidden className={is === 'RUNNING' ? 'animate-pulse' : ''}>
        {sign}
      </span>
      <span>{children ?? word}</span>
    </Chip>
  )
  if (note === undefined) return chip
  return (
    <span title={note} className="inline-flex max-w-full">
      {chip}
    </span>
  )
}

const TEXTS: Partial<Record<Tone, string>> = { green: 'text-green', red: 'text-red', amber: 'text-amber' }

/** Only the sign of a state, for places where words already name the state. */
export function StateSign({ is, note }: Omit<Props, 'children'>) {
  const [tone, sign] = STATES[is]
  return (
    <span aria-hidden title={note} className={TEXTS[tone] ?? ''}>
      {sign}
    </span>
  )
}

/** A state within a sentence: word and colour, without a background. */
export function StateText({ is, children }: Omit<Props, 'note'>) {
  const [tone, sign, word] = STATES[is]
  return (
    <span className={`font-medium ${TEXTS[tone] ?? ''}`}>
      <span aria-hidden>{sign} </span>
      {children ?? word}
    </span>
  )
}

/** Marks an item whose stored data were changed on disk. */
export const DamagedChip = ({ note }: { note: string }) => <State is="DAMAGED" note={note} />
