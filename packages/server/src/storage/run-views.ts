import type { RunView } from '@tacho/contract/operator/run-view.ts'
import type { PatchOf, RowFor } from './row-for.ts'

export type RunViewRow = RowFor<RunView>

export type RunViewPatch = PatchOf<RunViewRow, 'name' | 'query' | 'lastHours' | 'columns'>
