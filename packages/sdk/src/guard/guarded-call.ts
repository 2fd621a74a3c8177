/**
 * The life of a call, from the model's answer to its end. Only integrations see the first line (asked-calls.ts):
 *
 *   asked --cut, unreadable, unknown tool, unfit arguments, declined by the framework--> never ran
 *     \--> judged --policies, detectors--> ALLOW, WARN ---------------------------> running --> returned, failed, cancelled
 *             |  \--> REQUIRE_APPROVAL --> held --APPROVED, claimed--> judged again --^   \--> never came back: the process
 *             |                             | \--no decision yet--> pending            |       ends, so no TOOL_CALL follows
 *             |                             +--rejected, expired, withdrawn            +--another policy requires one--> held
 *             \--> BLOCK, and everything else --> refused
 *
 * POLICY_DECISION records "judged" and "held", APPROVAL_WITHDRAWN that the caller left (leaving-caller.ts), TOOL_START "running",
 * and TOOL_CALL each end, with its `outcome`. Nothing between the last decision and "running" is asynchronous: no input,
 * policy or budget can change there, and no caller can leave.
 */
import type { Hashed } from '../core.ts'
import { detached } from '../delivery/detach.ts'
import { observeGenerator, type Failure } from '../delivery/ending.ts'
import type { RunPart } from '../recording/part.ts'
import { handleOf } from '../recording/run.ts'
import type { OpenCall } from '../recording/carried-state.ts'
import { countCall } from '../recording/run-usage.ts'
import { isAbort } from '../recording/exception.ts'
import { ToolBlockedError, type BlockCode, type BlockFacts, type PendingCall } from './blocked.ts'
import { CallApproval, type Asked, type CallParts } from './call-approval.ts'
import type { CallRecord } from './call-record.ts'
import type { Detection } from './detectors.ts'
import { LeavingCaller } from './leaving-caller.ts'
import { takeInput, type TakenCall } from './input.ts'
import type { Judge, JudgedCall, Judgement } from './judgement.ts'
import { modelText } from './model-text.ts'
import type { CallDecision } from './rules.ts'
import { snapshot } from './snapshot.ts'
import { isTaped, tapedCall } from './taped-call.ts'
import type { Verdict } from './verdict.ts'

export interface Admitted {
  readonly decision: CallDecision
  readonly approvalId: string | null
}

const CONFIGURATION_WAIT_MS = 2_000
/** Maximum number of yielded values that are recorded. */
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
  withdrawn: 'caller_gone',
} as const satisfies Record<Exclude<Asked['outcome'], 'approved' | 'pending'>, BlockCode>

export class GuardedCall {
  readonly #parts: CallParts
  readonly #judge: Judge
  readonly #part: RunPart
  readonly #call: TakenCall
  readonly #judged: JudgedCall
  readonly #snapshot: string | null
  readonly #record: CallRecord
  /** Set if the host continues a waiting call. */
  readonly #continues: OpenCall | undefined
  #loop: Detection | null = null

  constructor(
    parts: CallParts,
    judge: Judge,
    runPart: RunPart,
    call: TakenCall,
    { hashed, record, continues }: { hashed: Hashed; record: CallRecord; continues: OpenCall | undefined },
  ) {
    this.#parts = parts
    this.#judge = judge
    this.#part = runPart
    this.#call = call
    this.#record = record
    const { toolName, riskSignals, annotations, server } = call
    const { judged: input } = call.input
    const { inputHash } = hashed
    this.#judged = { scope: runPart.context.scope, toolName, riskSignals, annotations, server, input, inputHash }
    this.#continues = continues?.inputHash === inputHash ? continues : undefined
    this.#snapshot = input ? null : snapshot(call.input.given)
  }

  /** `act` gets a copy of the input. @param onEnd is called when `act` has ended, but not if this rejects. */
  run<T>(act: (input: unknown) => T, onEnd: (failure?: Failure) => void): Promise<Awaited<T>> {
    return this.admit(({ decision, approvalId }) => {
      this.#record.start(decision.inputHash, approvalId)
      return this.#act(act, onEnd)
    })
  }

