/** Shows where a condition is invalid. Pure. */
import type { Fault } from '@tacho/policy/position.ts'
import { printable } from '../engine/output.ts'

/**
 * `name:2:6: what is wrong`, the source line, and a caret below the position. Tabs become one space, to keep the caret
 * aligned.
 */
export function faultLines(name: string, source: string, { message, position }: Fault): string[] {
  const { line, column, offset, endOffset } = position
  const text = source.split(/\r\n|\r|\n/)[line - 1] ?? ''
  const marked = Math.max(1, Math.min((endOffset ?? offset + 1) - offset, text.length - column + 1))
  const before = shown(text.slice(0, column - 1))
  const place = shown(text.slice(column - 1, column - 1 + marked))
  const caret = `${' '.repeat(width(before))}^${'~'.repeat(Math.max(0, width(place) - 1))}`
  return [`${printable(name)}:${line}:${column}: ${printable(message)}`, `  ${shown(text)}`, `  ${caret}`]
}

function shown(text: string): string {
  return printable(text.replaceAll('\t', ' '))
}

function width(text: string): number {
  return Array.from(text).length
}
