import type { StalledRule } from '@tacho/contract/operator/stalled-rule.ts'
import type { RunPlace } from './runs.ts'

export type StalledRuleRow = Pick<StalledRule, 'idleMinutes' | 'closeAs'>

export const DEFAULT_STALLED_RULE: StalledRuleRow = { idleMinutes: 15, closeAs: 'FAILED' }
/** Longer than nearly every model call and tool: many environments never choose a rule. */
const DEFAULT_CLOSE_MINUTES = 60

/** Null: the environment has no rule of its own. */
export function closeAfterMinutes(rule: StalledRuleRow | null): number {
  return rule?.idleMinutes ?? DEFAULT_CLOSE_MINUTES
}

export interface ClosedRuns {
  isOn: boolean
  /** External ids. The engine drops these runs from its caches. */
  changedRunIds: string[]
  /** Where the next call continues; null: all were examined. */
  after: RunPlace | null
  /** No run can be due before; null: some may be due soon. */
  nextAt: number | null
}
