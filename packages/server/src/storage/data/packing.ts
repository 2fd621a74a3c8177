import type { RunStatus } from '@tacho/contract/runs/run.ts'
import type { TimelinePlace } from '../record/events.ts'

export interface PackedRun {
  id: string
  runId: string
}

export interface UnpackedRun extends PackedRun {
  number: number
  status: RunStatus
  lastEventAt: number
}

export interface PackedBlock {
  /** Payload texts in UTF-8, concatenated, as one Brotli stream. */
  packed: Uint8Array
  places: (TimelinePlace & { at: number; bytes: number })[]
}

export interface RunSlice {
  run: PackedRun
  slice: PackedSlice
}

export interface PackedSlice {
  number: number
  /** Events of the run when the slice was read. */
  events: number
  blocksBefore: number
  payloads: number
  blocks: PackedBlock[]
  after: TimelinePlace | null
  more: boolean
}
