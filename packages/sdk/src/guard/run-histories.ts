/**
 * The history of each run, for conditions on its past. Recorded from the first event after a policy needs it. A run
 * that began earlier has a partial history, which says so.
 */
import type { Configuration } from '../configuration/configuration.ts'
import type { Core } from '../core.ts'
import type { CarriedHistory, RecordedHistory, ToolLabels } from '../policies.ts'
import type { RunScope } from '../recording/context.ts'
import type { RunState } from '../recording/run-state.ts'

type Prepare = (history: RecordedHistory['history']) => void

/** Parts of the policy package that histories need. */
export interface HistoryEngine {
  readonly RecordedHistory: typeof RecordedHistory
  readHistory(policies: readonly { readonly condition: string }[]): boolean
  preparedFor(policies: readonly { readonly condition: string }[]): Prepare
  faultsOfLabels(rules: readonly ToolLabels[]): readonly string[]
}

interface HistoryParts {
  readonly core: Core
  readonly engine: HistoryEngine
  readonly current: () => Configuration | null
  /** The host's own policies and labels. */
  readonly own: { readonly policies: readonly { readonly condition: string }[]; readonly labels: readonly ToolLabels[] }
}

export class RunHistories {
  readonly #parts: HistoryParts
  readonly #histories = new WeakMap<RunState, RecordedHistory>()
  /** Runs with events that no history contains. */
  readonly #unseen = new WeakSet<RunState>()
  /** Set if a policy of a single tool needs histories. */
  #isForced = false
  /** Whether these policies need histories, and what prepares one for their next decision. */
  #needed: { policies: Configuration['policies'] | undefined; isNeeded: boolean; prepare: Prepare } | undefined

  /** The checked label rules, cached by the served ones. */
  #labels: { readonly served: Configuration['toolLabels'] | undefined; readonly all: readonly ToolLabels[] } | undefined

  constructor(parts: HistoryParts) {
    this.#parts = parts
    parts.core.observers.add((scope, { type, payload }) => {
      if (this.#isNeeded) {
        const recorded = this.#of(scope)
        recorded.see(type, payload)
        this.#needed?.prepare(recorded.history)
      } else if (!this.#histories.has(scope.state)) this.#unseen.add(scope.state)
    })
  }

  /** Labels of tools, from the service and the host. */
  get labels(): readonly ToolLabels[] {
    const { core, current, engine, own } = this.#parts
    const served = current()?.toolLabels
    if (this.#labels?.served !== served || !this.#labels) {
      this.#labels = { served, all: [...(served ?? []), ...own.labels] }
      for (const fault of engine.faultsOfLabels(this.#labels.all)) {
        const message = `A condition of labels cannot be used, so they are \`unknown\`: ${fault}`
        core.diagnostics.report('warning', 'label_condition_invalid', message)
      }
    }
    return this.#labels.all
  }

  /** Undefined if no policy needs a history, or nothing is known of the past. @param ofTool policies of one tool */
  of(scope: RunScope, ofTool: HistoryParts['own']['policies'] = []): RecordedHistory['history'] | undefined {
    this.#isForced ||= ofTool.length > 0 && this.#parts.engine.readHistory(ofTool)
    return this.#isNeeded && labelsBefore(scope) !== null ? this.#of(scope).history : undefined
  }

  #of(scope: RunScope): RecordedHistory {
    const { state } = scope
    const known = this.#histories.get(state)
    if (known) return known
    const { core, engine } = this.#parts
    const recorded = new engine.RecordedHistory(
      () => this.labels,
      () => core.runtime.now(),
      (act) => void core.runtime.timer(0, act),
    )
    const { messages, toolCalls } = core.carrying!.usages.of(scope)
    const labels = labelsBefore(scope)
    if (this.#unseen.has(state)) recorded.history.continues(undefined)
    else if (scope.handed) recorded.history.continues(scope.handed.history as CarriedHistory | undefined)
    else if (scope.usedBefore) recorded.history.continues(labels ? (scope.usedBefore as CarriedHistory) : undefined)
    // The run had calls before the guard was loaded, and no conversation contains their results.
    else if (messages === undefined && toolCalls > 0) recorded.history.continues(undefined)
    if (Array.isArray(messages)) recorded.converse(messages)
    else recorded.history.said(messages ?? '')
    state.history = recorded.history
    this.#histories.set(state, recorded)
    return recorded
  }

  get #isNeeded(): boolean {
    const { current, own, engine } = this.#parts
    const policies = current()?.policies
    if (!this.#needed || this.#needed.policies !== policies) {
      // Until the first configuration is loaded, policies may need it.
      const all = [...(policies ?? []), ...own.policies]
      this.#needed = {
        policies,
        isNeeded: !policies || engine.readHistory(all),
        prepare: engine.preparedFor(all),
      }
    }
    return this.#isForced || this.#needed.isNeeded
  }
}

/** Labels of the run's other processes, as the host reports them. */
function labelsBefore({ usedBefore }: RunScope): readonly string[] | null | undefined {
  return (usedBefore as { labels?: readonly string[] | null } | undefined)?.labels
}
