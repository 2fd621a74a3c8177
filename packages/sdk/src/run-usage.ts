/** What a run used so far, for policies and budgets. Counted when events are recorded. */
import type { RunScope } from './context.ts'
import type { Draft } from './event.ts'
import type { RunState } from './run-state.ts'
import type { Runtime } from './runtime.ts'
import { callCounts } from './usage-shapes.ts'

export interface RunUsage {
  toolCalls: number
  totalTokens: number
  cost: number
  /** By tool. Counted at admission, so their TOOL_CALL events are not counted again. */
  readonly admitted: Map<string, number>
  /** In milliseconds, without the time between the run's processes. */
  since: number
}

export interface RunUsages {
  of(scope: Pick<RunScope, 'state' | 'usedBefore'>): RunUsage
  /** By the count of another process of the run. */
  atLeast(scope: RunScope, used: unknown): void
  /** Counted before it runs: budgets bind the calls beside it. */
  admit(scope: RunScope, toolName: string): void
}

const TOOLS_MAX = 1_000

interface Parts {
  readonly observers: Set<(scope: RunScope, draft: Draft) => void>
  readonly runtime: Pick<Runtime, 'now'>
}

/** Keyed weakly by the state of a run, so nothing outlives it. */
export function createRunUsages({ observers, runtime }: Parts): RunUsages {
  const usages = new WeakMap<RunState, RunUsage>()
  function of({ state, usedBefore }: Pick<RunScope, 'state' | 'usedBefore'>): RunUsage {
    let usage = usages.get(state)
    if (!usage) {
      usage = { ...usedOf(usedBefore, runtime.now()), admitted: new Map() }
      usages.set(state, usage)
    }
    return usage
  }
  function atLeast(scope: RunScope, used: unknown): void {
    const usage = of(scope)
    const other = usedOf(used, runtime.now())
    for (const name of ['toolCalls', 'totalTokens', 'cost'] as const) usage[name] = Math.max(usage[name], other[name])
    usage.since = Math.min(usage.since, other.since)
  }
  function admit(scope: RunScope, toolName: string): void {
    const usage = of(scope)
    usage.toolCalls++
    const { admitted } = usage
    admitted.set(toolName, (admitted.get(toolName) ?? 0) + 1)
    const [oldest] = admitted.size > TOOLS_MAX ? admitted.keys() : []
    if (oldest !== undefined) admitted.delete(oldest)
  }
  observers.add((scope, draft) => count(of(scope), draft))
  return { of, atLeast, admit }
}

function usedOf(used: unknown, now: number) {
  const { toolCalls, totalTokens, cost, seconds } = Object(used) as Record<string, unknown>
  return {
    toolCalls: Math.floor(amount(toolCalls)),
    totalTokens: Math.floor(amount(totalTokens)),
    cost: amount(cost),
    since: now - amount(seconds) * 1_000,
  }
}

function count(usage: RunUsage, { type, payload }: Draft): void {
  if (type === 'TOOL_CALL' && !takeAdmitted(usage, payload?.['toolName'])) usage.toolCalls++
  if (type !== 'LLM_CALL' || payload?.['notCounted']) return
  const { cost, usage: sent } = payload ?? {}
  usage.cost += amount(cost)
  const { promptTokens, completionTokens, totalTokens } = callCounts(sent) ?? {}
  usage.totalTokens += totalTokens ?? (promptTokens ?? 0) + (completionTokens ?? 0)
}

function takeAdmitted({ admitted }: RunUsage, toolName: unknown): boolean {
  const name = toolName as string
  const calls = admitted.get(name) ?? 0
  if (calls > 1) admitted.set(name, calls - 1)
  else admitted.delete(name)
  return calls > 0
}

function amount(value: unknown): number {
  return typeof value === 'number' && value > 0 && Number.isFinite(value) ? value : 0
}
