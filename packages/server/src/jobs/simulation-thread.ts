/** The worker thread of simulate.ts. It parses payloads and evaluates conditions, so no request waits for that. */
import { parentPort, workerData } from 'node:worker_threads'
import { compileCondition } from '@tacho/policy/compile.ts'
import {
  createTrial,
  type AskedApproval,
  type Trial,
  type TrialFindings,
  type TrialPolicy,
} from '../domain/policy-trial.ts'
import type { RunStepRow, ToolCallRow } from '../storage/simulations.ts'

export type TrialTask =
  | { task: 'steps'; run: string; steps: RunStepRow[] }
  | { task: 'forget'; runs: string[] }
  | { task: 'look'; calls: ToolCallRow[] }
  | { task: 'end' }

/** Answers to `look` and `end`, in order. */
export type TrialAnswer = { asked: AskedApproval[] } | { findings: TrialFindings }

export type TrialData = TrialPolicy & { condition: string }

function start({ condition: source, ...policy }: TrialData): Trial {
  const compiled = compileCondition(source)
  if (!compiled.ok) throw new Error(compiled.faults[0]?.message ?? 'the condition does not compile')
  return createTrial(compiled.condition, policy)
}

const trial = start(workerData as TrialData)
const answer = (message: TrialAnswer) => parentPort?.postMessage(message)

parentPort?.on('message', (message: TrialTask) => {
  if (message.task === 'steps') trial.addSteps(message.run, message.steps)
  else if (message.task === 'forget') trial.forgetRuns(message.runs)
  else if (message.task === 'look') answer({ asked: trial.look(message.calls) })
  else answer({ findings: trial.findings() })
})
