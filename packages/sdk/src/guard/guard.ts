/**
 * Stands between an agent and its tools.
 *
 *   call --policies, detectors--> ALLOW, WARN ----------------------------> the tool runs, if its input is unchanged
 *                            \--> REQUIRE_APPROVAL --a person: APPROVED-->/
 *                            |                     \--everything else----> ToolBlockedError
 *                            \--> BLOCK ---------------------------------> ToolBlockedError
 */
import type { RunScope } from '../context.ts'
import type { ConfigurationSource } from '../configuration/source.ts'
import type { Core } from '../core.ts'
import type { IssueRecords, IssueReport } from '../issue-records.ts'
import type { Decision, Facts, Policy } from '../policies.ts'
import type { RunUsages } from '../run-usage.ts'
import { askApproval, type ApprovalOutcome } from './approval.ts'
import { ToolBlockedError, type BlockCode, type BlockFacts } from './blocked.ts'
import { modelText } from './model-text.ts'
import type { StopSignal } from '../runtime.ts'
import {
  createBudgetDetector,
  createLoopDetector,
  type BudgetDetector,
  type Detection,
  type LoopDetector,
} from './detectors.ts'
import { createRecoveries } from './recoveries.ts'
import { inputOfArguments, snapshot } from './input.ts'
import type { Authorization, Call, CallDecision, GuardDefaults, GuardOptions, GuardRules } from './rules.ts'
import { judge, type Verdict } from './verdict.ts'

export interface PolicyEngine {
  decide(policies: readonly Policy[], facts: Facts): Decision
  inputHash(toolName: string, input: unknown): string
}

interface GuardParts {
  readonly core: Core
  readonly configuration: ConfigurationSource
  readonly issues: IssueRecords
  readonly usages: RunUsages
  readonly engine: PolicyEngine
  readonly defaults: GuardDefaults
}

interface Watch {
  readonly loop: LoopDetector | null
  readonly budget: BudgetDetector
}

const CONFIGURATION_WAIT_MS = 2_000
const APPROVAL_TIMEOUT_MS = 300_000
const APPROVAL_TIMEOUT_MIN_MS = 1_000
const APPROVAL_TIMEOUT_MAX_MS = 86_400_000

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

type Judged = CallDecision & {
  readonly verdict: Verdict
  readonly failures: Decision['failures']
  /** To compare the input: its hash or a snapshot. */
  readonly taken: string | null
}

export class Guard {
  readonly #core: Core
  readonly #configuration: ConfigurationSource
  readonly #issues: IssueRecords
  readonly #usages: RunUsages
  readonly #engine: PolicyEngine
  readonly #defaults: GuardDefaults
  readonly #watches = new WeakMap<RunScope, Watch>()
  readonly #recoveries = createRecoveries()

  constructor({ core, configuration, issues, usages, engine, defaults }: GuardParts) {
    this.#core = core
    this.#configuration = configuration
    this.#issues = issues
    this.#usages = usages
    this.#engine = engine
    this.#defaults = defaults
  }

