/** Chooses the approval request of a call, and decides what happens to it when the caller leaves. */
import type { OpenCall } from '../recording/carried-state.ts'
import type { Context, RunScope } from '../recording/context.ts'
import type { Core } from '../core.ts'
import { detached } from '../delivery/detach.ts'
import {
  carriedArgs,
  closeCall,
  freeNumber,
  nextNumber,
  openCall,
  spendNumber,
  takeNumber,
} from '../recording/run-state.ts'
import {
  askApproval,
  CLAIM_TYPE,
  claimApproval,
  isOver,
  withdrawnRecord,
  type ApprovalOutcome,
  type Asking,
} from './approval.ts'
import { ToolBlockedError } from './blocked.ts'
import type { CallRecord } from './call-record.ts'
import type { LeavingCaller, LeaveReason } from './leaving-caller.ts'
import type { TakenCall } from './input.ts'
import type { JudgeParts, Judgement } from './judgement.ts'
import type { IssueRecords } from '../delivery/issue-records.ts'

export type CallParts = JudgeParts & { readonly issues: IssueRecords }

const APPROVAL_TIMEOUT_MS = 300_000
const APPROVAL_TIMEOUT_MIN_MS = 1_000
const APPROVAL_TIMEOUT_MAX_MS = 86_400_000

/** After these outcomes the caller has its answer, so a later call without a key must not use the approval. */
const ENDED: ReadonlySet<Asked['outcome']> = new Set(['used', 'expired', 'unavailable'])
/** After these outcomes nobody waits, so no later call may use the approval. */
const LEFT: ReadonlySet<Asked['outcome']> = new Set(['timeout', 'aborted', 'withdrawn'])

/** Approvals that this client withdrew. Its runs need not ask the service about them. */
const withdrawn = new WeakMap<Core, Set<string>>()
const WITHDRAWN_MAX = 10_000

export type Asked =
  | ApprovalOutcome
  | {
      readonly outcome: 'used' | 'withdrawn'
      readonly approvalId: string
      readonly decisionReason: null
      readonly detail: null
    }

interface ApprovalParts {
  readonly parts: CallParts
  readonly context: Context
  readonly call: TakenCall
  readonly inputHash: string
  readonly record: CallRecord
  readonly caller: LeavingCaller
  /** Set if the host continues a waiting call. */
  readonly continues: OpenCall | undefined
}

export class CallApproval {
  readonly #given: ApprovalParts

  constructor(callParts: ApprovalParts) {
    this.#given = callParts
  }

  /**
   * Resolves to `approved` once for each request, across all processes. @param confirmMs the longest wait for newer
   * policies.
   */
  async ask(judgement: Judgement, confirmMs: number): Promise<Asked> {
    const { parts, context, inputHash, caller, continues } = this.#given
    const { state } = context.scope
    const ownKey = this.#ownKey
    // Calls with equal inputs and no key are different calls, even at the same time. Calls with equal keys are one
    // call.
    const slot = ownKey === undefined ? inputHash : parts.engine.inputHash('approval-key', [inputHash, ownKey])
    for (;;) {
      const number = continues ? numberOf(continues) : nextNumber(state, slot)
      if (ownKey === undefined) takeNumber(state, slot, number)
      const asked = await this.#askOnce(judgement, ownKey, number, confirmMs)
      const { outcome } = asked
      const isOld = outcome === 'withdrawn' || (outcome === 'expired' && asked.isOld === true)
      // After a spent request, the next call makes its own. After "used", a call with the same key does not.
      const isSpent = outcome === 'approved' || isOld || LEFT.has(outcome) || caller.gone !== null
      if (caller.gone !== 'handed_over' && (isSpent || (ownKey === undefined && ENDED.has(outcome))))
        spendNumber(state, slot, number)
      else freeNumber(state, slot, number)
      if (continues === undefined && isOld && caller.gone === null) continue
      return asked
    }
  }

