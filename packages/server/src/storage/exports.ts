/** Reading whole environments for an export, and writing them back. */
import type { AuditEntry } from './audit.ts'
import type { EventsRead, StoredEvent } from './events.ts'
import type { Page } from './page.ts'
import type { ExportedTable } from './tables.ts'

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
  /**
   * Every request of an import begins with this. An import begins in an empty environment; its later requests name the same
   * source. The audit entry is stored when it begins, and again when another actor or a later hour continues it.
   */
  beginImport(start: ImportStart, audit: AuditEntry[]): Promise<'begun' | 'not_empty' | 'other_source'>
  /**
   * Writes what a restored run does not get from its events. The numbers of a run whose payloads were removed are among
   * it. `runId` is the external id; columns are in camel case.
   */
  restoreRun(environmentId: string, runId: string, facts: ExportedRow): Promise<void>
  /**
   * Writes rows that are not there. An equal row stays; a different one, one that names a prompt of another
   * workspace, or one that was erased, ends the act, and earlier rows stay. Deployments make a new configuration.
   * Approvals are marked as imported at `now`.
   */
  restoreRows(environmentId: string, table: ExportedTable, rows: ExportedRow[], now: number): Promise<RowsRestored>
}

export interface ImportStart {
  environmentId: string
  /** SHA-256 of the first line of the export. */
  source: string
  /** Whether to continue an import. */
  resume: boolean
  actorId: string
  now: number
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
  | { outcome: 'differs' | 'foreign' | 'erased' | 'too_large'; index: number }
