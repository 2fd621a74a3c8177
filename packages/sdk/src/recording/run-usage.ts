/** Usage of a run so far, for policies and budgets. Counted when events are recorded. */
import type { RunScope } from './context.ts'
import type { Draft } from './event.ts'
import type { CarriedState } from './carried-state.ts'
import { readSafely } from './json.ts'
import { carriedState, renew, resumedState, type RunState, type SharedStates } from './run-state.ts'
import type { Runtime } from '../delivery/runtime.ts'

export interface RunUsage {
  toolCalls: number
  totalTokens: number
  cost: number
  /** By tool. Counted at admission, so their TOOL_CALL events are not counted again. */
  readonly admitted: Map<unknown, number>
  /** Copies of usages, unread until they are needed: reading their shapes takes a third of a record call. */
  readonly uncounted: unknown[]
  /** Messages of the newest model call, or the payload of a newer USER_INPUT. */
  messages?: unknown
  /** Start in milliseconds, without the time between the run's processes. */
  since: number
}

export interface RunUsages {
  of(scope: Pick<RunScope, 'state' | 'usedBefore'>): RunUsage
  /** Raises the usage to the count of another process of the run. */
  atLeast(scope: RunScope, used: unknown): void
  /** Loads the counting of tokens. Earlier calls may not count. In Node, it is there at once. */
  load(): Promise<void>
}

const TOOLS_MAX = 1_000
const UNCOUNTED_MAX = 1_000

type CountsOf = (
  sent: unknown,
) => Readonly<Partial<Record<'promptTokens' | 'completionTokens' | 'totalTokens', unknown>>> | null

/** Reads what a model call used. */
export interface Counting {
  readonly callCounts?: CountsOf
  /** The table is as large as an eighth of the core. */
  readonly loadCounts: () => Promise<CountsOf>
}

interface Parts {
  readonly observers: Set<(scope: RunScope, draft: Draft) => void>
  readonly runtime: Pick<Runtime, 'now'>
}

/** State of a run that guards need, in all its processes. */
export interface Carrying {
  readonly usages: RunUsages
  resumed(runId: string, given: CarriedState): RunState
  carried(scope: RunScope): CarriedState
}

export function createCarrying({ observers, runtime }: Parts, counting: Counting): Carrying {
  const usages = createRunUsages({ observers, runtime }, counting)
  // Shared states: another process may continue these runs, or this process again.
  const states: SharedStates = new Map()
  return {
    usages,
    resumed: (runId, carriedState) => resumedState(states, runId, carriedState),
    carried(scope) {
      const { toolCalls, totalTokens, cost, since } = usages.of(scope)
      const seconds = Math.max(0, runtime.now() - since) / 1_000
      return carriedState(states, scope, { toolCalls, totalTokens, cost, seconds })
    },
  }
}

/** Keyed weakly by the state of a run, so nothing outlives it. */
export function createRunUsages({ observers, runtime }: Parts, { callCounts, loadCounts }: Counting): RunUsages {
  const usages = new WeakMap<RunState, RunUsage>()
  let countsOf = callCounts
  const load = async () => {
    countsOf ??= await loadCounts()
  }
  function of({ state, usedBefore }: Pick<RunScope, 'state' | 'usedBefore'>, isAsked = true): RunUsage {
    let usage = usages.get(state)
    if (!usage) {
      usage = { ...usedOf(usedBefore, runtime.now()), admitted: new Map(), uncounted: [] }
      usages.set(state, usage)
    }
    for (const sent of isAsked && countsOf ? usage.uncounted.splice(0) : []) {
      const { promptTokens, completionTokens, totalTokens } = readSafely(() => countsOf?.(sent), null) ?? {}
      usage.totalTokens += amount(totalTokens ?? amount(promptTokens) + amount(completionTokens))
    }
    return usage
  }
  function atLeast(scope: RunScope, used: unknown): void {
    const usage = of(scope)
    const other = usedOf(used, runtime.now())
    for (const name of ['toolCalls', 'totalTokens', 'cost'] as const) usage[name] = Math.max(usage[name], other[name])
    usage.since = Math.min(usage.since, other.since)
  }
  observers.add((scope, { type, payload }) => {
    const usage = of(scope, false)
    const { toolName, notCounted, cost, usage: sent, messages } = payload ?? {}
    if (type === 'TOOL_CALL') {
      const calls = usage.admitted.get(toolName)
      if (calls) usage.admitted.set(toolName, calls - 1)
      else usage.toolCalls++
    }
    if (type === 'USER_INPUT') usage.messages = payload
    if (type !== 'LLM_CALL') return
    usage.messages = messages
    if (notCounted) return
    usage.cost += amount(cost)
    const length = usage.uncounted.push(typeof sent === 'object' ? { ...sent } : 0)
    if (length > UNCOUNTED_MAX) of(scope).uncounted.splice(UNCOUNTED_MAX)
    if (!countsOf) load().catch(() => undefined)
  })
  return { of, atLeast, load }
}

/** Counts a call before it runs, so that budgets include calls that run at the same time. */
export function countCall(usage: RunUsage, toolName: string): void {
  usage.toolCalls++
  const { admitted } = usage
  renew(admitted, toolName, (admitted.get(toolName) ?? 0) + 1, TOOLS_MAX)
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

function amount(value: unknown): number {
  return Number.isFinite(value) && (value as number) > 0 ? (value as number) : 0
}
