/**
 * Packs the payloads of a run into blocks. `payloads.ts` says where a payload lies.
 *
 *   unpacked --readUnpacked, storeBlocks, slice by slice--> packed --a later event--> unpacked
 *
 * A slice is read and compressed first, without any lock, and stored in a second, short transaction. That one goes through
 * only if no other process has packed or dropped payloads of the run since: `runs.blocks` counts the blocks ever made.
 */
import { zstdCompressSync, constants } from 'node:zlib'
import type { PackedBlock, PackedSlice, PackingStore, RunSlice, SlicePlace, UnpackedRun } from '../packing.ts'
import { look, read, write, type Acts } from './act.ts'
import { ofRun, rowsWithin, WITH_RUN } from './events.ts'
import { BLOCK_BYTES, BLOCK_PAYLOADS, SAYS_SOMETHING } from './payloads.ts'
import { OF_UUID } from './runs.ts'
import type { Sql } from './sql.ts'

export const packingActs = {
  listUnpackedRuns: look(listUnpackedRuns),
  readUnpacked: read(readUnpacked),
  storeBlocks: write(storeBlocks),
} satisfies Partial<Acts<PackingStore>>

const SLICE_ROWS = 500
const SLICE_BYTES = 512 * 1_024
const COMPRESSION = { params: { [constants.ZSTD_c_compressionLevel]: 3 } }

function listUnpackedRuns(sql: Sql, environmentId: string, after: number, limit: number): Promise<UnpackedRun[]> {
  const text = `SELECT number, id, run_id AS "runId", status, last_event_at AS "lastEventAt" FROM runs
    WHERE environment_id = ? AND packed = 0 AND number > ? ORDER BY number LIMIT ?`
  return sql.all(text, [environmentId, after, limit])
}

/** The next slice of a run, in the order of its timeline. Null: there is no such run. */
async function readUnpacked(
  sql: Sql,
  environmentId: string,
  run: string,
  after: SlicePlace | null,
  leastSaved: number,
): Promise<PackedSlice | null> {
  const of = [environmentId, run, run]
  const state = await sql.get<Pick<PackedSlice, 'number' | 'events' | 'blocksBefore'>>(
    `SELECT number, event_count AS events, blocks AS "blocksBefore" FROM runs WHERE environment_id = ? AND ${OF_UUID}`,
    of,
  )
  if (state === null) return null
  const from = `FROM events e WHERE ${ofRun(sql)}${after ? ' AND (e.time, e.seq) > (?, ?)' : ''}
    AND e.payload_bytes IS NULL AND ${SAYS_SOMETHING} ORDER BY e.time, e.seq LIMIT ?`
  const params = [...of, environmentId, ...(after ? [after.time, after.seq] : [])]
  const sizes = await sql.all<{ bytes: number }>(`${WITH_RUN} SELECT octet_length(e.payload) AS bytes ${from}`, [
    ...params,
    SLICE_ROWS + 1,
  ])
  const page = { limit: SLICE_ROWS, pageBytes: SLICE_BYTES }
  const count = rowsWithin(
    sizes.map(({ bytes }) => bytes),
    page,
  )
  const rows = await sql.all<UnpackedRow>(`${WITH_RUN} SELECT e.time, e.seq, e.payload ${from}`, [...params, count])
  const last = rows.at(-1)
  return {
    ...state,
    payloads: rows.length,
    blocks: blocksOf(rows).flatMap((some) => packBlock(some, leastSaved) ?? []),
    after: last === undefined ? null : { time: last.time, seq: last.seq },
    more: sizes.length > count,
  }
}

interface UnpackedRow extends SlicePlace {
  payload: string
}

function blocksOf(rows: readonly UnpackedRow[]): UnpackedRow[][] {
  const blocks: UnpackedRow[][] = []
  let bytes = Infinity
  for (const row of rows) {
    const size = Buffer.byteLength(row.payload)
    const last = blocks.at(-1)
    if (last !== undefined && bytes + size <= BLOCK_BYTES && last.length < BLOCK_PAYLOADS) {
      last.push(row)
      bytes += size
    } else {
      blocks.push([row])
      bytes = size
    }
  }
  return blocks
}

