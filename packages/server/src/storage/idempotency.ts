/** Keys by which clients repeat a request without creating anything twice. */

/** For so long a key is remembered. */
export const IDEMPOTENCY_KEPT_MS = 24 * 60 * 60 * 1000

export interface IdempotencyStore {
  /** Takes a key for a request, or tells what became of the request that has it. */
  claimIdempotencyKey(key: IdempotencyKey, claim: IdempotencyClaim): Promise<IdempotencyOutcome>
  /** Keeps the reply for repeats. Nothing happens where the claim of that time was taken over. */
  keepIdempotentReply(key: IdempotencyKey, claimedAt: number, reply: KeptReply): Promise<void>
  /** Gives a key back whose request created nothing. Nothing happens where the claim of that time was taken over. */
  releaseIdempotencyKey(key: IdempotencyKey, claimedAt: number): Promise<void>
  /** Forgets some keys that were claimed before that time; how many. */
  deleteOldIdempotencyKeys(before: number, limit: number): Promise<number>
}

/** Each actor has keys of their own. */
export interface IdempotencyKey {
  actorKind: 'operator' | 'token'
  actorId: string
  key: string
}

export interface IdempotencyClaim {
  /** SHA-256 hex of the request. */
  fingerprint: string
  now: number
  /** Keys that were claimed then or earlier are free again. */
  freeUntil: number
  /** An unanswered claim of the same request, made then or earlier, is taken over: who had it is gone. */
  deadUntil: number
}

export interface KeptReply {
  status: number
  /** JSON text, without any secret. */
  json: string
}

/** `other`: the key belongs to another request; `running`: the first request has not been answered yet. */
export type IdempotencyOutcome = 'claimed' | 'running' | 'other' | KeptReply
