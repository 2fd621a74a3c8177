import { LIMITS } from '@tacho/contract/engine/limits.ts'

export interface Page<Row> {
  rows: Row[]
  more: boolean
}

export function mapPage<Row, To>({ rows, more }: Page<Row>, to: (row: Row) => To): Page<To> {
  return { rows: rows.map(to), more }
}

export function firstRows<Row extends object>(
  foundRows: Iterable<Row>,
  limit: number,
  sizeOf: (row: Row) => number = bytesOf,
): Page<Row> {
  const rows: Row[] = []
  let bytes = 0
  for (const row of foundRows) {
    bytes += sizeOf(row)
    if (rows.length === limit || (rows.length > 0 && bytes > LIMITS.listBytes)) return { rows, more: true }
    rows.push(row)
  }
  return { rows, more: false }
}

/** Counts only texts; other values are small. */
function bytesOf(row: object): number {
  let bytes = 0
  for (const value of Object.values(row)) if (typeof value === 'string') bytes += Buffer.byteLength(value)
  return bytes
}

export interface PageAfter<Place> {
  limit: number
  after: Place | null
}

export type PageById = PageAfter<string>

export async function* eachRow<Row extends { id: string }>(
  list: (page: PageById) => Promise<Page<Row>>,
): AsyncGenerator<Row> {
  let after: string | null = null
  for (;;) {
    const { rows, more } = await list({ limit: LIMITS.operatorPageMax, after })
    yield* rows
    if (!more) return
    after = rows.at(-1)?.id ?? null
  }
}

export async function allRows<Row extends { id: string }>(
  list: (page: PageById) => Promise<Page<Row>>,
): Promise<Row[]> {
  const rows: Row[] = []
  for await (const row of eachRow(list)) rows.push(row)
  return rows
}

/** The stored row of an API object: the same members, with times in milliseconds. */
export type RowFor<Shown, Time extends keyof Shown = Extract<keyof Shown, `${string}At`>> = Omit<Shown, Time> & {
  [Name in Time]: null extends Shown[Name] ? number | null : number
}

/** A change of a row. An undefined member stays unchanged. */
export type PatchOf<Row, Changeable extends keyof Row> = { [Name in Changeable]?: Row[Name] | undefined }
