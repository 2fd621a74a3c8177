import type { VersionDiff } from '@tacho/contract/policies/version.ts'
import { diffArrays, type ChangeObject } from 'diff'

type FieldDiff = VersionDiff['fields'][number]

/**
 * Most removed and added lines together. Limits the work to 30 ms for any text length, spread over as many turns of the
 * event loop.
 */
const EDITS_MAX = 400

/** Maximum lines of both texts: more would take hundreds of milliseconds to match and to send. */
const LINES_MAX = 4_000

export async function diffFields(
  one: Record<string, string | null>,
  other: Record<string, string | null>,
): Promise<FieldDiff[]> {
  const fieldDiffs: FieldDiff[] = []
  for (const field of Object.keys(one)) {
    const [before, after] = [one[field] ?? '', other[field] ?? '']
    if (before !== after) fieldDiffs.push({ field, ...(await diffLines(before, after)) })
  }
  return fieldDiffs
}

async function diffLines(before: string, after: string): Promise<Omit<FieldDiff, 'field'>> {
  const [removed, added] = linesOf(before, after)
  if (removed.length + added.length > LINES_MAX) {
    return { lines: [...asOne('removed', removed), ...asOne('added', added)], exact: false }
  }
  const { promise, resolve: callback } = Promise.withResolvers<ChangeObject<string[]>[] | undefined>()
  // With a callback, the library searches for each further edit in a separate turn.
  diffArrays(removed, added, { maxEditLength: EDITS_MAX, callback })
  const changes = await promise
  if (!changes) return { lines: [...marked('removed', removed), ...marked('added', added)], exact: false }
  const lines = changes.flatMap(({ value, ...change }) =>
    marked(change.removed ? 'removed' : change.added ? 'added' : 'same', value),
  )
  return { lines, exact: true }
}

function marked(change: 'same' | 'removed' | 'added', lines: string[]): FieldDiff['lines'] {
  return lines.map((text) => ({ change, text }))
}

function asOne(change: 'removed' | 'added', lines: string[]): FieldDiff['lines'] {
  return lines.length === 0 ? [] : [{ change, text: lines.join('\n') }]
}

/** If only one text ends with a line break, the difference is shown as an empty line. */
function linesOf(...texts: [string, string]): [string[], string[]] {
  const whole = texts.every((text) => text.endsWith('\n'))
  const [one, other] = texts.map((text) => (text === '' ? [] : (whole ? text.slice(0, -1) : text).split('\n')))
  return [one ?? [], other ?? []]
}
