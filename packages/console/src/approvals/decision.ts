/**
 * A person's decision, from the button to the service's verdict. It is in the page's cache, so that every view of the
 * request knows it. While a decision is under way, no other can be sent.
 *
 *   (none) ── decide ──> sending ── answered ─────────────────────────────> said
 *                           │                                                 ▲
 *                           ├─ offline: nothing left the device ──> not_sent ─┤
 *                           └─ no answer within seconds ──────────> unknown ──┘ the service says what is true
 *
 * A person can decide again only after `said`. Nothing is sent again automatically: not_sent and unknown read the
 * request until there is a reply.
 */
import type { Decision } from '@tacho/contract/approvals/approval.ts'
import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import type { NewDecision, NewDecisions } from '@tacho/contract/approvals/approval-decision.ts'
import { useQuery, type QueryClient } from '@tanstack/react-query'
import { api, isLost, isNotSent, refusalOf } from '../web/api.ts'
import { exact } from '../web/text/format.ts'
import { approvalWord } from './approval-summary.tsx'
import { approvalsKey } from './queries.ts'

export interface Verdict {
  counted: boolean
  /** The approval is stored, and another person must approve too. */
  isFirst?: true
  text: string
}

export interface SentDecision {
  decision: Decision
  reason: string | null
  phase: 'sending' | 'not_sent' | 'unknown' | 'said'
  /** Whether the reply was lost and the request read afterwards: its state may be newer than the decision. */
  wasLost: boolean
  verdict: Verdict | null
  /** A refusal that is not about the state of the request. */
  error: unknown
}

type Decided = Pick<OperatorApproval, 'status' | 'decidedBy' | 'decidedAt' | 'importedAt' | 'firstApproval'>
type Me = string | undefined

/** Longest wait for the reply to a decision, because a person is waiting. */
const ANSWER_MS = 6_000
const READ_MS = 5_000
const PAUSES_MS = [500, 1_000, 2_000, 5_000]

const decisionKey = (approvalId: string) => ['decision', approvalId] as const

export function useDecision(approvalId: string): SentDecision | null {
  return (
    useQuery<SentDecision | null>({
      queryKey: decisionKey(approvalId),
      enabled: false,
      initialData: null,
      staleTime: Infinity,
      gcTime: Infinity,
    }).data ?? null
  )
}

export const isUnderWay = (sent: SentDecision | null | undefined): boolean =>
  sent !== null && sent !== undefined && sent.phase !== 'said'

export function isBeingDecided(cache: QueryClient, approvalId: string): boolean {
  return isUnderWay(cache.getQueryData<SentDecision | null>(decisionKey(approvalId)))
}

interface Place {
  environmentId: string
  me: Me
}

/** Sends a decision, unless an earlier one for this request is under way. */
export async function decideApproval(
  cache: QueryClient,
  place: Place,
  approvalId: string,
  body: NewDecision,
): Promise<void> {
  if (isBeingDecided(cache, approvalId)) return
  const params = { environmentId: place.environmentId, approvalId }
  const say = sayer(cache, approvalId, body)
  say({ phase: 'sending' })
  try {
    const approval = await api.decideApproval({ params, body }, { timeoutMs: ANSWER_MS })
    say({ verdict: verdictOn(approval, body.decision, place.me) })
  } catch (error) {
    await afterFailure(cache, place, [approvalId], body, error)
  }
  // Also renew after a refusal: another person may have decided first.
  await renewed(cache, place)
}

/**
 * Sends one decision for several requests with the same tool and input. Returns false if the reply was lost, so that
 * nothing more is sent.
 */
export async function decideTogether(
  cache: QueryClient,
  place: Place,
  ids: readonly string[],
  body: Pick<NewDecisions, 'decision' | 'reason' | 'seenInputs'>,
): Promise<boolean> {
  const free = ids.filter((id) => !isBeingDecided(cache, id))
  if (free.length === 0) return true
  for (const id of free) sayer(cache, id, body)({ phase: 'sending' })
  const { environmentId, me } = place
  try {
    const call = { params: { environmentId }, body: { ...body, ids: free } }
    const { items } = await api.decideApprovals(call, { timeoutMs: ANSWER_MS })
    const outcomes = new Map(items.map((item) => [item.id, item]))
    for (const id of free) {
      const { approval, outcome } = outcomes.get(id) ?? {}
      const verdict =
        outcome === 'changed' || (outcome !== undefined && NOT_YOU.has(outcome))
          ? not(NOT_YOU.get(outcome) ?? LOOK_AGAIN)
          : approval
            ? verdictOn(approval, body.decision, me)
            : not('The request is no longer there.')
      sayer(cache, id, body)({ verdict })
    }
  } catch (error) {
    await afterFailure(cache, place, free, body, error)
    return !isLost(error)
  } finally {
    await renewed(cache, place)
  }
  return true
}

export function leaveOut(cache: QueryClient, ids: readonly string[], body: NewDecision): void {
  const verdict = not('It was not sent, because the answer before it was lost. Decide again.')
  for (const id of ids) if (!isBeingDecided(cache, id)) sayer(cache, id, body)({ verdict })
}

