import type { StalledRule } from '@tacho/contract/runs/stalled-rule.ts'
import type { ChangedRuns } from './retention.ts'
import type { RunPlace } from '../runs/runs.ts'

export type StalledRuleRow = Pick<StalledRule, 'idleMinutes' | 'closeAs'>

export const DEFAULT_STALLED_RULE: StalledRuleRow = { idleMinutes: 15, closeAs: 'FAILED' }
/** Longer than nearly every model call and tool: many environments never choose a rule. */
const DEFAULT_CLOSE_MINUTES = 60

export function closeAfterMinutes(rule: StalledRuleRow | null): number {
  return rule?.idleMinutes ?? DEFAULT_CLOSE_MINUTES
}

export interface ClosedRuns extends ChangedRuns {
  isOn: boolean
  after: RunPlace | null
  /** No run can be due before; null: some may be due soon. */
  nextAt: number | null
}
