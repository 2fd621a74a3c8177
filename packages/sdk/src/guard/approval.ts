/**
 * Asks people whether one call may run.
 *
 *   creating --201--> asking --APPROVED--> approved
 *      |  ^             |  ^
 *      v  | no answer,  v  | PENDING; no answer, 429, 5xx
 *    (backoff)        (pause of at least 1 s between requests)
 *   any --REJECTED, EXPIRED, another answer, the local deadline, the signal--> a refusal
 *
 * Only one path leads to `approved`; every other path is a refusal. Several processes may ask for one call: each gets the same
 * approval, and `claimApproval` lets one of them run the tool. After `expiresAt`, an approval is expired, also an approved one.
 */
import type { StopSignal } from '../delivery/runtime.ts'
import type { Core } from '../core.ts'
import type { HttpResult, Reply } from '../delivery/http.ts'
import { isReceipt } from '../delivery/issue-records.ts'
import { waitMs as retryMs } from '../delivery/retry.ts'
import { cutText } from '../recording/text.ts'

export interface ApprovalRequest {
  /** Id of the request: the same in every retry, and in every process. */
  readonly clientRequestId: string
  readonly runId: string | undefined
  readonly sessionId: string | undefined
  readonly agentId: string | undefined
  readonly policyId: string | undefined
  readonly toolName: string
  readonly inputHash: string
  /** Already masked. */
  readonly reason: string | undefined
  readonly timeoutMs: number
  /** The model's id of the call. An older service may not know these members. */
  readonly toolCallId: string | undefined
  readonly policyVersion: string | undefined
  readonly policyVersions: Readonly<Record<string, string>>
  /** False: the client records no input that an approver could read. */
  readonly recordsInput: false | undefined
}

export type ApprovalOutcome =
  | {
      readonly outcome: 'approved'
      readonly approvalId: string
      readonly decisionReason: string | null
      /** Whether an earlier call or another process created the request. */
      readonly isFound: boolean
      readonly expiresAt: ExpiryTime
    }
  | { readonly outcome: 'pending'; readonly approvalId: string; readonly expiresAt: string | null }
  | {
      readonly outcome: 'rejected' | 'expired' | 'timeout' | 'unavailable' | 'aborted'
      /** Whether an earlier call created this request, and it ended before the present call asked. */
      readonly isOld?: boolean
      /** Null when none was created. */
      readonly approvalId: string | null
      readonly decisionReason: string | null
      /** Reason for a diagnostic, without any content of the call. */
      readonly detail: string | null
    }

type Refusal = Exclude<ApprovalOutcome, { outcome: 'approved' | 'pending' }>

/** `used`: the tool ran, or another process runs it. `withdrawn`: the caller that asked has left. */
export type Claim = 'claimed' | 'used' | 'withdrawn' | 'unavailable'

/** In milliseconds of this process's clock; null if the service did not send it. */
export type ExpiryTime = number | null

export function isOver(core: Core, expiresAt: ExpiryTime): boolean {
  return expiresAt !== null && core.runtime.now() > expiresAt
}

/** Longest `wait` that the service accepts. */
const WAIT_SECONDS_MAX = 30
const POLL_INTERVAL_MS = 1_000
const POLL_SPREAD_MS = 500
/** Timeout of a request, in addition to its `wait`. */
const ANSWER_MS = 10_000
/** Bounded because an id becomes part of a path, where `..` would lead elsewhere. */
const ID = /^\w[\w-]{0,254}$/
/** Longest reason: a model reads it. */
const REASON_CHARS = 2_000
const TIME_CHARS = 40

/** Only one claim can create this record: the others get `isNew: false`, and no `isSame`. */
export const CLAIM_TYPE = 'APPROVAL_PENDING'
const CLAIMS_MAX = 4
/** Smaller differences between the clocks are ignored: the Date header has whole seconds. */
const CLOCKS_MS = 2_000
const CLAIM_WAIT_MAX_MS = 5_000

interface Approval {
  readonly id: string
  readonly status: string
  readonly expiresAt: string | null
  readonly usableUntil: ExpiryTime
  readonly decisionReason: string | null
}

