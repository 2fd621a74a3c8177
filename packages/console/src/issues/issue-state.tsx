import type { IssueState, IssueSummary } from '@tacho/contract/issues/issue.ts'
import { Chip, type Tone } from '../web/ui/chip.tsx'

const LOOKS: Record<IssueState, { tone: Tone; word: string; sign: string }> = {
  OPEN: { tone: 'red', word: 'Open', sign: '●' },
  RESOLVED: { tone: 'green', word: 'Resolved', sign: '✓' },
  IGNORED: { tone: 'plain', word: 'Ignored', sign: '–' },
}

export const stateWord = (state: IssueState): string => LOOKS[state].word

export function IssueStateChip({ state }: { state: IssueState }) {
  const { tone, word, sign } = LOOKS[state]
  return (
    <Chip tone={tone}>
      <span aria-hidden>{sign}</span>
      {word}
    </Chip>
  )
}

/** It was resolved, and came back. */
export function RegressionChip({ issue: { regressions } }: { issue: IssueSummary }) {
  if (regressions === 0) return null
  return <Chip tone="amber">↩ came back{regressions > 1 ? ` ${regressions} times` : ''}</Chip>
}
