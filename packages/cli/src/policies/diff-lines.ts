/** Formats the differences of two versions. Pure, except for colours. */
import type { VersionDiff } from '@tacho/contract/policies/version.ts'
import { styleText } from 'node:util'
import { printable } from '../engine/output.ts'

type Line = VersionDiff['fields'][number]['lines'][number]

/** Unchanged lines to show around a change. */
const CONTEXT = 3
const MARKS = { same: ' ', removed: '-', added: '+' } as const
const COLOURS = { removed: 'red', added: 'green' } as const

/** By default the newest version and the one before it. */
export function diffQuery(newest: string, from: string | undefined, to: string | undefined) {
  const second = to ?? newest
  return { from: from ?? String(Math.max(1, Number(second) - 1)), to: second }
}

export function diffLines({ fields }: Pick<VersionDiff, 'fields'>): string[] {
  return fields.flatMap(({ field, lines, exact }) => [
    exact ? `${field}:` : `${field} (almost every line differs):`,
    ...near(lines).map((line) => (line === null ? '  …' : lineText(line))),
  ])
}

/** Replaces unchanged lines far from any change with null. */
function near(lines: Line[]): (Line | null)[] {
  const shown = lines.map((_, place) =>
    lines.slice(Math.max(0, place - CONTEXT), place + CONTEXT + 1).some(({ change }) => change !== 'same'),
  )
  return lines.flatMap((line, place) => {
    if (shown[place]) return [line]
    return place === 0 || shown[place - 1] ? [null] : []
  })
}

function lineText({ change, text }: Line): string {
  const line = `${MARKS[change]} ${printable(text)}`
  return change === 'same' ? line : styleText(COLOURS[change], line, { stream: process.stdout })
}
