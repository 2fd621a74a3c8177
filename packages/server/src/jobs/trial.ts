import { moduleUrl } from '../program/module-url.ts'
import { startCalledThread } from '../threads/called-thread.ts'
import type { AskedApproval, TrialFindings } from '../domain/policy-trial.ts'
import type { RunStepRow, ToolCallRow } from '../storage/simulations.ts'
import type { TrialAnswer, TrialData, TrialTask } from './simulation-thread.ts'

export interface TrialThread {
  addSteps(run: string, steps: RunStepRow[]): void
  forgetRuns(runs: string[]): void
  look(calls: ToolCallRow[]): Promise<AskedApproval[]>
  findings(): Promise<TrialFindings>
  close(): Promise<void>
}

const HEAP_MIB = 256

export function startTrial(policy: TrialData): TrialThread {
  const thread = startCalledThread<TrialTask, TrialAnswer | null>(moduleUrl('simulation-thread', import.meta.url), {
    name: 'simulation',
    workerData: policy,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
  })
  return {
    addSteps: (run, steps) => thread.tell({ task: 'steps', run, steps }),
    forgetRuns: (runs) => thread.tell({ task: 'forget', runs }),
    async look(calls) {
      const answer = await thread.call({ task: 'look', calls })
      return answer && 'asked' in answer ? answer.asked : []
    },
    async findings() {
      const answer = await thread.call({ task: 'end' })
      if (answer && 'findings' in answer) return answer.findings
      throw new Error('the simulation thread answered out of order')
    },
    close: thread.close,
  }
}
