/** How calls are decided: what users configure and read. */
import type { DeployedPolicy, ToolLabels } from '../configuration/configuration.ts'
import type { StopSignal } from '../delivery/runtime.ts'
import type { BudgetOptions, Detection, LoopOptions } from './detectors.ts'

/** From least to most strict. */
export type Action = 'ALLOW' | 'WARN' | 'REQUIRE_APPROVAL' | 'BLOCK'

/** A policy in your own code. */
export type LocalPolicy = Omit<DeployedPolicy, 'description'> & Partial<Pick<DeployedPolicy, 'description'>>

/** Options for all tools (on the client) or one tool (on `guard`). */
export interface GuardRules {
  /** Policies in your own code, in addition to the service's. */
  policies?: readonly LocalPolicy[] | undefined
  /**
   * Action if no policies were ever loaded. `allow` runs the tool unchecked. Default: block; allow for a client with `enabled:
   * false`.
   */
  whenUnconfigured?: 'allow' | 'block' | undefined
  /** Longest wait for the first policies, in milliseconds. Default: 2,000. */
  configurationWaitMs?: number | undefined
  /** Longest wait for a person, in milliseconds, from 1,000 to 86,400,000. Default: 300,000. */
  approvalTimeoutMs?: number | undefined
  /**
   * Longest time that this process waits for a person, in milliseconds. After it, the call is pending: another process, or a
   * later call, continues it. 0: do not wait. Default: approvalTimeoutMs.
   */
  approvalWaitMs?: number | undefined
}

/** @internal */
export const RULES = [
  'policies',
  'whenUnconfigured',
  'configurationWaitMs',
  'approvalTimeoutMs',
  'approvalWaitMs',
] satisfies (keyof GuardRules)[]

export interface GuardDefaults extends GuardRules {
  /** Detects repeated calls with the same input in one run; false disables it. */
  loop?: LoopOptions | false | undefined
  /** The most one run may use. Default: no budget. */
  budget?: BudgetOptions | undefined
  /** Labels of your tools, in addition to the service's. */
  labels?: readonly ToolLabels[] | undefined
}

export interface GuardOptions<Args extends unknown[]> extends GuardRules {
  /** Name of the tool in policies, approvals and events. Keep it stable. */
  name: string
  /** Builds `tool.input` for conditions. Default: the only argument, or `{ args }` if that is not one plain object. */
  input?: ((...args: Args) => unknown) | undefined
  /** Names of risks, for `risk.signals` in conditions. */
  riskSignals?: ((...args: Args) => readonly string[]) | undefined
  /** Annotations that the tool's server declares, for `tool.annotations` in conditions. */
  annotations?: ((...args: Args) => Readonly<Record<string, unknown>>) | undefined
  /** The MCP server of the tool, for `tool.server` in conditions. Default: from a name such as `mcp__server__tool`. */
  server?: string | undefined
  /** Ends the wait for approval; then the tool does not run. */
  signal?: (...args: Args) => StopSignal | undefined
  /**
   * Tells this call apart from others of the run with the same input, for example the id of the model's tool call. One
   * approval lets it run once, in all processes. Default: its number in the run.
   */
  key?: ((...args: Args) => string) | undefined
  /** The model's id of the call, for events and the approval's page. Default: `key`. */
  toolCallId?: ((...args: Args) => string) | undefined
}

/** Options of `guardTools`. */
export interface WrapOptions {
  /** Action for tools that cannot be guarded. Default: refuse, which throws a TypeError. `allow` records them. */
  unguarded?: 'refuse' | 'allow' | undefined
}

/** A call, and what runs it. */
export interface GuardedCall<Input, T> extends GuardRules {
  /** Name of the tool in policies, approvals and events. Keep it stable. */
  name: string
  /**
   * Taken once, as plain JSON: policies judge this value, and it is hashed, shown to the approver and recorded. Anything but
   * an object is judged as `{ input: … }`.
   */
  input: Input
  /** Gets a copy of the input that was judged. An input that cannot be read is passed as it is. */
  call: (input: Input) => T
  /**
   * Set if a schema made the input: a Date is judged, hashed, shown and recorded as its ISO text, and `call` gets a new Date made
   * of this text. Default: a Date cannot be read.
   */
  hasDates?: boolean | undefined
  /** Names of risks, for `risk.signals` in conditions. */
  riskSignals?: readonly string[] | undefined
  /** Annotations that the tool's server declares, for `tool.annotations` in conditions. A claim, not a fact. */
  annotations?: Readonly<Record<string, unknown>> | undefined
  /** The MCP server of the tool, for `tool.server` in conditions. Default: from a name such as `mcp__server__tool`. */
  server?: string | undefined
  /** Ends the wait for approval; then the tool does not run. */
  signal?: StopSignal | undefined
  /** Tells this call apart from others of the run with the same input. See `GuardOptions`. */
  key?: string | undefined
  /** The model's id of the call, for events and the approval's page. Default: `key`. */
  toolCallId?: string | undefined
}

/** A call that has not run yet. */
export interface Call {
  toolName: string
  /** Plain JSON; null and undefined count as {}. */
  input?: unknown
  /** Names of risks that you detected, for `risk.signals` in conditions. */
  riskSignals?: readonly string[] | undefined
  /** Annotations that the tool's server declares, for `tool.annotations` in conditions. A claim, not a fact. */
  annotations?: Readonly<Record<string, unknown>> | undefined
  /** The MCP server of the tool, for `tool.server` in conditions. Default: from a name such as `mcp__server__tool`. */
  server?: string | undefined
  /** Tells this call apart from others of the run with the same input. See `GuardOptions`. */
  key?: string | undefined
  /** The model's id of the call, for events and the approval's page. Default: `key`. */
  toolCallId?: string | undefined
}

/** The decision about a call that may run. */
export interface Authorization extends CallDecision {
  /** The approval of a person; null if no policy required one. */
  readonly approvalId: string | null
}

/** The decision about a call, before a person is asked. */
export interface CallDecision {
  readonly action: Action
  /** Policies that matched, strictest first. */
  readonly policyIds: readonly string[]
  readonly reason: string | null
  /** Binds an approval to this tool and input; null if the input is not plain JSON. */
  readonly inputHash: string | null
  /** Detectors with a finding. */
  readonly detections: readonly Detection[]
  /** Revision of the configuration that was used; null if none was ever loaded. */
  readonly revision: string | null
}
