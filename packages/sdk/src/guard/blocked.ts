/** Why a guarded tool did not run. */
export type BlockCode =
  /** A policy blocks the call. */
  | 'policy'
  /** The same call was repeated too often. */
  | 'loop_detected'
  /** The run is over its budget. */
  | 'budget_exceeded'
  /** A person rejected the call. */
  | 'approval_rejected'
  /** No decision before the deadline, by the service's clock. */
  | 'approval_expired'
  /** No decision before the local deadline. */
  | 'approval_timeout'
  /** The service could not be reached, or its answer was not understood. */
  | 'approval_unavailable'
  /** The caller aborted while waiting for the decision. */
  | 'aborted'
  /** The input changed after the decision. */
  | 'input_changed'
  /** The input is not plain JSON, so an approval cannot be requested. */
  | 'input_not_json'
  /** No policies were ever loaded, and the guard is configured to fail closed. */
  | 'not_configured'
  /** The guard itself failed. */
  | 'guard_failed'

export interface BlockFacts {
  readonly code: BlockCode
  readonly toolName: string
  /** Null when the input is not plain JSON. */
  readonly inputHash: string | null
  readonly policyIds: readonly string[]
  readonly approvalId: string | null
  /** The comment of the person who decided. */
  readonly decisionReason: string | null
  /** The rule that applied, in a few words. */
  readonly reason: string | null
  /** What the policy says; null if it says nothing or something else held the call up. */
  readonly policyMessage: string | null
}

/** A guarded tool did not run. You can give `modelText` to a model as the tool's answer; it holds no input values. */
export class ToolBlockedError extends Error implements BlockFacts {
  override readonly name = 'ToolBlockedError'
  declare readonly code: BlockCode
  declare readonly toolName: string
  declare readonly inputHash: string | null
  declare readonly policyIds: readonly string[]
  declare readonly approvalId: string | null
  declare readonly decisionReason: string | null
  declare readonly reason: string | null
  declare readonly policyMessage: string | null
  readonly modelText: string

  constructor(facts: BlockFacts, modelText: string) {
    const why = facts.reason === null ? '' : `: ${facts.reason}`
    super(`The tool ${facts.toolName} was not run (${facts.code})${why}`)
    Object.assign(this, facts)
    this.modelText = modelText
  }
}
