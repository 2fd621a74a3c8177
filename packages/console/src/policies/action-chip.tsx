import type { PolicyVersion } from '@tacho/contract/policies/policy.ts'
import { Chip, type Tone } from '../web/ui/chip.tsx'

type Action = PolicyVersion['action']

const ACTIONS: Record<Action, { tone: Tone; word: string }> = {
  ALLOW: { tone: 'green', word: 'Allow' },
  WARN: { tone: 'amber', word: 'Warn' },
  REQUIRE_APPROVAL: { tone: 'amber', word: 'Ask a person' },
  BLOCK: { tone: 'red', word: 'Block' },
}
const SEVERITY_WORDS: Record<PolicyVersion['severity'], string> = {
  LOW: 'Low',
  MEDIUM: 'Medium',
  HIGH: 'High',
  CRITICAL: 'Critical',
}

export const actionWord = (action: Action): string => ACTIONS[action].word
export const severityWord = (severity: PolicyVersion['severity']): string => SEVERITY_WORDS[severity]

export function ActionChip({ action }: { action: Action }) {
  return <Chip tone={ACTIONS[action].tone}>{ACTIONS[action].word}</Chip>
}
