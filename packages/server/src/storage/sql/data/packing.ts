/**
 * Packs the payloads of a run into blocks. `payloads.ts` says where a payload is stored.
 *
 *   unpacked --readUnpacked, storeBlocks, slice by slice--> packed --a later event--> unpacked
 *
 * A slice is read and compressed first, without any lock, and stored in a second, short transaction. That one goes
 * through only if no other process has packed or dropped payloads of the run since: `runs.blocks` counts the blocks
 * ever made.
 */
import { promisify } from 'node:util'
import { brotliCompress, brotliCompressSync, constants } from 'node:zlib'
import type { TimelinePlace } from '../../record/events.ts'
import type { PackedBlock, PackedSlice, RunSlice, UnpackedRun } from '../../data/retention.ts'
import { changesRuns, lookup, read, type Sql, type SqlValue, eventEnvironment } from '../engine/sql.ts'
import { ofRun, WITH_RUN, AFTER } from '../record/events.ts'
import { BLOCK_BYTES, BLOCK_PAYLOADS, SAYS_SOMETHING, readPayloadPage } from '../record/payloads.ts'
import { OF_UUID } from '../runs/runs.ts'
import { insertRows } from '../engine/rows.ts'

export const packingActs = {
  ...lookup({ listUnpackedRuns }),
  ...read({ readUnpacked }),
  storeBlocks: changesRuns(storeBlocks, (_, _environmentId, slices) => slices.map(({ run }) => run.runId)),
}

const SLICE_ROWS = 500
const SLICE_BYTES = 512 * 1_024
const COMPRESSION = { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: Math.log2(BLOCK_BYTES) }

function listUnpackedRuns(sql: Sql, environmentId: string, after: number, limit: number): Promise<UnpackedRun[]> {
  const text = `SELECT number, id, run_id AS "runId", status, last_event_at AS "lastEventAt" FROM runs
    WHERE environment_id = :env AND packed = 0 AND number > :after ORDER BY number LIMIT :limit`
  return sql.all(text, { env: environmentId, after, limit })
}

async function readUnpacked(
  sql: Sql,
  environmentId: string,
  run: string,
  after: TimelinePlace | null,
  leastSaved: number,
): Promise<PackedSlice | null> {
  const of = { env: environmentId, run }
  const state = await sql.get<Pick<PackedSlice, 'number' | 'events' | 'blocksBefore'>>(
    `SELECT number, event_count AS events, blocks AS "blocksBefore" FROM runs WHERE environment_id = :env AND ${OF_UUID}`,
    of,
  )
  if (state === null) return null
  const from = `FROM events e WHERE ${ofRun(sql)}${after ? ` AND ${AFTER}` : ''}
    AND e.payload_bytes IS NULL AND ${SAYS_SOMETHING} ORDER BY e.time, e.seq LIMIT :limit`
  const query = {
    start: WITH_RUN,
    columns: 'e.time, e.seq',
    payload: 'e.payload',
    bytes: 'octet_length(e.payload)',
    from,
    params: { ...of, time: after?.time, seq: after?.seq },
  }
  const page = { limit: SLICE_ROWS, pageBytes: SLICE_BYTES }
  const { rows, more } = await readPayloadPage<UnpackedRow>(sql, query, page)
  const last = rows.at(-1)
  const blocks: PackedBlock[] = []
  for (const some of blocksOf(rows)) {
    const block = await packBlock(sql, some, leastSaved)
    if (block !== null) blocks.push(block)
  }
  return {
    ...state,
    payloads: rows.length,
    blocks,
    after: last === undefined ? null : { time: last.time, seq: last.seq },
    more,
  }
}

