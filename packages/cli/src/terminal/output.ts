/** Output on stdout: tables and lines for people, JSON for programs. */
import { styleText } from 'node:util'

export interface Column {
  title: string
  align?: 'left' | 'right'
}

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
}

/** One JSON value per line, for endless output. */
export function printJsonLine(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}

export function printLine(text = ''): void {
  process.stdout.write(`${text}\n`)
}

/** Writes a table page by page; columns grow when a later row needs it. */
export function tableWriter(columns: Column[]): (rows: string[][]) => void {
  const widths = columns.map(({ title }) => title.length)
  let started = false
  return (rows) => {
    for (const line of tableLines(columns, rows, widths, !started)) printLine(line)
    started = true
  }
}

export function printTable(columns: Column[], rows: string[][]): void {
  tableWriter(columns)(rows)
}

/** Cells are escaped for a terminal; widths count code points. Widens `widths` if the rows need it. */
export function tableLines(columns: Column[], rows: string[][], widths: number[], withHead: boolean): string[] {
  const cells = rows.map((row) => row.map(printable))
  for (const row of cells) row.forEach((cell, place) => (widths[place] = Math.max(widths[place] ?? 0, width(cell))))
  const line = (row: string[]): string =>
    row
      .map((cell, place) => pad(cell, widths[place] ?? 0, columns[place]?.align ?? 'left'))
      .join('  ')
      .trimEnd()
  const head = withHead ? [strong(line(columns.map(({ title }) => title)))] : []
  return [...head, ...cells.map(line)]
}

/**
 * Streams one JSON document `{ ...head, [name]: [items], ...tail() }`. Items are JSON texts, so recorded data passes
 * through unchanged.
 */
export async function printJsonItems(
  head: Record<string, unknown>,
  name: string,
  items: AsyncIterable<string>,
  tail: () => Record<string, unknown> = () => ({}),
): Promise<void> {
  const members = (values: Record<string, unknown>): string[] =>
    Object.entries(values).map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`)
  process.stdout.write(`{\n${[...members(head), `${JSON.stringify(name)}: [`].map((text) => `  ${text}`).join(',\n')}`)
  let separator = '\n'
  for await (const item of items) {
    process.stdout.write(`${separator}    ${item}`)
    separator = ',\n'
  }
  process.stdout.write(
    `\n  ]${members(tail())
      .map((text) => `,\n  ${text}`)
      .join('')}\n}\n`,
  )
}

export function strong(text: string): string {
  return styleText('bold', text, { stream: process.stdout })
}

export function faint(text: string): string {
  return styleText('dim', text, { stream: process.stdout })
}

/**
 * Escapes text of clients for a terminal: control characters could move the cursor or clear the screen, and direction
 * marks could reverse text.
 */
export function printable(text: string): string {
  return text.toWellFormed().replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, escaped)
}

function escaped(character: string): string {
  const short: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }
  return short[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** `1,234,567`, the same in every locale. */
export function spokenNumber(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 9 })
}

/** `1 run`, `2 runs`. */
export function counted(count: number, noun: string): string {
  return `${spokenNumber(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** `1.5 MiB` */
export function spokenBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1)
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`
}

function width(cell = ''): number {
  return Array.from(cell).length
}

function pad(cell: string, size: number, align: 'left' | 'right'): string {
  const space = ' '.repeat(Math.max(0, size - width(cell)))
  return align === 'right' ? space + cell : cell + space
}