  /**
   * Counts the call from now on.
   * @param act is called synchronously after the last check, so nothing can change in between.
   * @throws ToolBlockedError if the call may not run.
   */
  async admit<T>(act: (admitted: Admitted) => T): Promise<Awaited<T>> {
    const caller = new LeavingCaller(this.#parts.core, this.#part.context, this.#call.signal)
    try {
      await this.#configured()
      let judgement = this.#decide()
      const { decision } = judgement
      let approvalId: string | null = null
      for (let asked: string | null = null; judgement.decision.action === 'REQUIRE_APPROVAL';) {
        const basis = basisOf(judgement)
        if (basis === asked) break
        approvalId = await this.#approve(judgement, caller)
        asked = basis
        // The person decided under earlier policies. A newer BLOCK holds, and another policy asks for its own approval.
        judgement = this.#judge.judge(this.#judged, this.#loop, this.#call.rules)
      }
      this.#refuseIfBlocked(judgement, approvalId)
      if (approvalId === null) this.#recordUnlessPlain(judgement)
      const change = this.#change()
      if (change) throw this.#refusal(judgement, change, { approvalId })
      countCall(this.#parts.core.carrying!.usages.of(this.#judged.scope), this.#call.toolName)
      caller.close()
      return await act({ decision, approvalId })
    } finally {
      caller.close()
    }
  }

  async #act<T>(act: (input: unknown) => T, onEnd: (failure?: Failure) => void): Promise<Awaited<T>> {
    const { core, context } = this.#part
    const within = <R>(step: () => R): R => core.context.run(context, step)
    let output: Awaited<T>
    try {
      // An async function also runs a lazy thenable in the context of the call.
      const run = async () => await act(this.#call.input.given)
      const { inputHash } = this.#judged
      const taped = () => tapedCall(core, this.#call, inputHash, context.span.marks?.agent, run)
      output = await within(isTaped(core) ? taped : run)
    } catch (error) {
      this.#fail(error)
      throw error
    }
    const items: unknown[] = []
    const keep = (item: unknown) => void (items.length < ITEMS_MAX && items.push(item))
    const end = (failure?: Failure) => this.#finish(items, onEnd, failure)
    if (!observeGenerator(output, within, end, keep)) this.#finish(output, onEnd)
    return output
  }

  #finish(output: unknown, onEnd: (failure?: Failure) => void, failure?: Failure): void {
    if (failure) this.#fail(failure.error)
    else this.#record.success(output)
    onEnd(failure)
  }

  /** A call that its own caller aborted did not fail. */
  #fail(error: unknown): void {
    this.#record.failure(error, isAbort(error) || this.#call.signal?.aborted === true)
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

  async #configured(): Promise<void> {
    const { configuration } = this.#parts
    if (configuration.isDue) await configuration.fresh(this.#waitMs)
  }

  #decide(): Judgement {
    this.#loop = this.#judge.observe(this.#judged)
    const judgement = this.#judge.judge(this.#judged, this.#loop, this.#call.rules)
    for (const detection of judgement.detections) this.#record.detection(detection)
    return judgement
  }

  /** Returns the approval's id. @throws ToolBlockedError unless a person approved. */
  async #approve(judgement: Judgement, caller: LeavingCaller): Promise<string> {
    const { core } = this.#parts
    const { inputHash } = this.#judged
    if (inputHash === null) {
      this.#record.decision(judgement, null)
      throw this.#refusal(judgement, 'input_not_json')
    }
    const rejected = this.#judge.rejection(this.#judged)
    if (rejected) {
      this.#record.decision(judgement, rejected.approvalId)
      throw this.#refusal(judgement, 'approval_rejected', rejected)
    }
    if (caller.gone !== null) {
      this.#record.decision(judgement, null)
      throw this.#refusal(judgement, goneCode(caller))
    }
    const { context } = this.#part
    const callParts = { parts: this.#parts, context, call: this.#call, inputHash, record: this.#record, caller }
    const asked = await new CallApproval({ ...callParts, continues: this.#continues }).ask(judgement, this.#waitMs)
    const { outcome, approvalId } = asked
    if (outcome === 'pending') throw this.#pending(judgement, asked)
    if (caller.gone !== null && outcome !== 'timeout') throw this.#refusal(judgement, goneCode(caller), { approvalId })
    if (outcome === 'approved') return approvalId
    const { decisionReason, detail } = asked
    if (outcome === 'rejected') this.#judge.reject(this.#judged, { approvalId, decisionReason })
    if (detail !== null) {
      const message = `A tool was not run because approval could not be requested: ${detail}.`
      core.diagnostics.report('warning', 'approval_unavailable', message)
    }
    throw this.#refusal(judgement, APPROVAL_CODES[outcome], { approvalId, decisionReason })
  }

  /** A pending approval is not a refusal: the call continues after a person decides. */
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

  /** Records a decision only if a policy or detector concerns the call. Other calls have a start and a result only. */
  #recordUnlessPlain(judgement: Judgement): void {
    const { decision, verdict, policyAgeMs } = judgement
    const isPlain =
      decision.action === 'ALLOW' &&
      decision.policyIds.length === 0 &&
      verdict.failures.length === 0 &&
      policyAgeMs === null
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

  /**
   * Returns a block code if the tool could get another input than the judged one. Values that JSON cannot hold are not
   * copied.
   */
  #change(): BlockCode | null {
    const { input, readAgain } = this.#call
    if (input.judged) {
      if (!readAgain) return null
      const { judged } = takeInput(detached(readAgain()))
      const { inputHash } = this.#judged
      return judged && inputHash !== null && this.#parts.hashInput(this.#call.toolName, judged).inputHash === inputHash
        ? null
        : 'input_changed'
    }
    if (this.#snapshot === null) return 'input_not_json'
    return snapshot(readAgain ? readAgain() : input.given) === this.#snapshot ? null : 'input_changed'
  }

  get #waitMs(): number {
    const { rules } = this.#call
    return rules.configurationWaitMs ?? this.#parts.defaults.configurationWaitMs ?? CONFIGURATION_WAIT_MS
  }
}

function goneCode({ gone }: LeavingCaller): BlockCode {
  return gone === 'run_ended' || gone === 'process_ended' ? 'caller_gone' : 'aborted'
}

/** An approval is valid for one version of a policy, or for one detector. */
function basisOf({ verdict: { cause, policyId, policyVersion } }: Judgement): string {
  return JSON.stringify([cause, policyId, policyVersion])
}

function blockCodeOf({ verdict }: Judgement, { input }: TakenCall): BlockCode {
  if (input.judged === null && verdict.isFailure) return 'input_not_json'
  return BLOCK_CODES[verdict.cause ?? 'policy']
}
