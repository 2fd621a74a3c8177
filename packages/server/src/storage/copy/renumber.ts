/**
 * The embedded engine numbers the events of the whole store in the order of arrival; PostgreSQL, those of each run. So
 * PostgreSQL can keep the seqs. In the embedded engine, each run's events get a range of their own, with the same order
 * and gaps. The result depends only on the source, so it can be verified.
 */
import { StoreRefused } from '../engine/store.ts'
import type { Numbering, Row, Side } from './side.ts'

export function firstNumbering(): Numbering {
  return { next: 1, run: null, offset: 0 }
}

/** The rows arrive run by run. */
export async function renumberEvents(rows: Row[], source: Side, before: Numbering): Promise<Numbering> {
  const runs = new Map(rows.map((row) => [Number(row['run']), String(row['environment_id'])]))
  if (before.run !== null) runs.delete(before.run)
  const spans = await source.seqSpans(runs)
  let { next, run, offset } = before
  for (const row of rows) {
    const of = Number(row['run'])
    if (of !== run) {
      const { min, max } = spans.get(of) ?? { min: 1, max: 0 }
      run = of
      offset = next - min
      next += max - min + 1
    }
    row['seq'] = Number(row['seq']) + offset
  }
  if (next > Number.MAX_SAFE_INTEGER) throw new Error('The event numbers are too large for the embedded engine')
  return { next, run, offset }
}

/** PostgreSQL stores seqs in 32 bits, the embedded engine in 53. */
const LARGEST_SEQ = 2 ** 31 - 1

export function checkSeqs(rows: readonly Row[], target: Side): void {
  if (target.engine !== 'postgres' || rows.every((row) => Number(row['seq']) <= LARGEST_SEQ)) return
  throw new StoreRefused(`The store numbers its events beyond ${LARGEST_SEQ}, which ${target.place} cannot hold.`)
}

export async function renumberRuns(rows: Row[], source: Side, target: Side): Promise<void> {
  const ids = new Map(rows.map((row) => [Number(row['number']), String(row['environment_id'])]))
  const from = await source.seqSpans(ids)
  if (source.engine === 'sqlite' && target.engine === 'postgres') {
    for (const row of rows) row['last_seq'] = from.get(Number(row['number']))?.max ?? 0
  }
  if (source.engine === 'postgres' && target.engine === 'sqlite') {
    const to = await target.seqSpans(ids)
    for (const row of rows) {
      const [old, now] = [from.get(Number(row['number'])), to.get(Number(row['number']))]
      if (row['closing_seq'] !== null && old && now) row['closing_seq'] = Number(row['closing_seq']) + now.min - old.min
    }
  }
}
