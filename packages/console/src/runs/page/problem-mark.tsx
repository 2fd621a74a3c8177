import { useMemo } from 'react'
import { StateText } from '../../web/ui/state.tsx'
import { ShownText } from '../../web/text/shown-text.tsx'
import { useNote, type NotesOf } from './notes.ts'
import type { Problem, Told } from './problems.ts'
import type { Step } from '../queries.ts'

/** The problem of each step, by event id. */
export function useProblemMarks(problems: readonly Problem[]): ReadonlyMap<string, Problem> {
  return useMemo(() => new Map(problems.map((problem) => [problem.eventId, problem])), [problems])
}

interface ProblemMarkProps {
  problem: Omit<Told, 'text'> | undefined
  className?: string
}

/** Marks a step that went wrong in its row, with the reason if there is room. */
export function ProblemMark({
  problem,
  className = 'max-w-[60%] min-w-16 shrink-4 truncate text-right',
}: ProblemMarkProps) {
  if (problem === undefined) return null
  const { is, word, why } = problem
  return (
    <span title={why === '' ? undefined : why} className={`text-xs ${className}`}>
      <StateText is={is}>
        {word}
        {why !== '' && (
          <span className="font-normal">
            {why.startsWith('by ') && !word.includes(' by ') ? ' ' : ': '}
            <bdi>{why}</bdi>
          </span>
        )}
      </StateText>
    </span>
  )
}

/** The note in a step's row, read when the row is visible. */
export function RowNote({ ofRun, step }: { ofRun: NotesOf; step: Step }) {
  return <StepNote note={useNote(ofRun, step)} />
}

/** The note after the label of a step: what the step asks for. */
export function StepNote({ note = '' }: { note: string | undefined }) {
  return note === '' ? null : (
    <span className="text-soft">
      {' '}
      <bdi>
        <ShownText text={note} />
      </bdi>
    </span>
  )
}
