import type { SnippetPart } from '@tacho/contract/runs/search.ts'
import type { EventRowRead, TimelinePlace } from '../record/events.ts'
import type { Page, PageAfter } from '../engine/page.ts'
import type { RunRow } from './runs.ts'
import type { SearchClause } from './search-text.ts'

export interface SearchSettingsRow {
  state: 'ON' | 'REMOVING'
  changedAt: number
  /** Runs that started before this are not yet marked for indexing. Null: all are marked. */
  olderBefore: number | null
  /** Of the runs that started at `olderBefore`, the last one that is marked. */
  olderId: string | null
  indexedEvents: number
  waitingRuns: number
  waitingSince: number | null
  error: string | null
}

export interface EventSearch extends PageAfter<SearchPlace> {
  clauses: SearchClause[]
  from: number
  to: number
}

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

export type SearchRead = Page<SearchHitRow> & { lookedTo?: SearchPlace }

export interface RunSearch extends PageAfter<TimelinePlace> {
  text: string
  /** A page ends after so many events or so many bytes of payloads. `piece`: what one statement reads. */
  bounds: { events: number; bytes: number; piece: { limit: number; pageBytes: number } }
}

/** `lookedTo`: where to continue; null: at the end. */
export interface RunSearchRead {
  rows: { event: EventRowRead; snippet: SnippetPart[] }[]
  examined: number
  lookedTo: TimelinePlace | null
}

export interface UnindexedRun {
  run: number
  id: string
  /** As read: if events were added since, the run stays marked. */
  marks: number
  indexedSeq: number
  isComplete: boolean
  events: { seq: number; time: number; words: number[] }[]
}
