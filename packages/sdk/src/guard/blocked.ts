import { BLOCKED } from '../border.ts'
import { readSafely } from '../recording/json.ts'
import type { RunHandle } from '../recording/run.ts'

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
  /** No person has decided yet, and the call does not wait: see `pending`. */
  | 'approval_pending'
  /** The tool ran already under this approval, or may have: a process ended, or it is unknown which one claimed it. */
  | 'approval_used'
  /** The service could not be reached, or its answer was not understood. */
  | 'approval_unavailable'
  /** The caller aborted while waiting for the decision. */
  | 'aborted'
  /** The run or its process ended, or its time was up, while the call waited for the decision. */
  | 'caller_gone'
  /** The model's answer ended before the arguments of the call were complete. */
  | 'call_cut'
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
  /** Message of the policy; null if it has none or something else held the call up. */
  readonly policyMessage: string | null
}

/** A call that waits for a person: plain JSON that you can return from a request, without any input. */
export interface PendingCall {
  readonly status: 'pending'
  readonly approvalId: string
  readonly toolName: string
  /** ISO 8601; null if the service did not say. */
  readonly expiresAt: string | null
}

/** A guarded tool did not run. You can give `modelText` to a model as the tool's answer; it holds no input values. */
export class ToolBlockedError extends Error implements BlockFacts {
  /** Recognises errors of other copies of the SDK too. */
  static override [Symbol.hasInstance](error: unknown): boolean {
    if (this !== ToolBlockedError) return Function.prototype[Symbol.hasInstance].call(this, error)
    return readSafely(() => typeof error === 'object' && error !== null && BLOCKED in error, false)
  }

  /** @internal Published code is minified, which would shorten it. */
  static override readonly name: string = 'ToolBlockedError'
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
  /** The call goes on after a person decides: see `tacho.continueCall`. Null unless `code` is approval_pending. */
  readonly pending: PendingCall | null
  readonly #handle: RunHandle | null

  constructor(
    facts: BlockFacts,
    modelText: string,
    pending: PendingCall | null = null,
    handle: RunHandle | null = null,
  ) {
    const why = facts.reason === null ? '' : `: ${facts.reason}`
    super(`The tool ${facts.toolName} was not run (${facts.code})${why}`)
    Object.assign(this, facts)
    Object.defineProperty(this, BLOCKED, { value: true })
    this.modelText = modelText
    this.pending = pending
    this.#handle = handle
  }

  /**
   * Handle with which another process can continue the run of a pending call. A method, not a property, because it contains the
   * arguments.
   */
  toHandle(): RunHandle | null {
    return this.#handle
  }
}