  async #askOnce(judgement: Judgement, ownKey: string | undefined, number: number, confirmMs: number): Promise<Asked> {
    const { parts, context, call, inputHash, record, caller } = this.#given
    const { core, configuration } = parts
    const { toolName, args } = call
    const { state, approvalClientId: clientId } = context.scope
    let isRecorded = false
    const onCreated = (approvalId: string, expiresAt: string | null) => {
      isRecorded = true
      const isKnown = state.openCalls.has(approvalId)
      const carried = call.input.judged && carriedArgs(args)
      const more = { ...(ownKey !== undefined && number > 0 && { spent: number }), ...(carried && { args: carried }) }
      openCall(state, { approvalId, toolName, inputHash, key: ownKey ?? number, expiresAt, ...more })
      caller.onLeave = (reason) => this.#withdraw(approvalId, reason)
      // Sent at once, so that operators see the input with the approval.
      if (!isKnown) record.decision(judgement, approvalId)
      void core.sender.flush(core.settings.flushTimeoutMs)
    }
    const { rules } = call
    const waitMs = Math.max(0, rules.approvalWaitMs ?? parts.defaults.approvalWaitMs ?? Infinity)
    const request = this.#request(judgement, ownKey, number)
    const asking: Asking = { request, clientId, waitMs, onCreated, signal: caller.signal }
    const outcome = await askApproval(core, asking)
    if (!isRecorded) record.decision(judgement, null)
    const { approvalId } = outcome
    // After a handover, the next process continues the call.
    if (caller.gone === 'handed_over' && approvalId !== null) return { outcome: 'pending', approvalId, expiresAt: null }
    if (outcome.outcome === 'pending') return outcome
    if (outcome.outcome !== 'approved') {
      if (outcome.outcome === 'timeout') caller.leave('timeout')
      if (approvalId !== null) closeCall(state, approvalId, toolName)
      return outcome
    }
    await configuration.confirm(confirmMs)
    const none = { approvalId: outcome.approvalId, decisionReason: null, detail: null }
    if (caller.gone !== null) return { ...none, outcome: 'aborted' }
    const claim = withdrawn.get(core)?.has(outcome.approvalId)
      ? 'withdrawn'
      : await claimApproval(core, asking, outcome)
    if (claim === 'unavailable')
      return { ...none, outcome: 'unavailable', detail: 'the service did not confirm that the tool runs once' }
    closeCall(state, outcome.approvalId, toolName)
    if (claim === 'withdrawn') noteWithdrawn(core, outcome.approvalId)
    if (claim !== 'claimed') return { ...none, outcome: claim }
    return isOver(core, outcome.expiresAt) ? { ...none, outcome: 'expired' } : outcome
  }

  #request(judgement: Judgement, ownKey: string | undefined, number: number) {
    const { parts, context, call, inputHash } = this.#given
    const { core, engine, defaults } = parts
    const { runId, sessionId, agentId }: RunScope = context.scope
    const { toolName, rules } = call
    const { policyId, policyVersion, policyVersions, reason } = judgement.verdict
    // A list keeps key and number apart: a model can choose any text as key.
    const key = ownKey === undefined || number === 0 ? (ownKey ?? number) : [ownKey, number]
    const timeoutMs = rules.approvalTimeoutMs ?? defaults.approvalTimeoutMs ?? APPROVAL_TIMEOUT_MS
    return {
      // All processes compute the same request id. Another version of the policy makes another request.
      clientRequestId: engine.inputHash('approval', [runId, toolName, inputHash, policyId, policyVersion, key]),
      runId,
      sessionId,
      agentId,
      policyId: policyId ?? undefined,
      toolName,
      inputHash,
      reason: reason === null ? undefined : core.writing().text(reason),
      timeoutMs: Math.round(Math.min(Math.max(timeoutMs, APPROVAL_TIMEOUT_MIN_MS), APPROVAL_TIMEOUT_MAX_MS)),
      toolCallId: call.toolCallId ?? ownKey,
      policyVersion: policyVersion ?? undefined,
      policyVersions,
      recordsInput: core.settings.capture === 'full' ? undefined : (false as const),
    }
  }

  /** Recorded synchronously, because the process may be ending. */
  #withdraw(approvalId: string, reason: LeaveReason): void {
    const { parts, context, call, inputHash, record } = this.#given
    const { state, approvalClientId } = context.scope
    closeCall(state, approvalId, call.toolName)
    noteWithdrawn(parts.core, approvalId)
    record.withdrawal({ approvalId, inputHash, reason })
    const report = {
      recordKind: 'RECOVERY',
      detectionType: CLAIM_TYPE,
      payload: { toolName: call.toolName },
      evidence: { approvalId, reason },
    } as const
    parts.issues.report(context.scope, report, withdrawnRecord(approvalClientId, approvalId))
    void parts.core.sender.flush(parts.core.settings.flushTimeoutMs)
  }

  /** Undefined: calls are numbered instead. A continued call keeps its key. */
  get #ownKey(): string | undefined {
    const { continues, call } = this.#given
    if (continues) return typeof continues.key === 'string' ? continues.key : undefined
    // A host without types may pass a number as key, which could equal another call's number.
    const callKey: unknown = call.key ?? ''
    return String(callKey) || undefined
  }
}

function noteWithdrawn(core: Core, approvalId: string): void {
  const known = withdrawn.get(core) ?? new Set()
  withdrawn.set(core, known.add(approvalId))
  const [oldest] = known.size > WITHDRAWN_MAX ? known : []
  if (oldest !== undefined) known.delete(oldest)
}

function numberOf({ key, spent = 0 }: OpenCall): number {
  return typeof key === 'number' ? key : spent
}

/**
 * Continues a waiting call of the current run with the arguments in its handle.
 * @throws TypeError if the handle has no such call, or no arguments that can be used here.
 */
export async function continueCall<Args extends unknown[], T>(
  core: Core,
  context: Context | undefined,
  approvalId: string,
  tool: (...args: Args) => T,
): Promise<Awaited<T>> {
  const call = context?.scope.state.openCalls.get(approvalId)
  if (!context || !call) {
    throw new TypeError(
      `No call of the current run waits for the approval ${approvalId}: resume the handle that was made after the call.`,
    )
  }
  if (call.inputHash === null) throw usedBefore(call.toolName, approvalId)
  const { args, named } = call
  if (!args || Object.keys(Object(named)).length > 0) {
    throw new TypeError(
      `The handle has no arguments of ${call.toolName} that can be used here: call the tool again yourself.`,
    )
  }
  const detachedArgs = detached(args) as Args
  return await core.context.run({ ...context, continues: call }, () => tool(...detachedArgs))
}

/** A call that was continued twice in this process. */
function usedBefore(toolName: string, approvalId: string): ToolBlockedError {
  const none = { inputHash: null, policyIds: [], decisionReason: null, reason: null, policyMessage: null }
  const facts = { code: 'approval_used', toolName, approvalId, ...none } as const
  return new ToolBlockedError(facts, `The tool ${toolName} was not run: it ran already under this approval.`)
}
