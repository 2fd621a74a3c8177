/**
 * One guarded call, from its input to its result:
 *
 *   taken --policies, detectors--> ALLOW, WARN -------------------------------> admitted --start recorded--> running
 *      \                       \-> REQUIRE_APPROVAL --APPROVED, claimed--> decided again --^                    |
 *       \                           ^  \--no decision yet--> pending          |  \--BLOCK--> refused            |
 *        \                          +-----------another policy requires one---+                                |
 *         \-> BLOCK, and everything else --> refused                           TOOL_CALL recorded <-----+
 *
 * Nothing between the last decision and "running" is asynchronous: no input, policy or budget can change there.
 */
import { detached } from '../detach.ts'
import { observeGenerator, type Failure } from '../ending.ts'
import type { IssueRecords } from '../issue-records.ts'
import type { Part } from '../part.ts'
import { handleOf } from '../run.ts'
import {
  carriedArgs,
  closeCall,
  freeNumber,
  nextNumber,
  openCall,
  spendNumber,
  takeNumber,
  type OpenCall,
} from '../run-state.ts'
import { askApproval, claimApproval, type ApprovalOutcome } from './approval.ts'
import { ToolBlockedError, type BlockCode, type BlockFacts, type PendingCall } from './blocked.ts'
import type { CallRecord } from './call-record.ts'
import type { Detection } from './detectors.ts'
import { takeInput, type TakenCall } from './input.ts'
import type { Judge, JudgedCall, JudgeParts, Judgement } from './judgement.ts'
import { modelText } from './model-text.ts'
import type { CallDecision } from './rules.ts'
import { snapshot } from './snapshot.ts'
import type { Verdict } from './verdict.ts'

export interface Admitted {
  readonly decision: CallDecision
  readonly approvalId: string | null
}

export type CallParts = JudgeParts & { readonly issues: IssueRecords }

const CONFIGURATION_WAIT_MS = 2_000
const APPROVAL_TIMEOUT_MS = 300_000
const APPROVAL_TIMEOUT_MIN_MS = 1_000
const APPROVAL_TIMEOUT_MAX_MS = 86_400_000
/** Further yielded values are not recorded. */
const ITEMS_MAX = 1_000

const BLOCK_CODES = {
  policy: 'policy',
  loop: 'loop_detected',
  budget: 'budget_exceeded',
  not_configured: 'not_configured',
} as const satisfies Record<NonNullable<Verdict['cause']>, BlockCode>

const APPROVAL_CODES = {
  rejected: 'approval_rejected',
  expired: 'approval_expired',
  timeout: 'approval_timeout',
  unavailable: 'approval_unavailable',
  aborted: 'aborted',
  used: 'approval_used',
} as const satisfies Record<Exclude<Asked['outcome'], 'approved' | 'pending'>, BlockCode>

/** No later call without a key can use the approval. */
const ENDED: ReadonlySet<Asked['outcome']> = new Set(['used', 'expired', 'timeout'])

type Asked =
  | ApprovalOutcome
  | { readonly outcome: 'used'; readonly approvalId: string; readonly decisionReason: null; readonly detail: null }

export class GuardedCall {
  readonly #parts: CallParts
  readonly #judge: Judge
  readonly #part: Part
  readonly #call: TakenCall
  readonly #judged: JudgedCall
  readonly #snapshot: string | null
  readonly #record: CallRecord
  /** The host continues this waiting call. */
  readonly #continues: OpenCall | undefined
  #loop: Detection | null = null

  constructor(
    parts: CallParts,
    judge: Judge,
    part: Part,
    call: TakenCall,
    record: CallRecord,
    continues: OpenCall | undefined,
  ) {
    this.#parts = parts
    this.#judge = judge
    this.#part = part
    this.#call = call
    this.#record = record
    const { toolName, riskSignals, annotations } = call
    const { judged: input } = call.input
    const inputHash = input && this.#hash(input)
    this.#judged = { scope: part.context.scope, toolName, riskSignals, annotations, input, inputHash }
    this.#continues = continues?.inputHash === inputHash ? continues : undefined
    this.#snapshot = input ? null : snapshot(call.input.given)
  }