  /** Waits for the first policies, within bounds. */
  async prepare(rules: GuardRules): Promise<void> {
    const waitMs = rules.configurationWaitMs ?? this.#defaults.configurationWaitMs ?? CONFIGURATION_WAIT_MS
    if (!this.#configuration.state.current) await this.#configuration.ready(waitMs)
  }

  /** Decides and records. */
  async decide(scope: RunScope | undefined, call: Call, rules: GuardRules): Promise<CallDecision> {
    await this.prepare(rules)
    const judged = this.#judge(scope, call, rules)
    const { action } = judged
    if (action !== 'ALLOW' || judged.policyIds.length > 0 || judged.failures.length > 0) {
      this.#recordDecision(scope, call, judged, {})
    }
    if (action === 'BLOCK') this.#reportBlocked(scope, call, this.#blockFacts(call, judged, blockCodeOf(judged)))
    const { policyIds, reason, inputHash, detections, revision } = judged
    return { action, policyIds, reason, inputHash, detections, revision }
  }

  /**
   * Decides, records, and asks a person if a policy requires that. Runs nothing.
   * @throws ToolBlockedError if the call may not run.
   */
  async authorize(
    scope: RunScope | undefined,
    call: Call,
    rules: GuardRules,
    signal?: StopSignal,
  ): Promise<Authorization> {
    await this.prepare(rules)
    const { judged, approvalId } = await this.#authorize(scope, call, rules, signal)
    const { action, policyIds, reason, inputHash, detections, revision } = judged
    return { action, policyIds, reason, inputHash, detections, revision, approvalId }
  }

  async #authorize(
    scope: RunScope | undefined,
    call: Call,
    rules: GuardRules,
    signal: StopSignal | undefined,
  ): Promise<{ judged: Judged; approvalId: string | null }> {
    const judged = this.#judge(scope, call, rules)
    const { action } = judged
    let approvalId: string | null = null
    if (action === 'BLOCK') {
      this.#recordDecision(scope, call, judged, {})
      throw this.#refuse(scope, call, this.#blockFacts(call, judged, blockCodeOf(judged)))
    }
    if (action === 'REQUIRE_APPROVAL') approvalId = await this.#approve(scope, call, judged, rules, signal)
    else if (action === 'WARN' || judged.policyIds.length > 0 || judged.failures.length > 0) {
      this.#recordDecision(scope, call, judged, {})
    }
    return { judged, approvalId }
  }

  /** One call of a wrapped tool. */
  wrapped<Args extends unknown[], T>(
    scope: RunScope | undefined,
    tool: (...args: Args) => T,
    options: GuardOptions<Args>,
    args: Args,
  ): Promise<Awaited<T>> {
    const { name, input: inputOf = inputOfArguments, riskSignals, signal, ...rules } = options
    const current = (): Call => ({
      toolName: name,
      input: inputOf(...args),
      riskSignals: riskSignals?.(...args) ?? [],
    })
    return this.call<T>(scope, current, rules, () => tool(...args), signal?.(...args))
  }

  /**
   * Runs `act` if the call may run, and records the result.
   * @param current reads the call again, to check that its input is still the one the decision was about.
   * @throws ToolBlockedError if the call may not run; otherwise whatever `act` throws.
   */
  async call<T>(
    scope: RunScope | undefined,
    current: () => Call,
    rules: GuardRules,
    act: () => T,
    signal?: StopSignal,
  ): Promise<Awaited<T>> {
    await this.prepare(rules)
    const call = current()
    const { judged, approvalId } = await this.#authorize(scope, call, rules, signal)
    // Nothing between here and `act` is asynchronous, so the input cannot change after the comparison.
    if (!this.#isUnchanged(current, call.toolName, judged)) {
      throw this.#refuse(scope, call, { ...this.#blockFacts(call, judged, 'input_changed'), approvalId })
    }
    return this.#run(scope, call, judged, approvalId, act)
  }

