/** States, drawn the same everywhere. */
import type { ReactNode } from 'react'
import { STATES, type StateName } from '../text/state-styles.ts'
import { Chip, type Tone } from './chip.tsx'

interface Props {
  is: StateName
  /** Text shown on hover. */
  note?: string | undefined
  /** Text in place of the word of the state. */
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

/** The sign of a state alone, for a place where words already name the state. */
export function StateSign({ is, note }: Omit<Props, 'children'>) {
  const [tone, sign] = STATES[is]
  return (
    <span aria-hidden title={note} className={TEXTS[tone] ?? ''}>
      {sign}
    </span>
  )
}

/** A state within a text: its word and colour, without a background. */
export function StateText({ is, children }: Omit<Props, 'note'>) {
  const [tone, sign, word] = STATES[is]
  return (
    <span className={`font-medium ${TEXTS[tone] ?? ''}`}>
      <span aria-hidden>{sign} </span>
      {children ?? word}
    </span>
  )
}

/** Marks what changed on the disk since it was written. */
export const DamagedChip = ({ note }: { note: string }) => <State is="DAMAGED" note={note} />
