/** Parses payloads and evaluates conditions in a separate thread, so that no request waits for it. */
import { workerData } from 'node:worker_threads'
import { conditionOf, createTrial, type Trial, type TrialPolicy } from '../../domain/policies/policy-trial.ts'
import { answerCalls } from '../../threads/threads.ts'

export type TrialData = TrialPolicy & { condition: string }

export type TrialCall = { [Name in keyof Trial]: [name: Name, ...args: Parameters<Trial[Name]>] }[keyof Trial]

const { condition, ...policy } = workerData as TrialData
const trial = createTrial(conditionOf(condition), policy)

answerCalls(([name, ...args]: TrialCall) => (trial[name] as (...args: unknown[]) => unknown)(...args))