  #judge(scope: RunScope | undefined, call: Call, rules: GuardRules): Judged {
    const { options, runtime, settings } = this.#core
    const { toolName } = call
    const { current } = this.#configuration.state
    const own = [...(this.#defaults.policies ?? []), ...(rules.policies ?? [])]
    const policies = current ? (own.length > 0 ? [...current.policies, ...own] : current.policies) : own
    const usage = scope && this.#usages.of(scope)
    const inputHash = this.#hash(toolName, call.input)
    const detections = scope && usage && inputHash !== null ? this.#detect(scope, toolName, inputHash) : []
    const signals = [...(call.riskSignals ?? []), ...detections.map(({ type }) => type.toLowerCase())]
    const decision = this.#engine.decide(policies, {
      tool: { name: toolName, input: call.input as Record<string, unknown> | undefined },
      agent: { id: scope?.agentId ?? settings.agentId, name: scope?.agentName ?? settings.agentName },
      run: usage && { id: scope?.runId, cost: usage.cost, totalTokens: usage.totalTokens, toolCalls: usage.toolCalls },
      session: { id: scope?.sessionId },
      risk: { signals },
      now: runtime.now(),
    })
    const isOff = options.enabled === false
    const fallback = rules.whenUnconfigured ?? this.#defaults.whenUnconfigured ?? (isOff ? 'allow' : 'block')
    const isOpen = fallback === 'allow'
    const verdict = judge(decision, detections, current !== null || isOpen)
    if (current === null && !isOff) {
      this.#core.diagnostics.report('warning', 'guard_unconfigured', isOpen ? UNCHECKED : UNCONFIGURED)
    }
    for (const detection of detections) this.#reportDetection(scope, call, detection)
    const { action, policyIds, reason } = verdict
    const revision = current?.revision ?? null
    const { failures } = decision
    const taken = inputHash ?? snapshot(call.input)
    return { action, policyIds, reason, inputHash, detections, revision, verdict, failures, taken }
  }

  #detect(scope: RunScope, toolName: string, inputHash: string): Detection[] {
    let watch = this.#watches.get(scope)
    if (!watch) {
      const { loop = {}, budget = {} } = this.#defaults
      watch = { loop: loop === false ? null : createLoopDetector(loop), budget: createBudgetDetector(budget) }
      this.#watches.set(scope, watch)
    }
    const { toolCalls, totalTokens, cost, since } = this.#usages.of(scope)
    const seconds = (this.#core.runtime.now() - since) / 1_000
    const found = [
      watch.loop?.observe(toolName, inputHash),
      watch.budget.check({ toolCalls, totalTokens, cost, seconds }),
    ]
    return found.filter((detection) => detection !== null && detection !== undefined)
  }

  /** The id of the approval. @throws ToolBlockedError unless a person approved. */
  async #approve(
    scope: RunScope | undefined,
    call: Call,
    judged: Judged,
    rules: GuardRules,
    signal: StopSignal | undefined,
  ): Promise<string> {
    const { ids, mask, settings } = this.#core
    const { inputHash, verdict } = judged
    if (inputHash === null) {
      this.#recordDecision(scope, call, judged, {})
      throw this.#refuse(scope, call, this.#blockFacts(call, judged, 'input_not_json'))
    }
    const timeoutMs = rules.approvalTimeoutMs ?? this.#defaults.approvalTimeoutMs ?? APPROVAL_TIMEOUT_MS
    const request = {
      clientRequestId: ids.uuid(),
      runId: scope?.runId,
      sessionId: scope?.sessionId,
      agentId: scope?.agentId ?? settings.agentId,
      policyId: verdict.policyId ?? undefined,
      toolName: call.toolName,
      inputHash,
      reason: verdict.reason === null ? undefined : mask.text(verdict.reason),
      timeoutMs: Math.round(Math.min(Math.max(timeoutMs, APPROVAL_TIMEOUT_MIN_MS), APPROVAL_TIMEOUT_MAX_MS)),
    }
    let isRecorded = false
    const onCreated = (approvalId: string) => {
      isRecorded = true
      // Send the input at once: operators see it beside the approval.
      this.#recordDecision(scope, call, judged, { approvalId })
      void this.#core.sender.flush(settings.flushTimeoutMs)
    }
    const outcome = await askApproval(this.#core, request, onCreated, signal)
    if (!isRecorded) this.#recordDecision(scope, call, judged, {})
    if (outcome.outcome === 'approved') return outcome.approvalId
    const code = APPROVAL_CODES[outcome.outcome]
    const { approvalId, decisionReason, detail } = outcome
    if (detail !== null) {
      const message = `A tool was not run because approval could not be requested: ${detail}.`
      this.#core.diagnostics.report('warning', 'approval_unavailable', message)
    }
    throw this.#refuse(scope, call, { ...this.#blockFacts(call, judged, code), approvalId, decisionReason })
  }

  async #run<T>(
    scope: RunScope | undefined,
    call: Call,
    { inputHash }: CallDecision,
    approvalId: string | null,
    act: () => T,
  ): Promise<Awaited<T>> {
    const { runtime } = this.#core
    const { toolName, input, riskSignals = [] } = call
    const start = runtime.now()
    const facts = () => ({
      toolName,
      input: input ?? {},
      ...(riskSignals.length > 0 && { riskSignals }),
      latency: Math.max(0, runtime.now() - start),
      ...(inputHash !== null && { inputHash }),
      ...(approvalId !== null && { approvalId }),
    })
    try {
      const output = await act()
      const payload = { ...facts(), output: output ?? null }
      const eventId = this.#core.record(scope, { type: 'TOOL_CALL', label: toolName, payload })
      for (const report of this.#recoveries.recovered(agentOf(scope), toolName)) {
        this.#issues.report(scope, { ...report, eventId, recordKind: 'RECOVERY' })
      }
      return output
    } catch (error) {
      const payload = { ...facts(), error: error instanceof Error ? error : String(error) }
      const eventId = this.#core.record(scope, { type: 'TOOL_CALL', label: toolName, payload })
      const report = {
        detectionType: 'TOOL_FAILED',
        payload: { toolName, reasonCode: reasonCodeOf(error) },
        eventId,
      }
      this.#issues.report(scope, report)
      this.#recoveries.troubled(agentOf(scope), toolName, report)
      throw error
    }
  }

  #hash(toolName: string, input: unknown): string | null {
    try {
      return this.#engine.inputHash(toolName, input)
    } catch {
      return null
    }
  }

  #isUnchanged(current: () => Call, toolName: string, { taken }: Judged): boolean {
    const { toolName: name, input } = current()
    return name === toolName && taken !== null && taken === (this.#hash(name, input) ?? snapshot(input))
  }

  #recordDecision(scope: RunScope | undefined, call: Call, judged: Judged, more: { approvalId?: string }): void {
    const { action, policyIds, reason, inputHash, detections, revision, failures } = judged
    const payload = {
      action,
      policyIds,
      toolName: call.toolName,
      ...(inputHash !== null && { inputHash }),
      ...more,
      ...(reason !== null && { reason }),
      // A blocked call has no TOOL_CALL event, so record its input here.
      ...((action === 'BLOCK' || action === 'REQUIRE_APPROVAL') && { input: call.input ?? {} }),
      ...(detections.length > 0 && { detections: detections.map(({ type }) => type) }),
      ...(failures.length > 0 && { failures: failures.map(({ policyId, message }) => ({ policyId, message })) }),
      ...(revision !== null && { revision }),
    }
    this.#core.record(scope, { type: 'POLICY_DECISION', label: `${action} ${call.toolName}`, payload })
  }

  #blockFacts({ toolName }: Call, { inputHash, policyIds, reason }: CallDecision, code: BlockCode): BlockFacts {
    return { code, toolName, inputHash, policyIds, approvalId: null, decisionReason: null, reason }
  }

  #refuse(scope: RunScope | undefined, call: Call, facts: BlockFacts): ToolBlockedError {
    this.#reportBlocked(scope, call, facts)
    return new ToolBlockedError(facts, modelText(facts))
  }

  #reportBlocked(scope: RunScope | undefined, { toolName, riskSignals }: Call, facts: BlockFacts): void {
    const { code, policyIds, approvalId } = facts
    const report: IssueReport = {
      detectionType: 'TOOL_BLOCKED',
      policyId: policyIds[0],
      payload: { toolName, reasonCode: code, ...(riskSignals && { riskSignals }) },
      evidence: { decision: 'BLOCK', ...(approvalId !== null && { approvalId }) },
    }
    this.#issues.report(scope, report)
    this.#recoveries.troubled(agentOf(scope), toolName, report)
  }

  #reportDetection(scope: RunScope | undefined, { toolName }: Call, { type, action, reasonCode, isNew }: Detection) {
    if (!isNew) return
    const payload = { toolName, reasonCode }
    this.#issues.report(scope, { detectionType: type, payload, evidence: { decision: action } })
  }
}

const UNCONFIGURED =
  'No policies could be loaded, so guarded tools do not run. Check the service, the key and its scopes config:read and policies:read.'
const UNCHECKED = 'No policies could be loaded: guarded tools run unchecked, as whenUnconfigured says.'

function blockCodeOf({ verdict }: Judged): BlockCode {
  return BLOCK_CODES[verdict.cause ?? 'policy']
}

function agentOf(scope: RunScope | undefined): string {
  return scope?.agentId ?? scope?.agentName ?? ''
}

/** Stays the same from one failure to the next, unlike a message. */
function reasonCodeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  if (typeof code === 'string' || typeof code === 'number') return String(code)
  return typeof name === 'string' ? name : 'error'
}
