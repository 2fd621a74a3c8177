/** Output on stdout: tables and lines for people, JSON for programs. */
import { costWords, tokenWords } from '@tacho/contract/runs/run-text.ts'
import { compact, money } from '@tacho/contract/engine/format.ts'
import { printableJson } from '@tacho/contract/engine/shown-text.ts'
import { currentLook, toned } from './display.ts'
import { shownTime, tablePages, type Column } from './table.ts'

export type { Column } from './table.ts'
export { printable } from '@tacho/contract/engine/shown-text.ts'

/** Prints a part of a JSON document. */
export function writeJson(text: string): void {
  process.stdout.write(printableJson(text))
}

export function printJson(value: unknown): void {
  writeJson(`${JSON.stringify(value, null, 2)}\n`)
}

/** Prints one JSON value per line, for endless output. */
export function printJsonLine(value: unknown): void {
  writeJson(`${JSON.stringify(value)}\n`)
}

export function printLine(text = ''): void {
  process.stdout.write(`${text}\n`)
}

/** The text for an empty list: a sentence, and the command that helps. */
type EmptyText = `${string}. ${string}\`tacho ${string}\`${string}.`

/** Writes a table page by page. */
export function tableWriter(columns: readonly Column[]): (rows: string[][]) => void {
  const linesOf = tablePages(columns, currentLook())
  return (rows) => {
    for (const line of linesOf(rows)) printLine(line)
  }
}

/** Prints a table; without rows, only the text. */
export function printTable(columns: readonly Column[], rows: string[][], empty?: EmptyText): void {
  if (rows.length === 0 && empty !== undefined) printEmpty(empty)
  else tableWriter(columns)(rows)
}

/** Prints on stderr, so that a program that reads stdout gets no line. */
export function printEmpty(text: EmptyText): void {
  process.stderr.write(`${text}\n`)
}

/** Prints on stderr, like `printEmpty`. */
export function printMore(hasMore: boolean): void {
  if (hasMore) process.stderr.write('There are more: use -n or --all.\n')
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
  writeJson(`{\n${[...members(head), `${JSON.stringify(name)}: [`].map((text) => `  ${text}`).join(',\n')}`)
  let separator = '\n'
  for await (const item of items) {
    writeJson(`${separator}    ${item}`)
    separator = ',\n'
  }
  writeJson(
    `\n  ]${members(tail())
      .map((text) => `,\n  ${text}`)
      .join('')}\n}\n`,
  )
}

export function strong(text: string): string {
  return toned('strong', text)
}

export function faint(text: string): string {
  return toned('faint', text)
}

/** Tokens and money: short on a terminal, exact otherwise. */
function spokenTokens(tokens: number): string {
  return currentLook().width === null ? spokenNumber(tokens) : compact(tokens)
}

export function spokenMoney(amount: number): string {
  return currentLook().width === null ? `$${spokenNumber(amount)}` : money(amount)
}

/** The sum of recorded and estimated cost. */
export const spokenCost = (used: Parameters<typeof costWords>[0]): string => costWords(used, spokenMoney)

export const spokenUsage = (totalTokens: number): string => tokenWords(totalTokens, spokenTokens)

/** A time of the server, in the form of tables. */
export function spokenTime(time: string): string {
  return shownTime(time, currentLook())
}

/**
 * `1,234,567` in every locale, with at most nine decimals. Avoids Intl except for rounding: loading it takes longer
 * than a whole command.
 */
export function spokenNumber(value: number): string {
  const text = String(value)
  const [whole = '', decimals = ''] = text.split('.')
  if (/[^-\d.]/.test(text) || (decimals.length === 10 && decimals.endsWith('5')))
    return value.toLocaleString('en-US', { maximumFractionDigits: 9 })
  if (decimals.length > 9) return spokenNumber(Number(value.toFixed(9)))
  return whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ',') + (decimals === '' ? '' : `.${decimals}`)
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

/** The author of a change. For an imported record, the name is only a claim of the file. */
export function authorText(name: string, importedAt: string | null): string {
  return importedAt === null ? name : `${name} (imported)`
}
