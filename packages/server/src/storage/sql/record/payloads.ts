/**
 *   in its row --its run is packed--> in a block --retention--> removed
 *       '-------------------------------retention-----------------^
 *
 * In its row: `payload_bytes` is null. In a block: `payload` is empty, and `block`, `block_at`, `payload_bytes` name
 * its bytes. Removed: `payload_bytes` is 0, because no payload is that short.
 *
 * `payload_sum` is the checksum of the payload, wherever it lies. It also shows damage of a block, and of the place in
 * it.
 *
 * Every reader selects PAYLOAD and passes its rows through `withPayloads`; none reads the columns itself. Sizes come
 * first, as PAYLOAD_BYTES, because they are known without reading any payload or block.
 */
import { brotliDecompressSync, crc32 } from 'node:zlib'
import { StorageError } from '../../engine/store.ts'
import { payloadText, type PayloadJson } from '../../record/events.ts'
import type { Page } from '../../engine/page.ts'
import { contains, type DamagedPayload, type NamedParams, type Sql } from '../engine/sql.ts'

export const BLOCK_PAYLOADS = 100
export const BLOCK_BYTES = 256 * 1_024
/** Far above any block, and far below what a damaged one could claim. */
const MAX_BLOCK_BYTES = 8 * 1_048_576

const BLOCKS_AT_ONCE = 8

const NO_PAYLOAD = '{}'

const REMOVE = "payload = '', payload_bytes = 0, payload_sum = NULL, block = NULL, block_at = NULL"
/** Naming the seq makes SQLite delete and insert the row, and so merge pages that become almost empty. */
export const REMOVE_PAYLOAD = { sqlite: `seq = seq, ${REMOVE}`, postgres: REMOVE } as const

export const PAYLOAD_BYTES = 'COALESCE(e.payload_bytes, octet_length(e.payload))'

/** The empty payload, `{}`, is neither packed nor removed. */
export const SAYS_SOMETHING = `${PAYLOAD_BYTES} > 2`

export const payloadSum = (payload: PayloadJson): number => crc32(payload) | 0

/** Empty if the payload was removed. A payload is a JSON object, so a text never looks like a place. */
const TEXT = `CASE WHEN e.block IS NULL THEN e.payload
  ELSE '@' || e.run || ' ' || e.block || ' ' || e.block_at || ' ' || e.payload_bytes END`

/** Rows with this column must pass through `withPayloads`. `condition`: of the events whose payload is wanted. */
export const payloadIf = (condition: string | null) =>
  `${condition === null ? TEXT : `CASE WHEN ${condition} THEN ${TEXT} END`} AS payload, e.payload_sum AS "payloadSum"`
export const PAYLOAD = payloadIf(null)

/** Also true of every packed payload, so the reader must check the text again. */
export const mayContain = (sql: Sql) => `(e.block IS NOT NULL OR ${contains(sql, 'e.payload', ':text')})`

/** Also true of every packed or removed payload, because SQL cannot compare those. */
export const unlessPacked = (column: string, condition: string) =>
  column === 'e.payload' ? `(e.payload_bytes IS NOT NULL OR ${condition})` : condition

export const PACKED = `e.payload_bytes AS "payloadBytes", CASE WHEN e.block IS NOT NULL THEN ${TEXT} END AS payload`

export interface Compared {
  /** Whether everything that SQL compares is equal. */
  isSame: boolean
  payloadBytes: number | null
  payload: string | null
}

/** A removed payload counts as equal to any. */
export async function comparePacked(
  sql: Sql,
  environmentId: string,
  compared: readonly (Compared | null)[],
  sought: readonly PayloadJson[],
): Promise<(boolean | null)[]> {
  const doubtful = compared.filter((one, index) => {
    return one?.isSame && one.payload !== null && one.payloadBytes === Buffer.byteLength(sought[index] ?? '')
  })
  const read = new Set(await withPayloads(sql, environmentId, doubtful as Compared[]))
  return compared.map((one, index) => {
    if (one === null) return null
    return one.isSame && (one.payload === null || (read.has(one) && one.payload === payloadText(sought[index] ?? '')))
  })
}

interface Place {
  run: number
  block: number
  at: number
  bytes: number
}

interface Read {
  payload: string | null
  payloadSum?: number | null
  payloadDamaged?: true
}

