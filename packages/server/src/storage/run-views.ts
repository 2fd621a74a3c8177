import type { RunFilter } from '@tacho/contract/operator/run.ts'
import type { RunColumn } from '@tacho/contract/operator/run-view.ts'

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

export type RunViewPatch = { [Name in Changeable]?: RunViewRow[Name] | undefined }
