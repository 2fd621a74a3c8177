/** Why a guarded tool did not run. */
export type BlockCode =
  /** A policy blocks the call. */
  | 'policy'
  /** The same call was repeated too often. */
  | 'loop_detected'
  /** The run is over its budget. */
  | 'budget_exceeded'
  /** A person said no. */
  | 'approval_rejected'
  /** Nobody decided in time, by the service's clock. */
  | 'approval_expired'
  /** Nobody decided before the local deadline. */
  | 'approval_timeout'
  /** The service could not be asked, or answered something that is not understood. */
  | 'approval_unavailable'
  /** The caller gave up while the decision was awaited. */
  | 'aborted'
  /** The input is no longer what was decided about. */
  | 'input_changed'
  /** The input is not plain JSON, so that nobody can be asked about it. */
  | 'input_not_json'
  /** No policies were ever loaded, and the guard is to fail closed then. */
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
  /** What the person who decided wrote. */
  readonly decisionReason: string | null
  /** Which rule it was, in a few words. */
  readonly reason: string | null
}

/** A guarded tool did not run. `modelText` can be given to a model as the tool's answer; it holds no value of the input. */
export class ToolBlockedError extends Error implements BlockFacts {
  override readonly name = 'ToolBlockedError'
  readonly code: BlockCode
  readonly toolName: string
  readonly inputHash: string | null
  readonly policyIds: readonly string[]
  readonly approvalId: string | null
  readonly decisionReason: string | null
  readonly reason: string | null
  readonly modelText: string

  constructor(facts: BlockFacts, modelText: string) {
    const why = facts.reason === null ? '' : `: ${facts.reason}`
    super(`The tool ${facts.toolName} was not run (${facts.code})${why}`)
    this.code = facts.code
    this.toolName = facts.toolName
    this.inputHash = facts.inputHash
    this.policyIds = facts.policyIds
    this.approvalId = facts.approvalId
    this.decisionReason = facts.decisionReason
    this.reason = facts.reason
    this.modelText = modelText
  }
}