export interface Asking {
  readonly request: ApprovalRequest
  /** The service shows an approval only to the client that requested it. */
  readonly clientId: string
  /** Longest wait. An approval that is undecided then is pending. */
  readonly waitMs: number
  /** Called once, before the first wait. */
  readonly onCreated: (approvalId: string, expiresAt: string | null) => void
  /** Ends the wait with `aborted`. */
  readonly signal: StopSignal | undefined
}

export async function askApproval(
  core: Core,
  { request, clientId, waitMs, onCreated, signal }: Asking,
): Promise<ApprovalOutcome> {
  const { runtime, settings } = core
  const isPatient = waitMs >= request.timeoutMs
  // Use a timer, because a clock jump must not move the deadline. It keeps the process running because a caller waits.
  // Without a wait for a person, it bounds the request.
  const deadline = new AbortController()
  const end = () => deadline.abort()
  const begun = runtime.now()
  const most = isPatient ? request.timeoutMs : Math.max(waitMs, settings.requestTimeoutMs)
  let timer = runtime.timer(most, end, true)
  const onAbort = () => deadline.abort()
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted) deadline.abort()
  const headers = { 'x-service-client-id': clientId }
  let approvalId: string | null = null
  try {
    if (!settings.enabled) return refusal('unavailable', 'the client is disabled')
    const body = JSON.stringify(request)
    const created = await answered('POST', '/firewall-approvals', settings.requestTimeoutMs, body)
    if (!isReply(created)) return created
    const first = created.status === 201 ? readApproval(created, request, null, runtime.now()) : null
    if (!first) return refusal('unavailable', `status ${created.status}`)
    let approval = first
    approvalId = approval.id
    onCreated(approval.id, approval.expiresAt)
    if (!isPatient) {
      timer.cancel()
      timer = runtime.timer(Math.max(0, waitMs - Math.max(0, runtime.now() - begun)), end, true)
      if (waitMs === 0) end()
    }
    for (;;) {
      const { status, decisionReason } = approval
      const isFound = approval === first
      if (status === 'EXPIRED' || (status === 'APPROVED' && isOver(core, approval.usableUntil)))
        return { ...refusal('expired', null), isOld: isFound }
      if (status === 'APPROVED') {
        return { outcome: 'approved', approvalId, decisionReason, isFound, expiresAt: approval.usableUntil }
      }
      if (status === 'REJECTED') return { ...refusal('rejected', null), decisionReason }
      if (status !== 'PENDING') return refusal('unavailable', 'unknown status')
      if (!isPatient && deadline.signal.aborted && !signal?.aborted) return pending(approval)
      const path = `/firewall-approvals/${encodeURIComponent(approval.id)}?wait=${WAIT_SECONDS_MAX}`
      const reply = await answered('GET', path, WAIT_SECONDS_MAX * 1_000 + ANSWER_MS)
      if (!isReply(reply)) return !isPatient && reply.outcome === 'timeout' ? pending(approval) : reply
      const next = reply.status === 200 ? readApproval(reply, request, approval.id, runtime.now()) : null
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

  function pending({ id, expiresAt }: Approval): ApprovalOutcome {
    return { outcome: 'pending', approvalId: id, expiresAt }
  }

  /** The first conclusive answer, after retries; a refusal at the deadline. */
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
      // Measure from the last answer, so that the service sees the whole interval even if a request arrived late.
      const interval = method === 'GET' ? POLL_INTERVAL_MS + runtime.random() * POLL_SPREAD_MS : 0
      if (reply.kind === 'reply' && !isTemporary(reply.status)) {
        // A long poll that the service held open counts as the pause.
        const isQuick = runtime.now() - start < 2 * POLL_INTERVAL_MS
        if (isQuick && isPending(reply)) await sleep(interval)
        return reply
      }
      // If the wait ended, the service did not fail.
      if (reply.kind === 'reply') detail = `status ${reply.status}`
      else if (reply.reason !== 'aborted') detail = reply.message
      const retryAfter = reply.kind === 'reply' ? reply.header('retry-after') : null
      await sleep(Math.max(interval, retryMs(++failures, retryAfter, runtime.now(), runtime.random())))
    }
  }

  /** Sleeps, at most until the deadline. */
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

/**
 * Claims an approval: the service stores an issue record once for each client and id, and reports `isNew` to one
 * request only (interface: Issue record). The record is a recovery, so it opens no issue.
 */
