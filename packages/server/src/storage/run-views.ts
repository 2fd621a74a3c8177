/** Saved views of the list of runs. */
import type { RunFilter } from '@tacho/contract/operator/run.ts'
import type { RunColumn } from '@tacho/contract/operator/run-view.ts'
import type { AuditEntry } from './audit.ts'
import type { PageById } from './page.ts'

export interface RunViewStore {
  /** `too_many`: the environment has reached its limit. */
  createRunView(view: RunViewRow, audit: AuditEntry[]): Promise<'created' | 'too_many' | 'name_taken'>
  listRunViews(environmentId: string, page: PageById): Promise<RunViewRow[]>
  /** Null: no such view in that environment. */
  changeRunView(
    environmentId: string,
    id: string,
    change: RunViewPatch,
    audit: AuditEntry[],
  ): Promise<RunViewRow | 'name_taken' | null>
  /** Null: no such view in that environment. */
  removeRunView(environmentId: string, id: string, audit: AuditEntry[]): Promise<RunViewRow | null>
}

export interface RunViewRow {
  id: string
  environmentId: string
  name: string
  query: RunFilter
  lastHours: number | null
  columns: RunColumn[]
  createdAt: number
}

type Changeable = 'name' | 'query' | 'lastHours' | 'columns'

/** Undefined fields stay unchanged. */
export type RunViewPatch = { [Name in Changeable]?: RunViewRow[Name] | undefined }