interface UnpackedRow extends TimelinePlace {
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

const inBackground = promisify(brotliCompress)

/** On PostgreSQL in the background, because it would block the thread that answers requests. */
async function compressed(sql: Sql, bytes: Buffer): Promise<Uint8Array> {
  const options = { params: { ...COMPRESSION, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }
  const packed = sql.dialect === 'postgres' ? await inBackground(bytes, options) : brotliCompressSync(bytes, options)
  // A copy, because zlib returns part of a larger buffer, and a message between threads carries all of it.
  return new Uint8Array(packed)
}

async function packBlock(sql: Sql, rows: readonly UnpackedRow[], leastSaved: number): Promise<PackedBlock | null> {
  const texts = rows.map(({ payload }) => Buffer.from(payload))
  const all = Buffer.concat(texts)
  const packed = await compressed(sql, all)
  if (all.length - packed.length < leastSaved) return null
  let at = 0
  const places = rows.map(({ time, seq }, index) => {
    const bytes = texts[index]?.length ?? 0
    at += bytes
    return { time, seq, at: at - bytes, bytes }
  })
  return { packed, places }
}

/** At most one slice of each run. False: its blocks have changed since, and the slice is not stored. */
async function storeBlocks(sql: Sql, environmentId: string, slices: readonly RunSlice[]): Promise<boolean[]> {
  const stored = new Map<RunSlice, boolean>()
  const placed: PlacedBlock[] = []
  // Locked in the order in which appends lock runs.
  for (const one of slices.toSorted((a, b) => (a.run.runId < b.run.runId ? -1 : 1))) {
    const blocks = await takeRun(sql, environmentId, one)
    stored.set(one, blocks !== null)
    placed.push(...(blocks ?? []))
  }
  for (const { run, block, packed } of sql.dialect === 'postgres' ? placed : inFullPages(placed)) {
    await insertRows(sql, 'payload_blocks', [{ environmentId, run, block, packed }])
  }
  await (sql.dialect === 'postgres' ? changeRows : moveRows)(sql, environmentId, placed)
  return slices.map((one) => stored.get(one) ?? false)
}

interface PlacedBlock extends PackedBlock {
  run: number
  block: number
}

async function takeRun(sql: Sql, environmentId: string, { run: { id }, slice }: RunSlice) {
  const { number, events, blocksBefore, blocks, more } = slice
  // Events that have arrived since are packed later.
  const packed = more ? '0' : 'CASE WHEN event_count = :events THEN 1 ELSE 0 END'
  const changed = await sql.run(
    `UPDATE runs SET blocks = blocks + :added, packed = ${packed}
      WHERE environment_id = :env AND id = :id AND blocks = :blocksBefore`,
    { added: blocks.length, ...(!more && { events }), env: environmentId, id, blocksBefore },
  )
  if (changed === 0) return null
  return blocks.map((block, index) => ({ ...block, run: number, block: blocksBefore + index }))
}

/** Bytes for rows in a page of SQLite's default size, and approximate bytes of a row besides the packed ones. */
const PAGE_BYTES = 4_096 - 35
const CELL_BYTES = 55

/**
 * Orders the blocks so that they fill pages: a page gets rows until the next one does not fit. Of a row longer than a
 * page, SQLite keeps only what does not fill an overflow page: see "Cell payload overflow pages" in its file format.
 */
function inFullPages(blocks: readonly PlacedBlock[]): PlacedBlock[] {
  const pages: { free: number; blocks: PlacedBlock[] }[] = []
  const sized = blocks.map((block) => ({ block, bytes: bytesInPage(block.packed.length + CELL_BYTES) }))
  for (const { block, bytes } of sized.toSorted((a, b) => b.bytes - a.bytes)) {
    let page = pages.find(({ free }) => free >= bytes)
    if (page === undefined) pages.push((page = { free: PAGE_BYTES, blocks: [] }))
    page.free -= bytes
    page.blocks.push(block)
  }
  return pages.flatMap((page) => page.blocks)
}

function bytesInPage(bytes: number): number {
  if (bytes <= PAGE_BYTES) return bytes
  const least = 489
  const pageBytes = least + ((bytes - least) % (4_096 - 4))
  return pageBytes <= PAGE_BYTES ? pageBytes : least
}

async function changeRows(sql: Sql, environmentId: string, placed: readonly PlacedBlock[]): Promise<void> {
  for (const { run, block, places } of placed) {
    const placeOf = (one: TimelinePlace | undefined) => [one?.time ?? 0, one?.seq ?? 0]
    const text = `UPDATE events AS e SET payload = '', block = :block, block_at = (x->>2)::integer, payload_bytes = (x->>3)::integer
      FROM jsonb_array_elements(:rows::jsonb) AS x
      WHERE e.environment_id = :env AND e.run = :run AND (e.time, e.seq) >= (:first) AND (e.time, e.seq) <= (:last)
        AND e.time = (x->>0)::bigint AND e.seq = (x->>1)::integer AND e.payload_bytes IS NULL`
    const rows = JSON.stringify(places.map(({ time, seq, at, bytes }) => [time, seq, at, bytes].map(String)))
    const range = { first: placeOf(places[0]), last: placeOf(places.at(-1)) }
    const written = await sql.run(text, { block, rows, env: environmentId, run, ...range })
    if (written !== places.length) throw new Error(MISSING)
  }
}

/**
 * SQLite merges pages when rows are deleted, never when they shrink. So all rows are deleted first, then inserted:
 * first three of four in order, which leaves pages three quarters full, because three full pages are split into four.
 * The other rows fill these. Inserting all at once would leave a quarter of the space unused.
 */
async function moveRows(sql: Sql, environmentId: string, placed: readonly PlacedBlock[]): Promise<void> {
  const all = placed
    .flatMap(({ run, block, places }) => places.map((place) => ({ ...place, run, block })))
    .toSorted((a, b) => a.seq - b.seq)
  const rows: Record<string, SqlValue>[] = []
  for (const { seq, run, block, at, bytes } of all) {
    const row = await sql.get<Record<string, SqlValue>>(
      `DELETE FROM events WHERE seq = :seq AND run = :run AND environment_id = ${eventEnvironment(sql)}
        AND payload_bytes IS NULL RETURNING *`,
      { seq, run, env: environmentId },
    )
    if (row === null) throw new Error(MISSING)
    rows.push({ ...row, payload: '', block, block_at: at, payload_bytes: bytes })
  }
  const [first, rest] = [rows.filter((_, index) => index % 4 !== 1), rows.filter((_, index) => index % 4 === 1)]
  await insertRows(sql, 'events', [...first, ...rest])
}

const MISSING = 'Events of a block are missing'