  /** Runs nothing and asks no one. */
  async decide(): Promise<CallDecision> {
    await this.#configured()
    const judgement = this.#decide()
    const { action } = judgement.decision
    this.#recordUnlessPlain(judgement)
    if (action === 'BLOCK') this.#refusal(judgement, blockCodeOf(judgement, this.#call))
    return judgement.decision
  }

  /**
   * The call counts from now on.
   * @param act is called in the same turn: nothing can change before it.
   * @throws ToolBlockedError if the call may not run.
   */
  async admit<T>(act: (admitted: Admitted) => T): Promise<Awaited<T>> {
    await this.#configured()
    let judgement = this.#decide()
    const { decision } = judgement
    let approvalId: string | null = null
    for (let asked: string | null = null; judgement.decision.action === 'REQUIRE_APPROVAL';) {
      const basis = basisOf(judgement)
      if (basis === asked) break
      approvalId = await this.#approve(judgement)
      asked = basis
      // The person decided under earlier policies. A BLOCK of now holds, and another policy asks for itself.
      judgement = this.#judge.judge(this.#judged, this.#loop, this.#call.rules)
    }
    this.#refuseIfBlocked(judgement, approvalId)
    if (approvalId === null) this.#recordUnlessPlain(judgement)
    const change = this.#change()
    if (change) throw this.#refusal(judgement, change, { approvalId })
    this.#parts.core.usages.admit(this.#judged.scope, this.#call.toolName)
    return await act({ decision, approvalId })
  }

  /** `act` gets a copy of the input. @param onEnd is called when it ended, unless this rejects. */
  run<T>(act: (input: unknown) => T, onEnd: (failure?: Failure) => void): Promise<Awaited<T>> {
    return this.admit(({ decision, approvalId }) => {
      this.#record.start(decision.inputHash, approvalId)
      return this.#run(act, onEnd)
    })
  }

  async #run<T>(act: (input: unknown) => T, onEnd: (failure?: Failure) => void): Promise<Awaited<T>> {
    const { core, context } = this.#part
    const within = <R>(step: () => R): R => core.context.run(context, step)
    let output: Awaited<T>
    try {
      // Also runs a lazy thenable in the context of the call.
      output = await within(async () => await act(this.#call.input.given))
    } catch (error) {
      this.#record.failure(error)
      throw error
    }
    const items: unknown[] = []
    const keep = (item: unknown) => void (items.length < ITEMS_MAX && items.push(item))
    const end = (failure?: Failure) => this.#finish(items, onEnd, failure)
    if (!observeGenerator(output, within, end, keep)) this.#finish(output, onEnd)
    return output
  }

  #finish(output: unknown, onEnd: (failure?: Failure) => void, failure?: Failure): void {
    if (failure) this.#record.failure(failure.error)
    else this.#record.success(output)
    onEnd(failure)
  }

  async #configured(): Promise<void> {
    const { configuration } = this.#parts
    if (!configuration.state.current) await configuration.ready(this.#waitMs)
  }