const renewed = (cache: QueryClient, { environmentId }: Place) =>
  cache.invalidateQueries({ queryKey: approvalsKey(environmentId) })

function sayer(cache: QueryClient, approvalId: string, { decision, reason = null }: NewDecision) {
  const start: SentDecision = { decision, reason, phase: 'said', wasLost: false, verdict: null, error: null }
  return (change: Partial<SentDecision>) => cache.setQueryData(decisionKey(approvalId), { ...start, ...change })
}

async function afterFailure(
  cache: QueryClient,
  place: Place,
  ids: readonly string[],
  body: NewDecision,
  error: unknown,
): Promise<void> {
  const isStale = refusalOf(error)?.status === 409
  if (!isStale && !isLost(error)) {
    for (const id of ids) sayer(cache, id, body)({ error })
    return
  }
  const why = refusalOf(error)?.problem.detail ?? ''
  const phase = isNotSent(error) ? 'not_sent' : 'unknown'
  if (!isStale) for (const id of ids) sayer(cache, id, body)({ phase })
  for (const id of ids) await readTruth(cache, place, id, body, isStale ? 'sending' : phase, why)
}

/** Reads the request until the service answers. */
async function readTruth(
  cache: QueryClient,
  { environmentId, me }: Place,
  approvalId: string,
  body: NewDecision,
  phase: SentDecision['phase'],
  why: string,
): Promise<void> {
  const say = sayer(cache, approvalId, body)
  const wasLost = phase === 'unknown'
  for (let looks = 0; ; looks++) {
    try {
      const approval = await api.readApproval({ params: { environmentId, approvalId } }, { timeoutMs: READ_MS })
      // The request still waits for its input or a second person, so the service did not decide it.
      const isOpen = phase === 'sending' && approval.status === 'PENDING' && approval.importedAt === null
      const verdict = isOpen
        ? not(approval.approvers === 2 || body.grant !== undefined ? `${why}.` : LOOK_AGAIN)
        : verdictOn(approval, body.decision, me)
      return void say({ wasLost, verdict: wasLost ? afterLoss(verdict) : verdict })
    } catch (error) {
      if (!isLost(error)) return void say({ error })
      await pauseOrOnline(PAUSES_MS[Math.min(looks, PAUSES_MS.length - 1)] ?? 0)
    }
  }
}

const afterLoss = ({ counted, text }: Verdict): Verdict => ({
  counted,
  text: `${text} The answer was lost, so the request was read again.`,
})

function pauseOrOnline(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      clearTimeout(timer)
      window.removeEventListener('online', go)
      resolve()
    }
    const timer = setTimeout(go, ms)
    window.addEventListener('online', go)
  })
}

/**
 * The verdict by the present state of the request. A service that hung may store a lost decision after the request was
 * read.
 */
export function currentVerdict(sent: SentDecision, approval: Decided, me: Me): Verdict | null {
  const { verdict, wasLost, decision } = sent
  if (!verdict || !wasLost || verdict.counted || approval.status === 'PENDING') return verdict
  return afterLoss(verdictOn(approval, decision, me))
}

export function verdictOn(approval: Decided, wanted: Decision, me: Me): Verdict {
  const { status, decidedBy } = approval
  if (approval.importedAt !== null) return not('An import brought this request. No agent waits for it.')
  const isMyFirst = approval.firstApproval !== null && approval.firstApproval.by.id === me
  if (status === 'PENDING' && wanted === 'APPROVED' && isMyFirst) {
    return { counted: true, isFirst: true, text: 'Your approval counts. Another person must approve it too.' }
  }
  if (status === 'PENDING') return not('The request still waits. Decide again.')
  if (status === 'EXPIRED') return not('The request expired before.')
  if (decidedBy?.id === me && status === wanted) {
    return { counted: true, text: `Your decision counts: ${approvalWord(status).toLowerCase()}.` }
  }
  return not(endingOf(approval, me))
}

/** Describes who ended a request, and when. */
export function endingOf({ status, decidedBy, decidedAt }: Decided, me: Me): string {
  const at = decidedAt === null ? '' : ` at ${exact(Date.parse(decidedAt))}`
  if (status === 'EXPIRED') return `The request expired${at}.`
  const isMine = decidedBy !== null && decidedBy.id === me
  return `${isMine ? 'You' : (decidedBy?.name ?? 'Another person')} ${approvalWord(status).toLowerCase()} it${at}.`
}

/** Reasons why this person cannot decide a request that needs two people. */
const NOT_YOU = new Map<string, string>([
  ['same_person', 'You approved it first: somebody else must approve it too.'],
  ['runs_agent', 'It needs two people other than the one who runs the agent.'],
])

const LOOK_AGAIN = 'Its input is not the one that was shown. Look at it, then decide again.'

const not = (text: string): Verdict => ({ counted: false, text: `Your decision did not count. ${text}` })