/** A damaged payload is empty and marked, so that it never stops the others from being read. */
export async function withPayloads<Row extends Read>(sql: Sql, environmentId: string, rows: Row[]): Promise<Row[]> {
  await readPacked(sql, environmentId, rows)
  for (const row of rows) {
    const { payload, payloadSum: sum } = row
    delete row.payloadSum
    if (row.payload === '') row.payload = NO_PAYLOAD
    else if (payload !== null && (sum ?? null) !== null && payloadSum(payload) !== sum) markDamaged(row)
    if (row.payloadDamaged) sql.onDamage({ environmentId, ...placeIn(row) })
  }
  return rows
}

export interface PayloadQuery {
  start?: string
  columns: string
  payload?: string
  bytes?: string
  /** The statement from FROM on, ending with `LIMIT :limit`. */
  from: string
  params: NamedParams & { env: string }
}

interface PageSize {
  limit: number
  pageBytes: number
}

/** Reads at least one row. Reads sizes first, so that it loads only payloads that fit. */
export async function readPayloadPage<Row extends Read>(
  sql: Sql,
  { start = '', columns, payload = PAYLOAD, bytes = PAYLOAD_BYTES, from, params }: PayloadQuery,
  page: PageSize,
): Promise<Page<Row>> {
  const limited = { ...params, limit: page.limit + 1 }
  const sizes = await sql.all<{ bytes: number }>(`${start} SELECT ${bytes} AS bytes ${from}`, limited)
  const count = rowsThatFit(sizes, page)
  const rows = await sql.all<Row>(`${start} SELECT ${columns}, ${payload} ${from}`, { ...params, limit: count })
  return { rows: await withPayloads(sql, params.env, rows), more: sizes.length > count }
}

export function rowsThatFit(rows: readonly { bytes: number }[], { limit, pageBytes }: PageSize): number {
  let bytes = 0
  const past = rows.findIndex((row, index) => (bytes += row.bytes) > pageBytes && index > 0)
  return Math.min(past === -1 ? rows.length : past, limit)
}

function markDamaged(row: Read): void {
  row.payload = NO_PAYLOAD
  row.payloadDamaged = true
}

function placeIn(row: object): Pick<DamagedPayload, 'eventId' | 'seq'> {
  const { eventId = null, seq = null } = row as Partial<DamagedPayload>
  return { eventId, seq }
}

async function readPacked(sql: Sql, environmentId: string, rows: readonly Read[]): Promise<void> {
  const packed = rows.flatMap((row) => {
    const place = placeOf(row.payload)
    return place === null ? [] : { row, place }
  })
  const blocks = [...Map.groupBy(packed, ({ place }) => `${place.run} ${place.block}`).values()]
  for (let start = 0; start < blocks.length; start += BLOCKS_AT_ONCE) {
    await Promise.all(
      blocks.slice(start, start + BLOCKS_AT_ONCE).map(async (some) => {
        const { run, block } = some[0]!.place
        const texts = await readBlock(sql, environmentId, run, block)
        for (const { row, place } of some) {
          if (texts === null) markDamaged(row)
          else row.payload = texts.toString('utf8', place.at, place.at + place.bytes)
        }
      }),
    )
  }
}

function placeOf(text: string | null): Place | null {
  if (!text?.startsWith('@')) return null
  const [run = 0, block = 0, at = 0, bytes = 0] = text.slice(1).split(' ').map(Number)
  return { run, block, at, bytes }
}

async function readBlock(sql: Sql, environmentId: string, run: number, block: number): Promise<Buffer | null> {
  const row = await sql.get<{ packed: Buffer }>(
    'SELECT packed FROM payload_blocks WHERE environment_id = :env AND run = :run AND block = :block',
    { env: environmentId, run, block },
  )
  if (row === null) {
    // The embedded engine reads a snapshot, so a missing block is damage.
    if (sql.dialect === 'sqlite') return null
    // Between two statements of a lookup, an erasure removed the run, or its payloads were dropped.
    throw new StorageError('storage_unavailable', 'A block of payloads is no longer there')
  }
  try {
    return brotliDecompressSync(row.packed, { maxOutputLength: MAX_BLOCK_BYTES })
  } catch {
    return null
  }
}

const BLOCKS_DELETED = 1_000

/** Deletes blocks of a run whose events are deleted or have no payloads. False: some blocks are left for the next call. */
export async function deleteBlocks(sql: Sql, environmentId: string, run: number): Promise<boolean> {
  const ofRun = 'payload_blocks WHERE environment_id = :env AND run = :run'
  const some = `SELECT block FROM ${ofRun} ORDER BY block LIMIT ${BLOCKS_DELETED}`
  return (await sql.run(`DELETE FROM ${ofRun} AND block IN (${some})`, { env: environmentId, run })) < BLOCKS_DELETED
}
