import { moduleUrl } from '../../program/module-url.ts'
import { startCalledThread } from '../../threads/called-thread.ts'
import type { AskedApproval, TrialFindings } from '../../domain/policies/policy-trial.ts'
import type { CallKind, RunStepRow, ToolCallRow } from '../../storage/policies/simulations.ts'
import type { TrialCall, TrialData } from './simulation-thread.ts'

export type TrialThread = ReturnType<typeof startTrial>

const HEAP_MIB = 256

export function startTrial(policy: TrialData) {
  const thread = startCalledThread<TrialCall, unknown>(moduleUrl('simulation-thread', import.meta.url), {
    name: 'simulation',
    workerData: policy,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
  })
  return {
    addSteps: (run: string, steps: RunStepRow[]) => thread.tell(['addSteps', run, steps]),
    forgetRuns: (runs: string[]) => thread.tell(['forgetRuns', runs]),
    look: (kind: CallKind, calls: ToolCallRow[]) => thread.call(['look', kind, calls]) as Promise<AskedApproval[]>,
    findings: () => thread.call(['findings']) as Promise<TrialFindings>,
    close: thread.close,
  }
}
