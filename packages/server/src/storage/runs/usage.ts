import type { UncostedSum } from './uncosted.ts'

export interface UsageSums {
  promptTokens: number
  completionTokens: number
  totalTokens: number
  /** Integer of 1e-9 units. */
  costNanos: number
}

export interface UsageWindow {
  by: UsageGroup
  /** Starts of hours: `from` inclusive, `to` exclusive. */
  from: number
  to: number
  stepMs: number
  /** By user, only this one; by metadata, the key. */
  label?: string | undefined
}

export type UsageGroup = 'agent' | 'model' | 'promptVersion' | 'tool' | 'session' | RunLabel
/** What the rows of runs are summed up by, besides their sessions. */
export type RunLabel = 'user' | 'tag' | 'metadata'
export type UsageSort = 'cost' | 'tokens' | 'events' | 'runs' | 'failed'

export interface UsagePointPage {
  limit: number
  /** Undefined: by step and key. Otherwise the window is one step. */
  sort?: UsageSort | undefined
  /** `value` and `totalTokens` of a sorted page. */
  after: { step: number; key: string; value?: number; totalTokens?: number } | null
}

export interface UsagePointRow extends UsageSums {
  step: number
  /** Internal id of the agent, key of the model, tool or session, or id of the prompt version. */
  key: string
  /** Null: a prompt version that the workspace does not have. Empty: no model or tool is named. */
  name: string | null
  /** By tool, its calls. */
  events: number
  /** Runs that started in this step; by prompt version, those that first named it then; by model and tool, 0. */
  runs: number
  completed: number
  failed: number
  cancelled: number
  uncosted: UncostedSum[]
  /** By tool: calls that failed, and decisions that held one back. Otherwise null. */
  calls: { errors: number; blocked: number; approvals: number } | null
  value: number
  llm: LatencyRow | null
  tool: LatencyRow | null
}

/** In milliseconds, at most 9 % off. */
export interface LatencyRow {
  calls: number
  p50: number
  p95: number
}

type PointPlace = Pick<UsagePointRow, 'step' | 'key' | 'value' | 'totalTokens'>

// The orders of points, as the statements have them.

const byKey = (a: PointPlace, b: PointPlace): number => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)
export const byStep = (a: PointPlace, b: PointPlace): number => a.step - b.step || byKey(a, b)
/** The greatest value first. */
export const byValue = (a: PointPlace, b: PointPlace): number =>
  b.value - a.value || b.totalTokens - a.totalTokens || byKey(a, b)
