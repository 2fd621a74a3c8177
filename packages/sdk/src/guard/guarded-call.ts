/**
 * One guarded call, from its input to its result:
 *
 *   taken --policies, detectors--> ALLOW, WARN -------------------------------> admitted --start recorded--> running
 *      \                       \-> REQUIRE_APPROVAL --APPROVED--> decided again --^                             |
 *       \                                       \--everything else--> refused <--BLOCK                          |
 *        \-> BLOCK -------------------------------------------------^                  TOOL_CALL recorded <-----+
 *
 * Nothing between the last decision and "running" is asynchronous: no input, policy or budget can change there.
 */
import { detached } from '../detach.ts'
import { observeGenerator, type Failure } from '../ending.ts'
import type { IssueRecords } from '../issue-records.ts'
import type { Part } from '../part.ts'
import { askApproval, type ApprovalOutcome } from './approval.ts'
import type { BlockCode, BlockFacts, ToolBlockedError } from './blocked.ts'
import type { CallRecord } from './call-record.ts'
import type { Detection } from './detectors.ts'
import { takeInput, type TakenCall } from './input.ts'
import type { Judge, JudgedCall, JudgeParts, Judgement } from './judgement.ts'
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
/** Yielded values that are recorded. */
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
} as const satisfies Record<Exclude<ApprovalOutcome['outcome'], 'approved'>, BlockCode>

export class GuardedCall {
  readonly #parts: CallParts
  readonly #judge: Judge
  readonly #part: Part
  readonly #call: TakenCall
  readonly #judged: JudgedCall
  readonly #snapshot: string | null
  readonly #record: CallRecord
  #loop: Detection | null = null

  constructor(parts: CallParts, judge: Judge, part: Part, call: TakenCall, record: CallRecord) {
    this.#parts = parts
    this.#judge = judge
    this.#part = part
    this.#call = call
    this.#record = record
    const { toolName, riskSignals, annotations } = call
    const { judged: input } = call.input
    const inputHash = input && this.#hash(input)
    this.#judged = { scope: part.context.scope, toolName, riskSignals, annotations, input, inputHash }
    this.#snapshot = input ? null : snapshot(call.input.given)
  }

  /** Decides and records. Runs nothing and asks no one. */
  async decide(): Promise<CallDecision> {
    await this.#configured()
    const judgement = this.#decide()
    const { action } = judgement.decision
    this.#recordUnlessPlain(judgement)
    if (action === 'BLOCK') this.#refusal(judgement, blockCodeOf(judgement, this.#call))
    return judgement.decision
  }

  /**
   * Decides and asks a person if needed. The call counts from now on.
   * @param act is called in the same turn: nothing can change before it.
   * @throws ToolBlockedError if the call may not run.
   */
  async admit<T>(act: (admitted: Admitted) => T): Promise<Awaited<T>> {
    await this.#configured()
    const judgement = this.#decide()
    const { decision } = judgement
    let approvalId: string | null = null
    if (decision.action === 'REQUIRE_APPROVAL') {
      approvalId = await this.#approve(judgement)
      await this.#parts.configuration.confirm(this.#waitMs)
      // A person decided under the policies of then; a BLOCK of now holds.
      this.#refuseIfBlocked(this.#judge.judge(this.#judged, this.#loop, this.#call.rules), approvalId)
    } else {
      this.#refuseIfBlocked(judgement, null)
      this.#recordUnlessPlain(judgement)
    }
    const change = this.#change()
    if (change) throw this.#refusal(judgement, change, { approvalId })
    this.#parts.usages.admit(this.#judged.scope, this.#call.toolName)
    return await act({ decision, approvalId })
  }

  /**
   * Runs `act` with a copy of the input if the call may run, and records its start and its result.
   * @param onEnd is called when it ended, unless this rejects.
   */
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

  /** The id of the approval. @throws ToolBlockedError unless a person approved. */
  async #approve(judgement: Judgement): Promise<string> {
    const { core, defaults } = this.#parts
    const { toolName, rules, signal } = this.#call
    const { scope, inputHash } = this.#judged
    const { verdict } = judgement
    if (inputHash === null) {
      this.#record.decision(judgement, null)
      throw this.#refusal(judgement, 'input_not_json')
    }
    const rejected = this.#judge.rejection(this.#judged)
    if (rejected) {
      this.#record.decision(judgement, rejected.approvalId)
      throw this.#refusal(judgement, 'approval_rejected', rejected)
    }
    const timeoutMs = rules.approvalTimeoutMs ?? defaults.approvalTimeoutMs ?? APPROVAL_TIMEOUT_MS
    const request = {
      clientRequestId: core.ids.uuid(),
      runId: scope.runId,
      sessionId: scope.sessionId,
      agentId: scope.agentId,
      policyId: verdict.policyId ?? undefined,
      toolName,
      inputHash,
      reason: verdict.reason === null ? undefined : core.writing().text(verdict.reason),
      timeoutMs: Math.round(Math.min(Math.max(timeoutMs, APPROVAL_TIMEOUT_MIN_MS), APPROVAL_TIMEOUT_MAX_MS)),
    }
    let isRecorded = false
    const onCreated = (approvalId: string) => {
      isRecorded = true
      // Send the input at once: operators see it beside the approval.
      this.#record.decision(judgement, approvalId)
      void core.sender.flush(core.settings.flushTimeoutMs)
    }
    const outcome = await askApproval(core, request, onCreated, signal)
    if (!isRecorded) this.#record.decision(judgement, null)
    if (outcome.outcome === 'approved') return outcome.approvalId
    const { approvalId, decisionReason, detail } = outcome
    if (outcome.outcome === 'rejected') this.#judge.reject(this.#judged, { approvalId, decisionReason })
    if (detail !== null) {
      const message = `A tool was not run because approval could not be requested: ${detail}.`
      core.diagnostics.report('warning', 'approval_unavailable', message)
    }
    throw this.#refusal(judgement, APPROVAL_CODES[outcome.outcome], { approvalId, decisionReason })
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

  /** Why the tool could get another input than was taken. Values that JSON cannot hold are not copied. */
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

function blockCodeOf({ verdict }: Judgement, { input }: TakenCall): BlockCode {
  if (input.judged === null && verdict.isFailure) return 'input_not_json'
  return BLOCK_CODES[verdict.cause ?? 'policy']
}
