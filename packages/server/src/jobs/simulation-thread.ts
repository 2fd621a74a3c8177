/** Parses payloads and evaluates conditions, so that no request waits for that. */
import { workerData } from 'node:worker_threads'
import { compileCondition } from '@tacho/policy/compile.ts'
import {
  createTrial,
  type AskedApproval,
  type Trial,
  type TrialFindings,
  type TrialPolicy,
} from '../domain/policy-trial.ts'
import { answerCalls } from '../threads/called-thread.ts'
import type { RunStepRow, ToolCallRow } from '../storage/simulations.ts'

export type TrialTask =
  | { task: 'steps'; run: string; steps: RunStepRow[] }
  | { task: 'forget'; runs: string[] }
  | { task: 'look'; calls: ToolCallRow[] }
  | { task: 'end' }

export type TrialAnswer = { asked: AskedApproval[] } | { findings: TrialFindings }

export type TrialData = TrialPolicy & { condition: string }

function start({ condition: source, ...policy }: TrialData): Trial {
  const compiled = compileCondition(source)
  if (!compiled.ok) throw new Error(compiled.faults[0]?.message ?? 'the condition does not compile')
  return createTrial(compiled.condition, policy)
}

const trial = start(workerData as TrialData)
answerCalls(perform)

function perform(task: TrialTask): TrialAnswer | null {
  switch (task.task) {
    case 'steps':
      trial.addSteps(task.run, task.steps)
      return null
    case 'forget':
      trial.forgetRuns(task.runs)
      return null
    case 'look':
      return { asked: trial.look(task.calls) }
    case 'end':
      return { findings: trial.findings() }
  }
}
