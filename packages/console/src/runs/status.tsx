import type { RunStatus } from '@tacho/contract/run.ts'
import { Chip, type Tone } from '../ui/chip.tsx'

const LOOKS: Record<RunStatus, { tone: Tone; word: string; sign: string }> = {
  RUNNING: { tone: 'accent', word: 'Running', sign: '●' },
  COMPLETED: { tone: 'green', word: 'Completed', sign: '✓' },
  FAILED: { tone: 'red', word: 'Failed', sign: '✕' },
  CANCELLED: { tone: 'plain', word: 'Cancelled', sign: '–' },
}

export function Status({ status }: { status: RunStatus }) {
  const { tone, word, sign } = LOOKS[status]
  return (
    <Chip tone={tone}>
      <span aria-hidden className={status === 'RUNNING' ? 'animate-pulse' : ''}>
        {sign}
      </span>
      {word}
    </Chip>
  )
}

export function statusWord(status: RunStatus): string {
  return LOOKS[status].word
}
