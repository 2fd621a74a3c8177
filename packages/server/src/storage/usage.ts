/** Usage over time. */
import type { Page } from './page.ts'
import type { UncostedSum } from './uncosted.ts'

export interface UsageStore {
  /** Sums of each step of the window and each member of the group, ordered by step and key. */
  readUsagePoints(
    tenant: { environmentId: string; workspaceId: string },
    window: UsageWindow,
    page: UsagePointPage,
  ): Promise<Page<UsagePointRow>>
}

export interface UsageWindow {
  by: UsageGroup
  /** Starts of hours: `from` inclusive, `to` exclusive. */
  from: number
  to: number
  stepMs: number
}

export type UsageGroup = 'agent' | 'model' | 'promptVersion'

export interface UsagePointPage {
  limit: number
  after: { step: number; key: string } | null
}

export interface UsagePointRow {
  /** From 0. */
  step: number
  /** Internal id of the agent, key of the model, or id of the prompt version. */
  key: string
  /** Null: a prompt version that the workspace does not have. Empty: no model. */
  name: string | null
  events: number
  /** Runs that started in this step, by agent; by prompt version, the runs that first named it then. By model, 0. */
  runs: number
  completed: number
  failed: number
  cancelled: number
  promptTokens: number
  completionTokens: number
  totalTokens: number
  costNanos: number
  uncosted: UncostedSum[]
  /** Not counted by prompt version. */
  llm: LatencyRow | null
  tool: LatencyRow | null
}

/** In milliseconds, at most 9 % from the exact percentile. */
export interface LatencyRow {
  calls: number
  p50: number
  p95: number
}
