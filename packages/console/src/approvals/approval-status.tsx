import type { ApprovalStatus } from '@tacho/contract/approvals/approval.ts'
import { Chip, type Tone } from '../web/ui/chip.tsx'

const LOOKS: Record<ApprovalStatus, { tone: Tone; word: string; sign: string }> = {
  PENDING: { tone: 'amber', word: 'Waiting', sign: '●' },
  APPROVED: { tone: 'green', word: 'Approved', sign: '✓' },
  REJECTED: { tone: 'red', word: 'Rejected', sign: '✕' },
  EXPIRED: { tone: 'plain', word: 'Expired', sign: '–' },
}

export function ApprovalStatusChip({ status }: { status: ApprovalStatus }) {
  const { tone, word, sign } = LOOKS[status]
  return (
    <Chip tone={tone}>
      <span aria-hidden>{sign}</span>
      {word}
    </Chip>
  )
}

export function approvalWord(status: ApprovalStatus): string {
  return LOOKS[status].word
}
