/**
 * Asks people whether one call may run.
 *
 *   creating --201--> asking --APPROVED--> approved
 *      |  ^             |  ^
 *      v  | no answer,  v  | PENDING; no answer, 429, 5xx
 *    (backoff)        (pause of at least 1 s between requests)
 *   any --REJECTED, EXPIRED, another answer, the local deadline, the signal--> a refusal
 *
 * Only one path leads to `approved`; every other path is a refusal.
 */
import type { StopSignal } from '../runtime.ts'
import type { Core } from '../core.ts'
import type { HttpResult, Reply } from '../http.ts'
import { waitMs } from '../retry.ts'
import { cutText } from '../text.ts'

export interface ApprovalRequest {
  /** One per protected call, the same in every retry. */
  readonly clientRequestId: string
  readonly runId: string | undefined
  readonly sessionId: string | undefined
  readonly agentId: string | undefined
  readonly policyId: string | undefined
  readonly toolName: string
  readonly inputHash: string
  /** Masked. */
  readonly reason: string | undefined
  readonly timeoutMs: number
}

export type ApprovalOutcome =
  | { readonly outcome: 'approved'; readonly approvalId: string; readonly decisionReason: string | null }
  | {
      readonly outcome: 'rejected' | 'expired' | 'timeout' | 'unavailable' | 'aborted'
      /** Null when none was created. */
      readonly approvalId: string | null
      readonly decisionReason: string | null
      /** For a diagnostic: how the service answered. Holds no content. */
      readonly detail: string | null
    }

type Refusal = Exclude<ApprovalOutcome, { outcome: 'approved' }>

/** Longest `wait` that the service accepts. */
const WAIT_SECONDS_MAX = 30
const POLL_INTERVAL_MS = 1_000
const POLL_SPREAD_MS = 500
/** Extra time for an answer, in addition to the requested wait. */
const ANSWER_MS = 10_000
/** An id becomes part of a path: `..` would name another one. */
const ID = /^\w[\w-]{0,254}$/
/** A model reads the reason. */
const REASON_CHARS = 2_000

interface Approval {
  readonly id: string
  readonly status: string
  readonly decisionReason: string | null
}

/**
 * @param onCreated is called once with the approval's id, before the first wait.
 * @param signal ends the wait with the answer `aborted`.
 */
export async function askApproval(
  core: Core,
  request: ApprovalRequest,
  onCreated: (approvalId: string) => void,
  signal?: StopSignal,
): Promise<ApprovalOutcome> {
  const { runtime, settings } = core
  // A timer, not the clock: a clock jump does not move the deadline. It keeps the process running because a caller
  // waits.
  const deadline = new AbortController()
  const timer = runtime.timer(request.timeoutMs, () => deadline.abort(), true)
  const onAbort = () => deadline.abort()
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted) deadline.abort()
  const headers = { 'x-service-client-id': settings.clientId }
  let approvalId: string | null = null
  try {
    if (!settings.enabled) return refusal('unavailable', 'the client is disabled')
    const body = JSON.stringify(request)
    const created = await answered('POST', '/firewall-approvals', settings.requestTimeoutMs, body)
    if (!isReply(created)) return created
    const first = created.status === 201 ? readApproval(created, request, null) : null
    if (!first) return refusal('unavailable', `status ${created.status}`)
    let approval = first
    approvalId = approval.id
    onCreated(approval.id)
    for (;;) {
      const { status, decisionReason } = approval
      if (status === 'APPROVED') return { outcome: 'approved', approvalId: approval.id, decisionReason }
      if (status === 'REJECTED') return { ...refusal('rejected', null), decisionReason }
      if (status === 'EXPIRED') return refusal('expired', null)
      if (status !== 'PENDING') return refusal('unavailable', 'unknown status')
      const path = `/firewall-approvals/${encodeURIComponent(approval.id)}?wait=${WAIT_SECONDS_MAX}`
      const reply = await answered('GET', path, WAIT_SECONDS_MAX * 1_000 + ANSWER_MS)
      if (!isReply(reply)) return reply
      const next = reply.status === 200 ? readApproval(reply, request, approval.id) : null
      if (!next) return refusal('unavailable', `status ${reply.status}`)
      approval = next
    }
  } finally {
    timer.cancel()
    signal?.removeEventListener('abort', onAbort)
  }

  function refusal(outcome: Refusal['outcome'], detail: string | null): Refusal {
    return { outcome, approvalId, decisionReason: null, detail }
  }

  /** The first answer that is not "try again". A refusal if none arrives before the deadline. */
  async function answered(
    method: 'GET' | 'POST',
    path: string,
    timeoutMs: number,
    body?: string,
  ): Promise<Reply | Refusal> {
    let detail: string | null = null
    for (let failures = 0; ;) {
      if (deadline.signal.aborted) return refusal(signal?.aborted ? 'aborted' : 'timeout', detail)
      const start = runtime.now()
      const reply: HttpResult = await core.request(method, path, {
        headers,
        ...(body !== undefined && { body }),
        timeoutMs,
        signal: deadline.signal,
      })
      // Count from the answer. Then the service sees the whole interval, even if the request arrived late.
      const interval = method === 'GET' ? POLL_INTERVAL_MS + runtime.random() * POLL_SPREAD_MS : 0
      if (reply.kind === 'reply' && !isTemporary(reply.status)) {
        // A long poll that the service held open already was the pause.
        const isQuick = runtime.now() - start < 2 * POLL_INTERVAL_MS
        if (isQuick && isPending(reply)) await sleep(interval)
        return reply
      }
      // That the wait ended does not mean that the service failed.
      if (reply.kind === 'reply') detail = `status ${reply.status}`
      else if (reply.reason !== 'aborted') detail = reply.message
      const retryAfter = reply.kind === 'reply' ? reply.header('retry-after') : null
      await sleep(Math.max(interval, waitMs(++failures, retryAfter, runtime.now(), runtime.random())))
    }
  }

  /** Also ends at the deadline. */
  function sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (deadline.signal.aborted) return resolve()
      const pause = runtime.timer(ms, done, true)
      function done(): void {
        pause.cancel()
        deadline.signal.removeEventListener('abort', done)
        resolve()
      }
      deadline.signal.addEventListener('abort', done, { once: true })
    })
  }
}

function isReply(value: Reply | Refusal): value is Reply {
  return 'kind' in value
}

function isTemporary(status: number): boolean {
  return status === 429 || status === 408 || status >= 500
}

function isPending({ json }: Reply): boolean {
  return (json as { status?: unknown } | undefined | null)?.status === 'PENDING'
}

/** Null unless it is the requested approval. An answer that names a tool or a hash must name those of the request. */
function readApproval({ json }: Reply, request: ApprovalRequest, id: string | null): Approval | null {
  if (typeof json !== 'object' || json === null) return null
  const given = json as Record<string, unknown>
  if ((given['toolName'] ?? request.toolName) !== request.toolName) return null
  if ((given['inputHash'] ?? request.inputHash) !== request.inputHash) return null
  if (typeof given['id'] !== 'string' || !ID.test(given['id']) || (id !== null && given['id'] !== id)) return null
  if (typeof given['status'] !== 'string') return null
  // A decision has a time (interface: Firewall approval).
  if (given['status'] === 'APPROVED' && typeof given['decidedAt'] !== 'string') return null
  const { decisionReason } = given
  return {
    id: given['id'],
    status: given['status'],
    decisionReason: typeof decisionReason === 'string' ? cutText(decisionReason, REASON_CHARS) : null,
  }
}
