/** How payloads of idle runs are packed into compressed blocks. */
import type { RunStatus } from '@tacho/contract/run.ts'

export interface PackingStore {
  /** Runs with payloads that nobody has tried to pack yet, by number, after that number. */
  listUnpackedRuns(environmentId: string, after: number, limit: number): Promise<UnpackedRun[]>
  /**
   * Reads and compresses the next payloads of a run, after a place in its timeline: at most some hundred rows or about half a
   * MiB. `run` is the internal id. A block that saves fewer bytes than `leastSaved` is not made. Null: no such run.
   */
  readUnpacked(
    environmentId: string,
    run: string,
    after: SlicePlace | null,
    leastSaved: number,
  ): Promise<PackedSlice | null>
  /**
   * Stores slices as read, at most one of each run. A run's last slice marks it as packed, unless new events arrived.
   * False for a run whose blocks have changed since; then its slice is not stored.
   */
  storeBlocks(environmentId: string, slices: readonly RunSlice[]): Promise<boolean[]>
}

export interface PackedRun {
  id: string
  runId: string
}

export interface UnpackedRun extends PackedRun {
  number: number
  status: RunStatus
  lastEventAt: number
}

export interface SlicePlace {
  time: number
  seq: number
}

export interface PackedBlock {
  /** The payload texts in UTF-8, one after the other, as one Brotli stream. */
  packed: Uint8Array
  places: (SlicePlace & { at: number; bytes: number })[]
}

export interface RunSlice {
  run: PackedRun
  slice: PackedSlice
}

export interface PackedSlice {
  /** Number of the run, by which its events and blocks name it. */
  number: number
  /** Events and blocks of the run when the slice was read. */
  events: number
  blocksBefore: number
  /** Payloads read, even if they form no block. */
  payloads: number
  blocks: PackedBlock[]
  /** The last examined place; null: nothing was examined. */
  after: SlicePlace | null
  more: boolean
}
