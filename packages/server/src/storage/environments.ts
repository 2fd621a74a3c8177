export interface NewEnvironmentRow {
  id: string
  workspaceId: string
  name: string
  createdAt: number
}

export interface EnvironmentRow extends NewEnvironmentRow {
  /** Its keys are refused since then; null: it is in use. */
  archivedAt: number | null
  deleteAt: number | null
}

export interface DeletionSlice {
  /** Where it starts: the place of a table in the order of deletion, first 0. */
  table: number
  /** Rows to delete at most; of runs, a fixed number. */
  most: number
}
