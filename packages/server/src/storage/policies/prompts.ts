import { hash } from 'node:crypto'
import type { PromptResult } from '@tacho/contract/policies/prompt.ts'
import type { PageAfter } from '../engine/page.ts'
import type { ScoreSumRow } from '../runs/scores.ts'
import type { RowOf } from '../engine/tables.ts'
import type { LatencyRow, UsageSums } from '../runs/usage.ts'
import type { UncostedSum } from '../runs/uncosted.ts'

export interface PromptRow extends Omit<RowOf<'prompts'>, 'newest'> {
  workspaceId: string
  newest: PromptVersionInfo
}

export type NewPromptRow = Omit<PromptRow, 'archivedAt' | 'newest'>
export type PromptVersionRow = RowOf<'prompt_versions'> & {
  /** Then it has no content. */
  damaged?: true
}
export type PromptVersionInfo = Omit<PromptVersionRow, 'content'>
export type NewPromptVersionRow = Pick<PromptVersionRow, 'id' | 'content' | 'author' | 'note' | 'createdAt'>

export function measureContent(content: string): Pick<PromptVersionInfo, 'contentHash' | 'contentBytes'> {
  return { contentHash: hash('sha256', content), contentBytes: Buffer.byteLength(content) }
}

/** `unchanged`: the newest version has the same content. `conflict`: the author has not seen the newest version. */
export type SavedVersion<Version> = { outcome: 'created' | 'unchanged' | 'conflict'; version: Version }

export type VersionPage = PageAfter<number>

type Counted = 'runs' | 'completed' | 'failed' | 'cancelled' | 'events' | 'errors' | 'blocked' | 'approvals'

/** Some of its runs, with what their events that name the version spent. */
export interface VersionRunGroup {
  runs: number
  totalTokens: number
  costNanos: number
  uncosted: UncostedSum[]
}

export interface VersionResultRow extends UsageSums, Pick<PromptResult, Counted> {
  /** Each as of the day on which its run started. */
  uncosted: UncostedSum[]
  /** All of its runs. In a group, figures are known of all or of none. */
  groups: VersionRunGroup[]
  /** Start of its first and its last run: the first event with this version. */
  firstAt: number
  lastAt: number
  /** Of ended runs, in milliseconds; null: no run has ended. */
  lengthP50: number | null
  lengthP95: number | null
  llm: LatencyRow | null
  tool: LatencyRow | null
  scores: ScoreSumRow[]
}
