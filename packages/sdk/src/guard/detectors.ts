/** Detectors that examine one run: loops and budgets. Pure: the caller supplies clock and usage. */

/** Action of a detector on a finding, besides recording it. */
export type DetectorAction = 'WARN' | 'REQUIRE_APPROVAL' | 'BLOCK'

export interface LoopOptions {
  /** How many calls of one tool with the same input, including this one, make a loop. At least 2. Default: 5. */
  calls?: number | undefined
  /** How many guarded calls of the run are examined. Default: 20. */
  window?: number | undefined
  /** Default: WARN. */
  action?: DetectorAction | undefined
}

export interface BudgetOptions {
  /** Guarded tool calls of a run. */
  toolCalls?: number | undefined
  /** Tokens of the run's recorded model calls. */
  totalTokens?: number | undefined
  /** Cost of the run's recorded model calls. */
  cost?: number | undefined
  /** Seconds since the run began. */
  seconds?: number | undefined
  /** Default: WARN. */
  action?: DetectorAction | undefined
}

export const DETECTIONS = ['LOOP_DETECTED', 'BUDGET_EXCEEDED'] as const
export type DetectionType = (typeof DETECTIONS)[number]

export interface Detection {
  readonly type: DetectionType
  readonly action: DetectorAction
  /** Stable: `same_input`, or the name of the budget. */
  readonly reasonCode: string
  /** Message for people and models. */
  readonly message: string
  /** True for the first finding in this run. Later findings apply the action but are not reported again. */
  readonly isNew: boolean
}

/** @internal What a run used before this call. */
export interface Usage {
  readonly toolCalls: number
  readonly totalTokens: number
  readonly cost: number
  readonly seconds: number
}

/** @internal */
export interface LoopDetector {
  observe(toolName: string, inputHash: string): Detection | null
}

/** @internal @param recent calls in other processes. */
export function createLoopDetector(
  { calls = 5, window = 20, action = 'WARN' }: LoopOptions,
  recent: string[] = [],
): LoopDetector {
  const threshold = Math.max(2, calls)
  const reported = new Set<string>()
  return {
    observe(toolName, inputHash) {
      const key = `${inputHash} ${toolName}`
      recent.push(key)
      if (recent.length > Math.max(window, threshold)) recent.shift()
      const times = recent.filter((each) => each === key).length
      if (times < threshold) return null
      const isNew = !reported.has(key)
      // Bounded: a run that loops over more inputs reports some of them again.
      if (isNew && reported.size >= 1_000) reported.clear()
      reported.add(key)
      const message = `${toolName} was called ${times} times with the same input`
      return { type: 'LOOP_DETECTED', action, reasonCode: 'same_input', message, isNew }
    },
  }
}

/** @internal */
export interface BudgetDetector {
  /** Returns the first budget that this call exceeds. */
  check(usage: Usage): Detection | null
}

const UNITS = { toolCalls: 'tool calls', totalTokens: 'tokens', cost: 'cost', seconds: 'seconds' } as const

/** @internal Reports each budget of a run once. */
export function createBudgetDetector({ action = 'WARN', ...budgets }: BudgetOptions): BudgetDetector {
  const reported = new Set<string>()
  return {
    check(usage) {
      // Includes this call.
      const used = { ...usage, toolCalls: usage.toolCalls + 1 }
      for (const name of Object.keys(UNITS) as (keyof typeof UNITS)[]) {
        const limit = budgets[name]
        if (limit === undefined || used[name] <= limit) continue
        const isNew = !reported.has(name)
        reported.add(name)
        const message = `the run is over its budget of ${limit} ${UNITS[name]}`
        return { type: 'BUDGET_EXCEEDED', action, reasonCode: name, message, isNew }
      }
      return null
    },
  }
}
