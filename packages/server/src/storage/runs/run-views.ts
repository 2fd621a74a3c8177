import type { RunView } from '@tacho/contract/runs/run-view.ts'
import type { PatchOf, RowFor } from '../engine/row-for.ts'

export type RunViewRow = RowFor<RunView>

export type RunViewPatch = PatchOf<RunViewRow, 'name' | 'query' | 'lastHours' | 'columns'>