/** Null: it would save too little. */
function packBlock(rows: readonly UnpackedRow[], leastSaved: number): PackedBlock | null {
  const texts = rows.map(({ payload }) => Buffer.from(payload))
  const all = Buffer.concat(texts)
  // A copy, because zlib returns part of a larger buffer, and a message between threads carries all of it.
  const packed = new Uint8Array(zstdCompressSync(all, COMPRESSION))
  if (all.length - packed.length < leastSaved) return null
  let at = 0
  const places = rows.map(({ time, seq }, index) => {
    const bytes = texts[index]?.length ?? 0
    at += bytes
    return { time, seq, at: at - bytes, bytes }
  })
  return { packed, places }
}

async function storeBlocks(sql: Sql, environmentId: string, slices: readonly RunSlice[]): Promise<boolean[]> {
  const stored = new Map<RunSlice, boolean>()
  // Locked in the order in which appends lock runs.
  for (const one of slices.toSorted((a, b) => (a.run.runId < b.run.runId ? -1 : 1))) {
    stored.set(one, await storeSlice(sql, environmentId, one))
  }
  return slices.map((one) => stored.get(one) ?? false)
}

async function storeSlice(sql: Sql, environmentId: string, { run: { id }, slice }: RunSlice): Promise<boolean> {
  const { number, events, blocksBefore, blocks, more } = slice
  // Events that arrived since have their turn later.
  const packed = more ? '0' : 'CASE WHEN event_count = ? THEN 1 ELSE 0 END'
  const changed = await sql.run(
    `UPDATE runs SET blocks = blocks + ?, packed = ${packed} WHERE environment_id = ? AND id = ? AND blocks = ?`,
    [blocks.length, ...(more ? [] : [events]), environmentId, id, blocksBefore],
  )
  if (changed === 0) return false
  for (const [index, { packed: bytes, places }] of blocks.entries()) {
    const block = blocksBefore + index
    const text = 'INSERT INTO payload_blocks (environment_id, run, block, packed) VALUES (?, ?, ?, ?)'
    await sql.run(text, [environmentId, number, block, bytes])
    const written = await placeInBlock(sql, environmentId, number, block, places)
    if (written !== places.length) throw new Error('Events of a block are missing')
  }
  return true
}

async function placeInBlock(
  sql: Sql,
  environmentId: string,
  run: number,
  block: number,
  places: PackedBlock['places'],
): Promise<number> {
  if (sql.dialect === 'postgres') {
    const [first, last] = [places[0], places.at(-1)]
    const text = `UPDATE events AS e SET payload = '', block = ?, block_at = (x->>2)::integer, payload_bytes = (x->>3)::integer
      FROM jsonb_array_elements(?::jsonb) AS x
      WHERE e.environment_id = ? AND e.run = ? AND (e.time, e.seq) >= (?, ?) AND (e.time, e.seq) <= (?, ?)
        AND e.time = (x->>0)::bigint AND e.seq = (x->>1)::integer AND e.payload_bytes IS NULL`
    const rows = JSON.stringify(places.map(({ time, seq, at, bytes }) => [time, seq, at, bytes].map(String)))
    const range = [first?.time ?? 0, first?.seq ?? 0, last?.time ?? 0, last?.seq ?? 0]
    return sql.run(text, [block, rows, environmentId, run, ...range])
  }
  // To name the seq makes SQLite delete and insert the row, and so merge pages that become almost empty. It never does so
  // when it changes a row in place, and most of the space would stay unused.
  const text = `UPDATE events SET seq = seq, payload = '', block = ?, block_at = ?, payload_bytes = ?
    WHERE seq = ? AND run = ? AND environment_id = (SELECT number FROM environment_numbers WHERE environment_id = ?)
      AND payload_bytes IS NULL`
  let written = 0
  for (const { seq, at, bytes } of places) written += await sql.run(text, [block, at, bytes, seq, run, environmentId])
  return written
}