export async function claimApproval(
  core: Core,
  asking: Asking,
  { approvalId, isFound }: { readonly approvalId: string; readonly isFound: boolean },
): Promise<Claim> {
  const claimId = core.ids.uuid()
  const claim = await firstToSay(core, asking, { approvalId, claimId }, 'run')
  if (claim !== 'claimed' || !isFound) return claim
  const isLeft = await firstToSay(core, asking, { approvalId, claimId }, 'withdrawn')
  return isLeft === 'used' ? 'withdrawn' : isLeft
}

/** The issue records that withdraw a caller's request, so that no other process runs under it. */
export function withdrawnRecord(
  clientId: string,
  approvalId: string,
): { clientRecordId: string; sdkInstanceId: string } {
  return { clientRecordId: `withdrawn-${approvalId}`, sdkInstanceId: clientId }
}

async function firstToSay(
  core: Core,
  { clientId, request }: Asking,
  claim: { readonly approvalId: string; readonly claimId: string },
  what: 'run' | 'withdrawn',
): Promise<Exclude<Claim, 'withdrawn'>> {
  const { runtime, settings } = core
  const { runId, sessionId, agentId, policyId, toolName, inputHash } = request
  const body = JSON.stringify({
    sdkInstanceId: clientId,
    clientRecordId: `${what}-${claim.approvalId}`,
    recordKind: 'RECOVERY',
    detectionType: CLAIM_TYPE,
    runId,
    sessionId,
    agentId: agentId ?? settings.agentId ?? settings.agentName,
    policyId,
    detectedAt: runtime.now(),
    payload: { toolName },
    evidence: { decision: 'APPROVED', inputHash, ...claim },
  })
  for (let failures = 0; ;) {
    const timeoutMs = settings.requestTimeoutMs
    const reply = await core.request('POST', '/issue-records', { body, timeoutMs })
    if (reply.kind === 'reply' && reply.ok && isReceipt(reply.json)) {
      // If this claim's earlier answer was lost, the record is its own: `isSame` says so.
      const { isNew, isSame } = reply.json as { isNew?: unknown; isSame?: unknown }
      return isNew === true || isSame === true ? 'claimed' : 'used'
    }
    if ((reply.kind === 'reply' && !isTemporary(reply.status)) || ++failures >= CLAIMS_MAX) return 'unavailable'
    const retryAfter = reply.kind === 'reply' ? reply.header('retry-after') : null
    const ms = Math.min(retryMs(failures, retryAfter, runtime.now(), runtime.random()), CLAIM_WAIT_MAX_MS)
    await new Promise<void>((resolve) => void runtime.timer(ms, resolve, true))
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

/** Null unless the reply is the requested approval. A tool or hash in it must be the request's. */
function readApproval(
  { json, header }: Reply,
  request: ApprovalRequest,
  id: string | null,
  now: number,
): Approval | null {
  if (typeof json !== 'object' || json === null) return null
  const replyFields = json as Record<string, unknown>
  if ((replyFields['toolName'] ?? request.toolName) !== request.toolName) return null
  if ((replyFields['inputHash'] ?? request.inputHash) !== request.inputHash) return null
  if (typeof replyFields['id'] !== 'string' || !ID.test(replyFields['id']) || (id !== null && replyFields['id'] !== id))
    return null
  if (typeof replyFields['status'] !== 'string') return null
  // Every decision has a time (interface: Firewall approval).
  if (replyFields['status'] === 'APPROVED' && typeof replyFields['decidedAt'] !== 'string') return null
  const { decisionReason } = replyFields
  const expiresAt = typeof replyFields['expiresAt'] === 'string' ? cutText(replyFields['expiresAt'], TIME_CHARS) : null
  return {
    id: replyFields['id'],
    status: replyFields['status'],
    expiresAt,
    usableUntil: localTime(expiresAt, header('date'), now),
    decisionReason: typeof decisionReason === 'string' ? cutText(decisionReason, REASON_CHARS) : null,
  }
}

/** Converts a time of the service to this process's clock, by the Date header of the same reply. */
function localTime(time: string | null, date: string | null, now: number): ExpiryTime {
  const at = Date.parse(time ?? '')
  if (Number.isNaN(at)) return null
  const ahead = Date.parse(date ?? '') - now
  return Math.abs(ahead) > CLOCKS_MS ? at - ahead : at
}
