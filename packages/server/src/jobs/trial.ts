/** Evaluates a policy on its own thread. */
import { Worker } from 'node:worker_threads'
import { moduleUrl } from '../program/module-url.ts'
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
  const worker = new Worker(moduleUrl('simulation-thread', import.meta.url), {
    name: 'tacho-simulation',
    workerData: policy,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
  })
  const send = (task: TrialTask) => worker.postMessage(task)
  let asked = Promise.withResolvers<TrialAnswer>()
  const ended = Promise.withResolvers<never>()
  ended.promise.catch(() => undefined)
  worker.on('message', (answer: TrialAnswer) => asked.resolve(answer))
  worker.on('error', (error) => ended.reject(error))
  worker.on('exit', (code) => ended.reject(new Error(`the simulation thread ended with code ${code}`)))

  /** Sends one question at a time. Rejects if the thread ends without an answer. */
  function ask(task: TrialTask): Promise<TrialAnswer> {
    asked = Promise.withResolvers<TrialAnswer>()
    send(task)
    return Promise.race([asked.promise, ended.promise])
  }

  return {
    addSteps: (run, steps) => send({ task: 'steps', run, steps }),
    forgetRuns: (runs) => send({ task: 'forget', runs }),
    async look(calls) {
      const answer = await ask({ task: 'look', calls })
      return 'asked' in answer ? answer.asked : []
    },
    async findings() {
      const answer = await ask({ task: 'end' })
      if ('findings' in answer) return answer.findings
      throw new Error('the simulation thread answered out of order')
    },
    async close() {
      await worker.terminate()
    },
  }
}
