/** Reading whole environments for an export, and writing them back. */
import type { EventsRead, StoredEvent } from './events.ts'
import type { Page } from './page.ts'

/** Tables whose rows an export has, in the order of an import. Runs and their events come between the two lists. */
export const EXPORTED_BEFORE_RUNS = [
  'prompt',
  'promptVersion',
  'policy',
  'policyVersion',
  'deployment',
  'deploymentChange',
  'configuration',
  'runView',
  'agent',
  'model',
] as const
export const EXPORTED_AFTER_RUNS = [
  'approval',
  'issueRecord',
  'issue',
  'issueFingerprint',
  'issueAffected',
  'issueActivity',
] as const
export type ExportedTable = (typeof EXPORTED_BEFORE_RUNS)[number] | (typeof EXPORTED_AFTER_RUNS)[number]

/** Values by column name in camel case. JSON columns are texts. */
export type ExportedRow = Record<string, string | number | null>
/** The key of a row: rows are read in the order of their keys. */
export type ExportedKey = (string | number)[]

export interface ExportStore {
  /** Rows after the key, or from the first one. A page ends at `limit` rows or LIMITS.listBytes. */
  readExported(
    environmentId: string,
    table: ExportedTable,
    after: ExportedKey | null,
    limit: number,
  ): Promise<Page<ExportedRow>>
  /** The events of a run with payloads, in the order of their arrival. `run` is the internal id. */
  readArrived(environmentId: string, run: string, page: ArrivedPage): Promise<EventsRead<StoredEvent>>
  /** Whether the environment has rows that an import would write. */
  isEnvironmentEmpty(environmentId: string): Promise<boolean>
  /**
   * Writes what a restored run does not get from its events. The numbers of a run whose payloads were removed are among
   * it. `runId` is the external id; columns are in camel case.
   */
  restoreRun(environmentId: string, runId: string, facts: ExportedRow): Promise<void>
  /**
   * Writes rows that are not there. An equal row stays; a different one, one that names a prompt of another
   * workspace, or one that was erased, ends the act, and earlier rows stay.
   */
  restoreRows(environmentId: string, table: ExportedTable, rows: ExportedRow[]): Promise<RowsRestored>
}

export interface ArrivedPage {
  /** The seq of the last event; 0: from the first. */
  after: number
  limit: number
  pageBytes: number
}

/** `written`: rows that were not there. `index`: the place of the first row that cannot be written. */
export type RowsRestored =
  | { outcome: 'restored'; written: number }
  | { outcome: 'differs' | 'foreign' | 'erased'; index: number }
