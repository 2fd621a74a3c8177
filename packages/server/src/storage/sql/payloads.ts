/**
 * Where payloads lie, and how they are read.
 *
 *   in its row --its run is packed--> in a block --retention--> removed
 *       '-------------------------------retention-----------------^
 *
 * In its row: `payload_bytes` is null. In a block: `payload` is empty, and `block`, `block_at`, `payload_bytes` name its
 * bytes. Removed: `payload_bytes` is 0, because no payload is that short.
 *
 * Every reader selects PAYLOAD and passes its rows through `withPayloads`; none reads the columns itself. Sizes come
 * first, as PAYLOAD_BYTES, because they are known without reading any payload or block.
 */
import { brotliDecompressSync, zstdDecompressSync } from 'node:zlib'
import { StorageError } from '../storage.ts'
import type { Sql } from './sql.ts'

/** Limits of a block. A larger payload gets a block for itself. */
export const BLOCK_PAYLOADS = 100
export const BLOCK_BYTES = 256 * 1_024
/** Far above any block, and far below what a damaged one could claim. */
const MAX_BLOCK_BYTES = 8 * 1_048_576

/** How blocks of older versions begin. The first byte of a Brotli stream says its window, and ours is never this one. */
const ZSTD_FRAME = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** Reads of blocks that are sent together. */
const BLOCKS_AT_ONCE = 8

/** Readers get this for a removed payload. Its `payloadBytes` is 0. */
const REMOVED = '{}'

const REMOVE = "payload = '', payload_bytes = 0, block = NULL, block_at = NULL"
/** To name the seq makes SQLite delete and insert the row, and so merge pages that become almost empty. */
export const REMOVE_PAYLOAD = { sqlite: `seq = seq, ${REMOVE}`, postgres: REMOVE } as const

/** Size in bytes of the payload of the event `e`. */
export const PAYLOAD_BYTES = 'COALESCE(e.payload_bytes, octet_length(e.payload))'

/** Whether the payload of the event `e` says anything: the empty one, `{}`, is neither packed nor removed. */
export const SAYS_SOMETHING = `${PAYLOAD_BYTES} > 2`

/**
 * Selected as `payload` from the event `e`: the text, or the place of a packed one, or empty if it was removed. A payload
 * is a JSON object, so a text never looks like a place.
 */
export const PAYLOAD = `CASE WHEN e.block IS NULL THEN e.payload
  ELSE '@' || e.run || ' ' || e.block || ' ' || e.block_at || ' ' || e.payload_bytes END`

/** Whether the payload of the event `e` may contain a text, its parameter. The reader has to look again. */
export const mayContain = ({ dialect }: Pick<Sql, 'dialect'>) =>
  `(e.block IS NOT NULL OR ${dialect === 'postgres' ? 'strpos(e.payload, ?)' : 'instr(e.payload, ?)'} > 0)`

/** Whether a column of the event `e` is as `condition` says, as far as SQL can tell: it cannot look into blocks. */
export const unlessPacked = (column: string, condition: string) =>
  column === 'e.payload' ? `(e.payload_bytes IS NOT NULL OR ${condition})` : condition

/** Selected from the event `e`, for `comparePacked`. */
export const PACKED = `e.payload_bytes AS "payloadBytes", CASE WHEN e.block IS NOT NULL THEN ${PAYLOAD} END AS payload`

export interface Compared {
  /** Everything that SQL compares. */
  isSame: boolean
  payloadBytes: number | null
  payload: string | null
}

/** Whether stored events are the same as those sought, given in the same order. A removed payload equals any. */
export async function comparePacked(
  sql: Sql,
  environmentId: string,
  compared: readonly (Compared | null)[],
  sought: readonly string[],
): Promise<(boolean | null)[]> {
  const doubtful = compared.filter((one, index) => {
    return one?.isSame && one.payload !== null && one.payloadBytes === Buffer.byteLength(sought[index] ?? '')
  })
  const read = new Set(await withPayloads(sql, environmentId, doubtful as Compared[]))
  return compared.map((one, index) => {
    if (one === null) return null
    return one.isSame && (one.payload === null || (read.has(one) && one.payload === sought[index]))
  })
}

interface Place {
  run: number
  block: number
  at: number
  bytes: number
}

/** The rows, in order, with the payload texts as sent. */
export async function withPayloads<Row extends { payload: string | null }>(
  sql: Sql,
  environmentId: string,
  rows: Row[],
): Promise<Row[]> {
  if (rows.every(({ payload }) => payload === null || payload.startsWith('{'))) return rows
  const blocks = new Map<string, { run: number; block: number; rows: { row: Row; place: Place }[] }>()
  for (const row of rows) {
    if (row.payload === '') row.payload = REMOVED
    const place = placeOf(row.payload)
    if (place === null) continue
    const key = `${place.run} ${place.block}`
    let packed = blocks.get(key)
    if (packed === undefined) blocks.set(key, (packed = { run: place.run, block: place.block, rows: [] }))
    packed.rows.push({ row, place })
  }
  const all = [...blocks.values()]
  for (let start = 0; start < all.length; start += BLOCKS_AT_ONCE) {
    await Promise.all(
      all.slice(start, start + BLOCKS_AT_ONCE).map(async ({ run, block, rows: packed }) => {
        const texts = await readBlock(sql, environmentId, run, block)
        for (const { row, place } of packed) row.payload = texts.toString('utf8', place.at, place.at + place.bytes)
      }),
    )
  }
  return rows
}

function placeOf(text: string | null): Place | null {
  if (!text?.startsWith('@')) return null
  const [run = 0, block = 0, at = 0, bytes = 0] = text.slice(1).split(' ').map(Number)
  return { run, block, at, bytes }
}

async function readBlock(sql: Sql, environmentId: string, run: number, block: number): Promise<Buffer> {
  const row = await sql.get<{ packed: Buffer }>(
    'SELECT packed FROM payload_blocks WHERE environment_id = ? AND run = ? AND block = ?',
    [environmentId, run, block],
  )
  // Between two statements of a look, the run was erased or its payloads dropped.
  if (row === null) throw new StorageError('storage_unavailable', 'A block of payloads is no longer there')
  const decompress = row.packed.subarray(0, 4).equals(ZSTD_FRAME) ? zstdDecompressSync : brotliDecompressSync
  return decompress(row.packed, { maxOutputLength: MAX_BLOCK_BYTES })
}

/** Blocks deleted in one statement. */
const BLOCKS_DELETED = 1_000

/** Deletes blocks of a run whose events are deleted or have no payloads. False: some are left for the next call. */
export async function deleteBlocks(sql: Sql, environmentId: string, run: number): Promise<boolean> {
  const some = `SELECT block FROM payload_blocks WHERE environment_id = ? AND run = ? ORDER BY block LIMIT ${BLOCKS_DELETED}`
  const text = `DELETE FROM payload_blocks WHERE environment_id = ? AND run = ? AND block IN (${some})`
  return (await sql.run(text, [environmentId, run, environmentId, run])) < BLOCKS_DELETED
}
