/** Search over payload text. */
import type { SnippetPart } from '@tacho/contract/operator/search.ts'
import type { AuditEntry } from './audit.ts'
import type { EventRowRead } from './events.ts'
import type { Page } from './page.ts'
import type { RunRow } from './runs.ts'
import type { SearchClause } from './search-text.ts'

export interface SearchStore {
  /** Null: it was never on, or its index is deleted. */
  readSearchSettings(environmentId: string): Promise<SearchSettingsRow | null>
  /**
   * Switches search on or off and queues the work. `removing`: it cannot be switched on before its old index is
   * deleted. `unchanged`: it is so already; nothing is audited.
   */
  switchSearch(
    environmentId: string,
    enabled: boolean,
    now: number,
    audit: AuditEntry[],
  ): Promise<'switched' | 'unchanged' | 'removing'>
  /** Matching events, newest first; at the same time, in no particular order that never changes. */
  searchEvents(environmentId: string, search: EventSearch): Promise<SearchRead>

  // --- for the job that keeps the index up to date

  /** Marks the next older runs, if few marked ones are left. Returns the settings; null: search is off. */
  markOlderRuns(environmentId: string): Promise<SearchSettingsRow | null>
  /** Events of marked runs that are not yet indexed, the latest marks first; bounded. */
  readUnindexed(environmentId: string): Promise<UnindexedRun[]>
  /** Adds them to the index. */
  indexEvents(environmentId: string, runs: UnindexedRun[]): Promise<void>
  /** Deletes a bounded part of the index. Returns whether anything is left; if not, also deletes the settings. */
  removeIndexed(environmentId: string): Promise<boolean>
  /** Ends the work, because it keeps failing. */
  failIndexing(environmentId: string, error: string): Promise<void>
}

export interface SearchSettingsRow {
  state: 'ON' | 'REMOVING'
  changedAt: number
  /** Null: all older runs are marked. */
  olderBefore: number | null
  /** The last marked run among the runs with this start. */
  olderId: string | null
  indexedEvents: number
  /** Counted up to LIMITS.searchRunsCounted. */
  waitingRuns: number
  waitingSince: number | null
  error: string | null
}

export interface EventSearch {
  clauses: SearchClause[]
  /** Event times: at or after, and before. */
  from: number
  to: number
  limit: number
  after: SearchPlace | null
}

/** Where a result stands among the others. */
export interface SearchPlace {
  time: number
  run: number
  tie: number
}

export interface SearchHitRow {
  run: RunRow
  event: EventRowRead
  snippet: SnippetPart[]
  place: SearchPlace
}

/** `lookedTo`: where to continue if the page ended at a bound; otherwise its last row. */
export type SearchRead = Page<SearchHitRow> & { lookedTo?: SearchPlace }

export interface UnindexedRun {
  /** Number of the run. */
  run: number
  id: string
  /** As read: if events were added since, the run stays marked. */
  marks: number
  indexedSeq: number
  /** Whether these are all of its events. */
  isComplete: boolean
  events: { seq: number; time: number; words: number[] }[]
}
