export const IDEMPOTENCY_KEPT_MS = 24 * 60 * 60 * 1000

export interface IdempotencyKey {
  actorKind: 'operator' | 'token'
  actorId: string
  key: string
}

export interface IdempotencyClaim {
  fingerprint: string
  now: number
  /** Keys claimed at or before this time are free again. */
  freeUntil: number
  /** An unanswered claim of the same request, at or before this time, is taken over: its process has died. */
  deadUntil: number
}

export interface KeptReply {
  status: number
  /** Without secrets. */
  json: string
}

/** `other`: the key belongs to another request. `running`: the first request has no answer yet. */
export type IdempotencyOutcome = 'claimed' | 'running' | 'other' | KeptReply
