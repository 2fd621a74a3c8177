import type { HttpResult, Reply } from './http.ts'

/** The verdict on each item. An item in neither set was accepted. */
export interface PerEvent {
  readonly kind: 'events'
  readonly retry: ReadonlySet<string>
  /** Reasons by event id. */
  readonly rejected: ReadonlyMap<string, string>
  /** Retry without a backoff, because the items were corrected. */
  readonly now?: true
}

export type Verdict =
  | PerEvent
  | { readonly kind: 'retry'; readonly retryAfter: string | null; readonly why: string }
  /** Smaller batches show which event is at fault. */
  | { readonly kind: 'split' }
  /** Ask again after a long time. */
  | { readonly kind: 'stop'; readonly reason: KeyRefusal }

export type KeyRefusal = 'unauthorized' | 'forbidden'

/** @param read reads the JSON of a 2xx answer; undefined if it is not from Tacho. */
export function verdictOf(
  result: HttpResult,
  ids: readonly string[],
  read: typeof readBatchAnswer = readBatchAnswer,
): Verdict {
  if (result.kind === 'no-reply') return { kind: 'retry', retryAfter: null, why: result.message }
  const { ok, status } = result
  if (ok) return read(result.json, ids) ?? retry(result, 'the answer is not from Tacho')
  const reason = keyRefusal(result)
  if (reason) return { kind: 'stop', reason }
  if (status === 400 || status === 413) return { kind: 'split' }
  // Another status indicates a wrong address or a proxy, which an operator can fix.
  return retry(result, `status ${status}`)
}

/** Only Tacho's own answer counts: proxies and firewalls answer 401 and 403 too. */
export function keyRefusal({
  status,
  header,
  json,
}: Pick<Reply, 'status' | 'header' | 'json'>): KeyRefusal | undefined {
  const media = header('content-type')?.split(';')[0]?.trim().toLowerCase()
  const { type } = (json ?? {}) as { type?: unknown }
  if (media !== 'application/problem+json' || !String(type).startsWith('urn:tacho:error:')) return undefined
  return status === 401 ? 'unauthorized' : status === 403 ? 'forbidden' : undefined
}

function retry({ header }: { header: (name: string) => string | null }, why: string): Verdict {
  return { kind: 'retry', retryAfter: header('retry-after'), why }
}

/** The usual verdict, shared, so that ids need no lookup. */
export const ACCEPTED = { kind: 'events', retry: new Set(), rejected: new Map() } as const satisfies PerEvent

export function readBatchAnswer(json: unknown, eventIds: readonly string[]): PerEvent | undefined {
  const { accepted, retryableEventIds, rejectedEventIds, rejections } = (json ?? {}) as Record<string, unknown>
  if (!Number.isSafeInteger(accepted) || !isTexts(retryableEventIds) || !isTexts(rejectedEventIds)) return undefined
  const isWhole = retryableEventIds.length === 0 && rejectedEventIds.length === 0
  if (isWhole && (accepted as number) >= eventIds.length) return ACCEPTED
  const retry = new Set(retryableEventIds)
  const codes = new Map(Array.isArray(rejections) ? rejections.map(codeOf) : [])
  const rejected = new Map<string, string>()
  const refused = new Set(rejectedEventIds)
  // Read only ids of this batch: an answer may contain others.
  for (const id of eventIds) if (refused.has(id) && !retry.has(id)) rejected.set(id, codes.get(id) ?? 'rejected')
  const unnamed = eventIds.filter((id) => !retry.has(id) && !rejected.has(id))
  // Some events were not stored, and the answer does not name them.
  if ((accepted as number) < unnamed.length) for (const id of unnamed) retry.add(id)
  return { kind: 'events', retry, rejected }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function codeOf(rejection: unknown): [string, string] {
  const { eventId, code } = (rejection ?? {}) as { eventId?: unknown; code?: unknown }
  return [String(eventId), /^[a-z_]{1,40}$/.exec(String(code))?.[0] ?? 'rejected']
}
