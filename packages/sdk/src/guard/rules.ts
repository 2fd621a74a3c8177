/** How calls are decided, as users configure and read it. */
import type { DeployedPolicy } from '../configuration/configuration.ts'
import type { BudgetOptions, Detection, LoopOptions } from './detectors.ts'

/** From the laxest to the strictest. */
export type Action = 'ALLOW' | 'WARN' | 'REQUIRE_APPROVAL' | 'BLOCK'

/** A policy of your own code. */
export type LocalPolicy = Omit<DeployedPolicy, 'description'>

/** Given to the client for all tools, and to `guard` for one. */
export interface GuardRules {
  /** Policies of your own code, in force besides those of the service. */
  policies?: readonly LocalPolicy[]
  /** What happens while no policies were ever loaded. A risky tool chooses `block`. Default: allow. */
  whenUnconfigured?: 'allow' | 'block'
  /** Longest wait for the first policies, in milliseconds. Default: 2,000. */
  configurationWaitMs?: number
  /** Longest wait for a person, in milliseconds, from 1,000 to 86,400,000. Default: 300,000. */
  approvalTimeoutMs?: number
}

export interface GuardDefaults extends GuardRules {
  /** Repeated calls with the same input, in one run; false switches it off. */
  loop?: LoopOptions | false
  /** What one run may use. Default: no budget. */
  budget?: BudgetOptions
}

/** A call that is about to be made. */
export interface Call {
  toolName: string
  /** Plain JSON; null and undefined count as {}. */
  input?: unknown
  /** Names of risks that you detected, for `risk.signals` in conditions. */
  riskSignals?: readonly string[]
}

/** What was decided about a call, before anybody was asked. */
export interface CallDecision {
  readonly action: Action
  /** Policies that matched, strictest first. */
  readonly policyIds: readonly string[]
  readonly reason: string | null
  /** Binds an approval to this tool and input; null when the input is not plain JSON. */
  readonly inputHash: string | null
  /** Detectors that found something. */
  readonly detections: readonly Detection[]
  /** Revision of the configuration that was in force; null: none was ever loaded. */
  readonly revision: string | null
}
