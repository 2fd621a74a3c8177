/** Reading whole environments for an export, and writing them back. */

/** Values by column name in camel case. JSON columns are texts. */
export type ExportedRow = Record<string, string | number | null>
/** The key of a row: rows are read in the order of their keys. */
export type ExportedKey = (string | number)[]

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
export type RowsImported =
  | { outcome: 'imported'; written: number }
  | { outcome: 'differs' | 'foreign' | 'erased' | 'too_large'; index: number }
