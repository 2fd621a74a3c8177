/** What each run has used so far, counted as its events are recorded. */
import type { RunScope } from './context.ts'
import type { Core } from './core.ts'
import type { Draft } from './event.ts'

export interface RunUsage {
  toolCalls: number
  totalTokens: number
  cost: number
  /** When this process first saw the run, in milliseconds. */
  readonly since: number
}

export interface RunUsages {
  of(scope: RunScope): RunUsage
}

/** Keyed weakly, so nothing outlives the run. */
export function createRunUsages({ observers, runtime }: Pick<Core, 'observers' | 'runtime'>): RunUsages {
  const usages = new WeakMap<RunScope, RunUsage>()
  function of(scope: RunScope): RunUsage {
    let usage = usages.get(scope)
    if (!usage) {
      usage = { toolCalls: 0, totalTokens: 0, cost: 0, since: runtime.now() }
      usages.set(scope, usage)
    }
    return usage
  }
  observers.add((scope, draft) => count(of(scope), draft))
  return { of }
}

function count(usage: RunUsage, { type, payload }: Draft): void {
  if (type === 'TOOL_CALL') usage.toolCalls++
  if (type !== 'LLM_CALL') return
  const { cost, usage: tokens } = payload ?? {}
  // An object, whatever an untyped host passed.
  const { promptTokens, completionTokens, totalTokens } = Object(tokens) as Record<string, unknown>
  usage.cost += amount(cost)
  usage.totalTokens += amount(totalTokens) || amount(promptTokens) + amount(completionTokens)
}

function amount(value: unknown): number {
  return typeof value === 'number' && value > 0 && Number.isFinite(value) ? value : 0
}
