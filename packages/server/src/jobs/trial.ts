import { moduleUrl } from '../program/module-url.ts'
import { startCalledThread } from '../threads/called-thread.ts'
import type { AskedApproval, Trial, TrialFindings } from '../domain/policy-trial.ts'
import type { ToolCallRow } from '../storage/simulations.ts'
import type { TrialCall, TrialData } from './simulation-thread.ts'

export interface TrialThread extends Pick<Trial, 'addSteps' | 'forgetRuns'> {
  look(calls: ToolCallRow[]): Promise<AskedApproval[]>
  findings(): Promise<TrialFindings>
  close(): Promise<void>
}

const HEAP_MIB = 256

export function startTrial(policy: TrialData): TrialThread {
  const thread = startCalledThread<TrialCall, unknown>(moduleUrl('simulation-thread', import.meta.url), {
    name: 'simulation',
    workerData: policy,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
  })
  return {
    addSteps: (run, steps) => thread.tell(['addSteps', run, steps]),
    forgetRuns: (runs) => thread.tell(['forgetRuns', runs]),
    look: (calls) => thread.call(['look', calls]) as Promise<AskedApproval[]>,
    findings: () => thread.call(['findings']) as Promise<TrialFindings>,
    close: thread.close,
  }
}
