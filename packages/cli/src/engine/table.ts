/** Tables that fit the terminal. Pure, except for colours. */
import { relative } from '@tacho/contract/engine/format.ts'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import { cutEnd, cutMiddle, pad, widthOf } from './text-width.ts'
import { type Look, toned, tonedWord } from './display.ts'

export interface Column {
  title: string
  align?: 'left' | 'right'
  /**
   * On a terminal, time: relative; id: shortened; word: coloured by its meaning; whole: never cut; text: a sentence,
   * cut at its end.
   */
  as?: 'time' | 'id' | 'word' | 'whole' | 'text'
  /** The column is left out if not all columns fit. */
  isOptional?: true
}

const GAP = '  '
interface Least {
  sentence: number
  other: number
}

/** Minimum widths of columns, tried in the order of STEPS. A sentence needs more room than an id or a name. */
const GOOD: Least = { sentence: 42, other: 14 }
const STEPS: readonly Least[] = [GOOD, { sentence: 33, other: 11 }, { sentence: 16, other: 8 }]

/** The lines of each page of a table. A column grows when a later row needs it and there is room. */
export function tablePages(columns: readonly Column[], tableLook: Look): (rows: string[][]) => string[] {
  const natural = columns.map(({ title }) => title.length)
  let places: number[] | null = null
  return (rows) => {
    const cells = shownCells(columns, rows, tableLook)
    for (const row of cells) row.forEach((cell, at) => (natural[at] = Math.max(natural[at] ?? 0, widthOf(cell))))
    const isFirst = places === null
    places ??= columnsWithRoom(columns, natural, tableLook)
    const widths = fittingWidths(columns, natural, places, tableLook)
    const line = (row: string[], style: (cell: string, column: Column) => string): string =>
      (places ?? [])
        .map((at, place) => {
          const column = columns[at] ?? { title: '' }
          const cut = column.as === 'text' ? cutEnd : cutMiddle
          return style(pad(cut(row[at] ?? '', widths[place] ?? 0), widths[place] ?? 0, column.align), column)
        })
        .join(GAP)
        .trimEnd()
    const lines = cells.map((row) => line(row, styled))
    if (!isFirst) return lines
    const titles = columns.map(({ title }) => title)
    return [
      toned(
        'strong',
        line(titles, (title) => title),
      ),
      ...lines,
    ]
  }
}

function styled(cell: string, { as }: Column): string {
  return as === 'word' ? tonedWord(cell) : cell
}

/** The texts of all cells, safe for a terminal. */
function shownCells(columns: readonly Column[], rows: string[][], tableLook: Look): string[][] {
  const shown = rows.map((row) => row.map(printable))
  if (tableLook.width === null) return shown
  columns.forEach(({ as }, at) => {
    const texts = shown.map((row) => row[at] ?? '')
    const short =
      as === 'id' ? shortIds(texts) : as === 'time' ? texts.map((text) => shownTime(text, tableLook)) : texts
    shown.forEach((row, place) => (row[at] = short[place] ?? ''))
  })
  return shown
}

/** A time, relative on a terminal. Other texts, such as `never`, stay. */
export function shownTime(text: string, { width, isExact, now }: Look): string {
  if (width === null || isExact || !/^\d{4}-\d\d-\d\dT/.test(text)) return text
  const time = Date.parse(text)
  return Number.isNaN(time) ? text : relative(time, now)
}

function narrowed({ title, align, as }: Column, natural: number, { sentence, other }: Least): number {
  if (as === 'text') return Math.min(natural, sentence)
  return align === 'right' || as !== undefined ? natural : Math.min(natural, Math.max(other, title.length))
}

/** The columns that fit: while there is no room, the last optional one is left out. */
function columnsWithRoom(columns: readonly Column[], natural: readonly number[], { width }: Look): number[] {
  const places = columns.map((_, at) => at)
  const least = (): number =>
    places.reduce((sum, at) => sum + narrowed(columns[at] ?? { title: '' }, natural[at] ?? 0, GOOD) + GAP.length, 0)
  while (width !== null && least() - GAP.length > width) {
    const optional = places.findLastIndex((at) => columns[at]?.isOptional)
    if (optional === -1) break
    places.splice(optional, 1)
  }
  return places
}

/** Narrows the widest column until all fit. Sentences are narrowed only when the other columns have their minimum. */
function fittingWidths(
  columns: readonly Column[],
  natural: readonly number[],
  places: readonly number[],
  { width }: Look,
): number[] {
  const widths = places.map((at) => natural[at] ?? 0)
  if (width === null) return widths
  let excess = widths.reduce((sum, size) => sum + size + GAP.length, -GAP.length) - width
  for (const step of STEPS) {
    const least = places.map((at) => narrowed(columns[at] ?? { title: '' }, natural[at] ?? 0, step))
    for (; excess > 0; excess--) {
      const spare = widths.map((cells, place) => (cells > (least[place] ?? 0) ? cells : 0))
      const widest = spare.indexOf(Math.max(...spare))
      if ((spare[widest] ?? 0) === 0) break
      widths[widest] = (widths[widest] ?? 0) - 1
    }
  }
  return widths
}

/** Short forms of ids, which commands accept in place of the whole ids. Pure. */

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const LEAST_CHARS = 8
const CUT = '…'

/** Shortens UUIDs to their shortest distinct beginnings, at least 8 characters. Other ids are not changed. */
export function shortIds(ids: readonly string[]): string[] {
  const uuids = new Set(ids.filter((id) => UUID.test(id)))
  let size = LEAST_CHARS
  while (size < 36 && new Set([...uuids].map((id) => id.slice(0, size))).size < uuids.size) size += 1
  return ids.map((id) => (uuids.has(id) ? id.slice(0, size) : id))
}

/** Whether a text is the id, its beginning, or its beginning and end as in a table: `order-…4711`. */
export function isShortFor(shortId: string, id: string): boolean {
  const at = shortId.indexOf(CUT)
  if (at === -1) return id.startsWith(shortId)
  const [start, end] = [shortId.slice(0, at), shortId.slice(at + CUT.length)]
  return id.length >= start.length + end.length && id.startsWith(start) && id.endsWith(end)
}

/** The beginning of an id, from a text that `isShortFor` accepts. */
export function beginningOf(shortId: string): string {
  return shortId.split(CUT, 1)[0] ?? ''
}
