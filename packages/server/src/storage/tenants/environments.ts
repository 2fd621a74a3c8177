import type { Environment } from '@tacho/contract/tenants/environment.ts'
import type { RowFor } from '../engine/row-for.ts'

export type EnvironmentRow = RowFor<Environment>
export type NewEnvironmentRow = Omit<EnvironmentRow, 'archivedAt' | 'deleteAt'>

export interface DeletionSlice {
  /** Where it starts: the place of a table in the order of deletion, from 0. */
  table: number
  /** Rows, but of runs a fixed number. */
  most: number
}
