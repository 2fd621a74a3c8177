/** What each run has used so far, counted as its events are recorded. */
import type { RunScope } from './context.ts'
import type { Core } from './core.ts'
import type { Draft } from './event.ts'

export interface RunUsage {
  toolCalls: number
  totalTokens: number
  cost: number
  /** Calls that were counted when they were admitted, by tool: their TOOL_CALL events are not counted again. */
  readonly admitted: Map<string, number>
  /** When this process first saw the run, in milliseconds. */
  readonly since: number
}

export interface RunUsages {
  of(scope: RunScope): RunUsage
  /** Counts a call that may run: budgets bind the calls beside it. */
  admit(scope: RunScope, toolName: string): void
}

const TOOLS_MAX = 1_000

/** Keyed weakly, so nothing outlives the run. */
export function createRunUsages({ observers, runtime }: Pick<Core, 'observers' | 'runtime'>): RunUsages {
  const usages = new WeakMap<RunScope, RunUsage>()
  function of(scope: RunScope): RunUsage {
    let usage = usages.get(scope)
    if (!usage) {
      const { toolCalls, totalTokens, cost } = Object(scope.usedBefore) as Record<string, unknown>
      usage = {
        toolCalls: Math.floor(amount(toolCalls)),
        totalTokens: Math.floor(amount(totalTokens)),
        cost: amount(cost),
        admitted: new Map(),
        since: runtime.now(),
      }
      usages.set(scope, usage)
    }
    return usage
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
  return { of, admit }
}

function count(usage: RunUsage, { type, payload }: Draft): void {
  if (type === 'TOOL_CALL' && !takeAdmitted(usage, payload?.['toolName'])) usage.toolCalls++
  if (type !== 'LLM_CALL') return
  const { cost, usage: sent } = payload ?? {}
  usage.cost += amount(cost)
  usage.totalTokens += tokens(sent, 'total') || tokens(sent, 'prompt', 'input') + tokens(sent, 'completion', 'output')
}

function takeAdmitted({ admitted }: RunUsage, toolName: unknown): boolean {
  const name = toolName as string
  const calls = admitted.get(name) ?? 0
  if (calls > 1) admitted.set(name, calls - 1)
  else admitted.delete(name)
  return calls > 0
}

/** As the service counts them: the first name with a value counts. An untyped host may have passed anything. */
function tokens(sent: unknown, name: string, otherName?: string): number {
  const fields = Object(sent) as Record<string, unknown>
  const found = fields[`${name}Tokens`] ?? fields[`${name}_tokens`]
  return otherName !== undefined && (found ?? null) === null ? tokens(sent, otherName) : amount(found)
}

function amount(value: unknown): number {
  return typeof value === 'number' && value > 0 && Number.isFinite(value) ? value : 0
}
