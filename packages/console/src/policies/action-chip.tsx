import type { PolicyVersion } from '@tacho/contract/policies/policy.ts'
import { State } from '../web/ui/state.tsx'
import { stateWord } from '../web/text/state-styles.ts'

type Action = PolicyVersion['action']

const SEVERITY_WORDS: Record<PolicyVersion['severity'], string> = {
  LOW: 'Low',
  MEDIUM: 'Medium',
  HIGH: 'High',
  CRITICAL: 'Critical',
}

export const actionWord = (action: Action): string => stateWord(action)
export const severityWord = (severity: PolicyVersion['severity']): string => SEVERITY_WORDS[severity]

export const ActionChip = ({ action }: { action: Action }) => <State is={action} />
