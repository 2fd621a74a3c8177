/** State of a run that a handle carries to its next process: plain JSON. */

export interface OpenCall {
  readonly approvalId: string
  readonly toolName: string
  readonly inputHash: string
  /** Distinguishes the calls of a run with this tool and input: their number, or the caller's own text. */
  readonly key: number | string
  /** Number of earlier approvals for the caller's text that are spent. */
  readonly spent?: number
  /** ISO 8601; null if the service did not say. */
  readonly expiresAt: string | null
  /** Absent if it is not plain JSON, or too large for a handle. */
  readonly args?: readonly unknown[]
  /** Arguments by name, of a tool in Python. */
  readonly named?: Readonly<Record<string, unknown>>
}

export interface CarriedState {
  /** Client id under which approvals are requested. The service shows them to no other client. */
  readonly clientId?: string | undefined
  readonly used?: { toolCalls?: number; totalTokens?: number; cost?: number; seconds?: number } | undefined
  readonly recentCalls?: readonly string[] | undefined
  /** How many approvals are spent, by the hash of the input, or of the input and the caller's key. */
  readonly spentApprovals?: Readonly<Record<string, number>> | undefined
  /** History of the run, if a policy needs it. */
  readonly history?: unknown
  /** Calls that wait for a person, with their arguments. */
  readonly approvals?: readonly OpenCall[] | undefined
}
