import { useMemo } from 'react'
import type { Problem } from './problems.ts'

/** The problem of each step, by event id. */
export function useProblemMarks(problems: readonly Problem[]): ReadonlyMap<string, Problem> {
  return useMemo(() => new Map(problems.map((problem) => [problem.step.eventId, problem])), [problems])
}

/** In the row of a step. */
export function ProblemMark({ problem }: { problem: Problem | undefined }) {
  if (problem === undefined) return null
  const isRed = problem.tone === 'red'
  return (
    <span className={`shrink-0 text-xs font-medium ${isRed ? 'text-red' : 'text-amber'}`}>
      <span aria-hidden>{isRed ? '✕ ' : '! '}</span>
      {problem.word}
    </span>
  )
}
