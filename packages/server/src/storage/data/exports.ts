export type ExportedRow = Record<string, string | number | null>
/** 1: the disk changed it, so it has only its key. */
export const DAMAGED_ROW = 'rowDamaged'
export type ExportedKey = (string | number)[]

export interface ImportStart {
  environmentId: string
  /** SHA-256 of the first line of the export. */
  source: string
  resume: boolean
  actorId: string
  now: number
}

export interface ArrivedPage {
  /** A seq; 0: from the first event. */
  after: number
  limit: number
  pageBytes: number
}

/** `written`: rows that were not there. `index`: the place of the first row that cannot be written. */
export type RowsImported =
  | { outcome: 'imported'; written: number }
  | { outcome: 'differs' | 'foreign' | 'erased' | 'too_large'; index: number }