  #decide(): Judgement {
    this.#loop = this.#judge.observe(this.#judged)
    const judgement = this.#judge.judge(this.#judged, this.#loop, this.#call.rules)
    for (const detection of judgement.detections) this.#record.detection(detection)
    return judgement
  }

  /** Returns its id. @throws ToolBlockedError unless a person approved. */
  async #approve(judgement: Judgement): Promise<string> {
    const { core } = this.#parts
    const { scope, inputHash } = this.#judged
    if (inputHash === null) {
      this.#record.decision(judgement, null)
      throw this.#refusal(judgement, 'input_not_json')
    }
    const rejected = this.#judge.rejection(this.#judged)
    if (rejected) {
      this.#record.decision(judgement, rejected.approvalId)
      throw this.#refusal(judgement, 'approval_rejected', rejected)
    }
    const { state } = scope
    const continued = this.#continues
    const own = this.#ownKey
    // Equal inputs without a key are several calls, also at the same time. Equal keys are one call.
    const slot = own === undefined ? inputHash : this.#parts.engine.inputHash('approval-key', [inputHash, own])
    for (;;) {
      const number = continued ? numberOf(continued) : nextNumber(state, slot)
      if (own === undefined) takeNumber(state, slot, number)
      const asked = await this.#ask(judgement, inputHash, own, number)
      const { outcome, approvalId } = asked
      const isOld = outcome === 'expired' && asked.isOld === true
      // After this, the next call asks for itself. After "used", one with the same key does not.
      if (outcome === 'approved' || isOld || (own === undefined && ENDED.has(outcome))) spendNumber(state, slot, number)
      else freeNumber(state, slot, number)
      if (outcome === 'approved') return approvalId
      if (outcome === 'pending') throw this.#pending(judgement, asked)
      if (continued === undefined && isOld) continue
      const { decisionReason, detail } = asked
      if (outcome === 'rejected') this.#judge.reject(this.#judged, { approvalId, decisionReason })
      if (detail !== null) {
        const message = `A tool was not run because approval could not be requested: ${detail}.`
        core.diagnostics.report('warning', 'approval_unavailable', message)
      }
      throw this.#refusal(judgement, APPROVAL_CODES[outcome], { approvalId, decisionReason })
    }
  }

  /** `approved` only once for a request, in all processes. */
  async #ask(judgement: Judgement, inputHash: string, own: string | undefined, number: number): Promise<Asked> {
    const { core, defaults, engine, configuration } = this.#parts
    const { toolName, rules, signal, args } = this.#call
    const { scope } = this.#judged
    const { runId, state, approvalClientId: clientId } = scope
    const { policyId, policyVersion, reason } = judgement.verdict
    // A list, because a model can choose any text.
    const key = own === undefined || number === 0 ? (own ?? number) : [own, number]
    const timeoutMs = rules.approvalTimeoutMs ?? defaults.approvalTimeoutMs ?? APPROVAL_TIMEOUT_MS
    const request = {
      // Every process finds the same request, and another version of the policy makes another one.
      clientRequestId: engine.inputHash('approval', [runId, toolName, inputHash, policyId, policyVersion, key]),
      runId,
      sessionId: scope.sessionId,
      agentId: scope.agentId,
      policyId: policyId ?? undefined,
      toolName,
      inputHash,
      reason: reason === null ? undefined : core.writing().text(reason),
      timeoutMs: Math.round(Math.min(Math.max(timeoutMs, APPROVAL_TIMEOUT_MIN_MS), APPROVAL_TIMEOUT_MAX_MS)),
    }
    let isRecorded = false
    const onCreated = (approvalId: string, expiresAt: string | null) => {
      isRecorded = true
      const isKnown = state.openCalls.has(approvalId)
      const carried = this.#call.input.judged && carriedArgs(args)
      const more = { ...(own !== undefined && number > 0 && { spent: number }), ...(carried && { args: carried }) }
      openCall(state, { approvalId, toolName, inputHash, key: own ?? number, expiresAt, ...more })
      // Sent at once: operators see the input beside the approval.
      if (!isKnown) this.#record.decision(judgement, approvalId)
      void core.sender.flush(core.settings.flushTimeoutMs)
    }
    const waitMs = Math.max(0, rules.approvalWaitMs ?? defaults.approvalWaitMs ?? Infinity)
    const asking = { request, clientId, waitMs, onCreated, signal }
    const outcome = await askApproval(core, asking)
    if (!isRecorded) this.#record.decision(judgement, null)
    if (outcome.outcome === 'approved') await configuration.confirm(this.#waitMs)
    const claim = outcome.outcome === 'approved' ? await claimApproval(core, asking, outcome.approvalId) : null
    if (outcome.approvalId !== null && outcome.outcome !== 'pending' && claim !== 'unavailable') {
      closeCall(state, outcome.approvalId, toolName)
    }
    if (claim === null || claim === 'claimed' || outcome.approvalId === null) return outcome
    const none = { approvalId: outcome.approvalId, decisionReason: null }
    if (claim === 'used') return { ...none, outcome: 'used', detail: null }
    return { ...none, outcome: 'unavailable', detail: 'the service did not confirm that the tool runs once' }
  }

  /** Undefined: the call is numbered. A continued call keeps its key. */
  get #ownKey(): string | undefined {
    if (this.#continues) return typeof this.#continues.key === 'string' ? this.#continues.key : undefined
    // A host without types may give a number, which would be the number of another call.
    const given: unknown = this.#call.key ?? ''
    return String(given) || undefined
  }

  /** No refusal: the call goes on after a person decides. */
  #pending(
    { decision, verdict }: Judgement,
    { approvalId, expiresAt }: Extract<Asked, { outcome: 'pending' }>,
  ): ToolBlockedError {
    const { toolName } = this.#call
    const { core, context } = this.#part
    const pending: PendingCall = { status: 'pending', approvalId, toolName, expiresAt }
    const { inputHash, policyIds, reason } = decision
    const more = { approvalId, decisionReason: null, policyMessage: verdict.policyMessage }
    const facts: BlockFacts = { code: 'approval_pending', toolName, inputHash, policyIds, reason, ...more }
    return new ToolBlockedError(facts, modelText(facts), pending, handleOf(core, context))
  }

  #refuseIfBlocked(judgement: Judgement, approvalId: string | null): void {
    if (judgement.decision.action !== 'BLOCK') return
    this.#record.decision(judgement, approvalId)
    throw this.#refusal(judgement, blockCodeOf(judgement, this.#call), { approvalId })
  }

  /** A call that no policy concerns leaves only its start and its result. */
  #recordUnlessPlain(judgement: Judgement): void {
    const { decision, verdict } = judgement
    const isPlain = decision.action === 'ALLOW' && decision.policyIds.length === 0 && verdict.failures.length === 0
    if (!isPlain) this.#record.decision(judgement, null)
  }

  #refusal({ decision, verdict }: Judgement, code: BlockCode, more: Partial<BlockFacts> = {}): ToolBlockedError {
    const { inputHash, policyIds, reason } = decision
    const { toolName } = this.#call
    const { policyMessage } = verdict
    const facts = {
      code,
      toolName,
      inputHash,
      policyIds,
      approvalId: null,
      decisionReason: null,
      reason,
      policyMessage,
    }
    return this.#record.refusal({ ...facts, ...more })
  }

  /** The tool could get another input than was taken. Values that JSON cannot hold are not copied. */
  #change(): BlockCode | null {
    const { input, readAgain } = this.#call
    if (input.judged) {
      if (!readAgain) return null
      const { judged } = takeInput(detached(readAgain()))
      const { inputHash } = this.#judged
      return judged && inputHash !== null && this.#hash(judged) === inputHash ? null : 'input_changed'
    }
    if (this.#snapshot === null) return 'input_not_json'
    return snapshot(readAgain ? readAgain() : input.given) === this.#snapshot ? null : 'input_changed'
  }

  #hash(input: Readonly<Record<string, unknown>>): string | null {
    try {
      return this.#parts.engine.inputHash(this.#call.toolName, input)
    } catch {
      return null
    }
  }

  get #waitMs(): number {
    const { rules } = this.#call
    return rules.configurationWaitMs ?? this.#parts.defaults.configurationWaitMs ?? CONFIGURATION_WAIT_MS
  }
}

function numberOf({ key, spent = 0 }: OpenCall): number {
  return typeof key === 'number' ? key : spent
}

/** An approval counts for one version of a policy, or for one detector. */
function basisOf({ verdict: { cause, policyId, policyVersion } }: Judgement): string {
  return JSON.stringify([cause, policyId, policyVersion])
}

function blockCodeOf({ verdict }: Judgement, { input }: TakenCall): BlockCode {
  if (input.judged === null && verdict.isFailure) return 'input_not_json'
  return BLOCK_CODES[verdict.cause ?? 'policy']
}
