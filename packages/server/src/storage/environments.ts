export interface NewEnvironmentRow {
  id: string
  workspaceId: string
  name: string
  createdAt: number
}

export interface EnvironmentRow extends NewEnvironmentRow {
  /** From then on its keys are refused. */
  archivedAt: number | null
  deleteAt: number | null
}

export interface DeletionSlice {
  /** Where it starts: the place of a table in the order of deletion, from 0. */
  table: number
  /** Rows to delete at most; of runs, a fixed number. */
  most: number
}
