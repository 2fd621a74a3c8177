/** Events and issue records of a guarded call. */
import type { Context } from '../recording/context.ts'
import type { Core, Hashed } from '../core.ts'
import type { IssueRecords, IssueReport } from '../delivery/issue-records.ts'
import { isError, readSafely } from '../recording/json.ts'
import type { Payload } from '../recording/event.ts'
import { ToolBlockedError, type BlockFacts } from './blocked.ts'
import type { Detection } from './detectors.ts'
import type { LeaveReason } from './leaving-caller.ts'
import type { TakenCall } from './input.ts'
import type { Judgement } from './judgement.ts'
import { modelText } from './model-text.ts'
import type { Recoveries } from './recoveries.ts'

interface RecordParts {
  readonly core: Core
  readonly issues: IssueRecords
  readonly recoveries: Recoveries
}

export class CallRecord {
  readonly #parts: RecordParts
  readonly #context: Context
  readonly #call: TakenCall
  readonly #inputSeals: Hashed['inputSeals']
  #startedAt = 0
  #started: Payload = {}
  isEmpty = true

  constructor(parts: RecordParts, context: Context, call: TakenCall, { inputSeals }: Hashed) {
    this.#inputSeals = inputSeals
    this.#parts = parts
    this.#context = context
    this.#call = call
  }

  decision({ decision, verdict, detections, policyAgeMs }: Judgement, approvalId: string | null): void {
    const { action, policyIds, reason, inputHash, revision } = decision
    const { failures, policyVersions } = verdict
    const { toolName, input, server } = this.#call
    this.#event('POLICY_DECISION', `${action} ${toolName}`, {
      action,
      policyIds,
      ...(policyIds.length > 0 && { policyVersions }),
      toolName,
      ...this.#callId,
      ...(server && { toolServer: server }),
      ...(inputHash !== null && { inputHash }),
      ...(approvalId !== null && { approvalId }),
      ...(reason !== null && { reason }),
      // Include the input: a blocked call has no other event that contains it.
      ...((action === 'BLOCK' || action === 'REQUIRE_APPROVAL') && {
        input: input.recorded,
        ...(this.#inputSeals && { inputSeals: this.#inputSeals }),
      }),
      ...(input.problem !== null && { inputProblem: input.problem }),
      ...(detections.length > 0 && { detections: detections.map(({ type }) => type) }),
      ...(failures.length > 0 && { failures: failures.map(({ policyId, message }) => ({ policyId, message })) }),
      ...(revision !== null && { revision }),
      ...(policyAgeMs !== null && { policyAgeMs }),
    })
  }

  /** Call it before the tool runs, because the tool may end the process. */
  start(inputHash: string | null, approvalId: string | null): void {
    const { toolName, input, riskSignals, annotations, server } = this.#call
    this.#started = {
      toolName,
      ...this.#callId,
      ...(server && { toolServer: server }),
      input: input.recorded,
      ...(riskSignals.length > 0 && { riskSignals }),
      ...(annotations && { annotations }),
      ...(inputHash !== null && { inputHash }),
      ...(approvalId !== null && { approvalId }),
    }
    const startEventId = this.#event('TOOL_START', toolName, this.#started)
    this.#started = { ...this.#started, ...(startEventId !== undefined && { startEventId }) }
    // Read the time now: the process's first recording must not count as the tool's time.
    this.#startedAt = this.#parts.core.runtime.now()
  }

  success(output: unknown): void {
    const eventId = this.#end({ outcome: 'returned', output: output ?? null })
    for (const report of this.#parts.recoveries.recovered(this.#agent, this.#call.toolName)) {
      this.#report({ ...report, eventId, recordKind: 'RECOVERY' })
    }
  }

  failure(error: unknown, isCancelled: boolean): void {
    const thrown = readSafely(() => (isError(error) ? error : String(error)), 'unreadable error')
    const eventId = this.#end({ outcome: isCancelled ? 'cancelled' : 'failed', error: thrown })
    if (isCancelled) return
    const payload = { toolName: this.#call.toolName, reasonCode: reasonCodeOf(error) }
    this.#trouble({ detectionType: 'TOOL_FAILED', payload, eventId })
  }

  /** Records that the caller of a held call has left. */
  withdrawal(facts: { approvalId: string; inputHash: string; reason: LeaveReason }): void {
    const { toolName } = this.#call
    this.#event('APPROVAL_WITHDRAWN', toolName, { toolName, ...this.#callId, ...facts })
  }

  refusal(facts: BlockFacts): ToolBlockedError {
    const { code, policyIds, approvalId } = facts
    // A caller that left or aborted is not a failure of the tool.
    if (code === 'aborted' || code === 'caller_gone') return new ToolBlockedError(facts, modelText(facts))
    const { toolName, riskSignals } = this.#call
    this.#trouble({
      detectionType: 'TOOL_BLOCKED',
      policyId: policyIds[0],
      payload: { toolName, reasonCode: code, ...(riskSignals.length > 0 && { riskSignals }) },
      evidence: { decision: 'BLOCK', ...(approvalId !== null && { approvalId }) },
    })
    return new ToolBlockedError(facts, modelText(facts))
  }

  detection({ type, action, reasonCode, isNew }: Detection): void {
    if (!isNew) return
    const payload = { toolName: this.#call.toolName, reasonCode }
    this.#report({ detectionType: type, payload, evidence: { decision: action } })
  }

  #end(result: Payload): string | undefined {
    const latency = Math.max(0, this.#parts.core.runtime.now() - this.#startedAt)
    return this.#event('TOOL_CALL', this.#call.toolName, { ...this.#started, latency, ...result })
  }

  #event(type: string, label: string, payload: Payload): string | undefined {
    this.isEmpty = false
    const { scope, span } = this.#context
    return this.#parts.core.record(scope, { type, label, payload, span })
  }

  #report(report: IssueReport): void {
    this.isEmpty = false
    const { scope, span } = this.#context
    this.#parts.issues.report(scope, { promptVersionId: span.marks?.promptVersionId, ...report })
  }

  #trouble(report: IssueReport): void {
    this.#report(report)
    this.#parts.recoveries.troubled(this.#agent, this.#call.toolName, report)
  }

  /** The model's id of the call, or the host's own key. */
  get #callId(): Payload {
    const { key, toolCallId = key } = this.#call
    return toolCallId === undefined ? {} : { toolCallId }
  }

  get #agent(): string {
    const { agentId, agentName } = this.#context.scope
    return agentId ?? agentName
  }
}

/** The error's code or name: unlike the message, it is the same for each failure of one kind. */
function reasonCodeOf(error: unknown): string {
  return readSafely(() => {
    const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
    if (typeof code === 'string' || typeof code === 'number') return String(code)
    return typeof name === 'string' ? name : 'error'
  }, 'error')
}
