import type { RunScope } from '../recording/context.ts'
import type { ConfigurationSource } from '../configuration/source.ts'
import type { Core, HashInput } from '../core.ts'
import type { Decision, Facts, Policy, ToolLabels } from '../policies.ts'
import type { RunState } from '../recording/run-state.ts'
import {
  createBudgetDetector,
  createLoopDetector,
  type BudgetDetector,
  type Detection,
  type LoopDetector,
} from './detectors.ts'
import { RunHistories, type HistoryEngine } from './run-histories.ts'
import type { CallDecision, GuardDefaults, GuardRules } from './rules.ts'
import type { SealEngine } from './seal.ts'
import { combineVerdict, type Verdict } from './verdict.ts'

export interface PolicyEngine extends SealEngine, HistoryEngine {
  labelsOfCall(rules: readonly ToolLabels[], facts: Facts): { readonly does: readonly string[] }
  decide(policies: readonly Policy[], facts: Facts): Decision
}

export interface JudgeParts {
  readonly core: Core
  readonly configuration: ConfigurationSource
  readonly engine: PolicyEngine
  readonly defaults: GuardDefaults
  readonly hashInput: HashInput
}

export interface JudgedCall {
  readonly scope: RunScope
  readonly toolName: string
  /** Null if the input cannot be read. */
  readonly input: Readonly<Record<string, unknown>> | null
  readonly inputHash: string | null
  readonly riskSignals: readonly string[]
  readonly annotations: Readonly<Record<string, unknown>> | undefined
  readonly server: string | undefined
}

export interface Judgement {
  readonly decision: CallDecision
  readonly verdict: Verdict
  readonly detections: readonly Detection[]
  /** Null unless the policies are older than the limit. */
  readonly policyAgeMs: number | null
}

/** Stands for an unreadable input: each condition that reads it fails. */
const UNREADABLE = Symbol('an input that cannot be read') as unknown as Record<string, unknown>

/** A person's rejection of one tool and input in a run. */
export interface Rejection {
  readonly approvalId: string | null
  readonly decisionReason: string | null
}

interface Watch {
  readonly loop: LoopDetector | null
  readonly budget: BudgetDetector
  readonly rejections: Map<string, Rejection>
}

const REJECTIONS_MAX = 1_000

/** Remembers detectors and rejections by run. */
export class Judge {
  readonly #parts: JudgeParts
  readonly #histories: RunHistories
  readonly #watches = new WeakMap<RunState, Watch>()

  constructor(parts: JudgeParts) {
    this.#parts = parts
    const { core, configuration, engine, defaults } = parts
    const localRules = { policies: defaults.policies ?? [], labels: defaults.labels ?? [] }
    this.#histories = new RunHistories({ core, engine, own: localRules, current: () => configuration.state.current })
  }

  /** Counts repeats, so call it once for each call. */
  observe({ scope, toolName, inputHash }: JudgedCall): Detection | null {
    return inputHash === null ? null : (this.#watch(scope).loop?.observe(toolName, inputHash) ?? null)
  }

  /** @param loop what `observe` returned. */
  judge(call: JudgedCall, loop: Detection | null, rules: GuardRules): Judgement {
    const { core, configuration, engine, defaults } = this.#parts
    const { scope, toolName, inputHash } = call
    const { current } = configuration.state
    const callPolicies = [...(defaults.policies ?? []), ...(rules.policies ?? [])]
    const policies = current
      ? callPolicies.length > 0
        ? [...current.policies, ...callPolicies]
        : current.policies
      : callPolicies
    const { toolCalls, totalTokens, cost, since } = core.carrying!.usages.of(scope)
    const seconds = (core.runtime.now() - since) / 1_000
    const budget = this.#watch(scope).budget.check({ toolCalls, totalTokens, cost, seconds })
    const detections = [loop, budget].filter((detection) => detection !== null)
    const now = core.runtime.now()
    const tool = { name: toolName, server: call.server, input: call.input ?? UNREADABLE, annotations: call.annotations }
    const { does: labels } = engine.labelsOfCall(this.#histories.labels, { tool, now })
    const history = this.#histories.of(scope, rules.policies)
    const decided = engine.decide(policies, {
      tool: { ...tool, labels },
      agent: { id: scope.agentId, name: scope.agentName },
      run: { id: scope.runId, cost, totalTokens, toolCalls, history },
      session: { id: scope.sessionId },
      risk: { signals: [...call.riskSignals, ...detections.map(({ type }) => type.toLowerCase())] },
      now,
    })
    const verdict = combineVerdict(decided, detections, current !== null || this.#isOpen(rules))
    if (current === null && core.options.enabled !== false) {
      const message = this.#isOpen(rules) ? UNCHECKED : UNCONFIGURED
      core.diagnostics.report('warning', 'guard_unconfigured', message)
    }
    const { action, policyIds, reason } = verdict
    const revision = current?.revision ?? null
    return {
      decision: { action, policyIds, reason, inputHash, detections, revision },
      verdict,
      detections,
      policyAgeMs: configuration.oldMs,
    }
  }

  /** The earlier rejection of the same call in this run. It is final, so nobody is asked again. */
  rejection({ scope, inputHash }: JudgedCall): Rejection | undefined {
    return this.#watch(scope).rejections.get(String(inputHash))
  }

  reject({ scope, inputHash }: JudgedCall, rejection: Rejection): void {
    const { rejections } = this.#watch(scope)
    rejections.set(String(inputHash), rejection)
    const [oldest] = rejections.size > REJECTIONS_MAX ? rejections.keys() : []
    if (oldest !== undefined) rejections.delete(oldest)
  }

  #isOpen(rules: GuardRules): boolean {
    const { core, defaults } = this.#parts
    const fallback = core.options.enabled === false ? 'allow' : 'block'
    return (rules.whenUnconfigured ?? defaults.whenUnconfigured ?? fallback) === 'allow'
  }

  #watch({ state }: RunScope): Watch {
    let watch = this.#watches.get(state)
    if (!watch) {
      const { loop = {}, budget = {} } = this.#parts.defaults
      watch = {
        loop: loop === false ? null : createLoopDetector(loop, state.recentCalls),
        budget: createBudgetDetector(budget),
        rejections: new Map(),
      }
      this.#watches.set(state, watch)
    }
    return watch
  }
}

const UNCONFIGURED =
  'No policies could be loaded, so guarded tools do not run. Check the service, the key and its scopes config:read and policies:read.'
const UNCHECKED = 'No policies could be loaded: guarded tools run unchecked, as whenUnconfigured says.'
