import type { RunView } from '@tacho/contract/operator/run-view.ts'
import type { RowFor } from './row-for.ts'

export type RunViewRow = RowFor<RunView>

type Changeable = 'name' | 'query' | 'lastHours' | 'columns'

export type RunViewPatch = { [Name in Changeable]?: RunViewRow[Name] | undefined }
