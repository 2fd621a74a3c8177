/** Fits what commands add to their help to a terminal; commander wraps only its own parts. Pure. */
import { Help } from 'commander'
import { widthOf } from './text-width.ts'

/** The heading of the flags that most commands share. They come after a command's own. */
export const COMMON_OPTIONS = 'Common options:'

/** For commander's `configureHelp`. */
export const HELP_SETTINGS = {
  /** Explanations wrap in a narrow column too. */
  minWidthToWrap: 20,
  groupItems: <Item>(_all: Item[], visible: Item[], headingOf: (item: Item) => string) =>
    new Map(
      [...Map.groupBy(visible, headingOf)].sort(
        ([a], [b]) => Number(a === COMMON_OPTIONS) - Number(b === COMMON_OPTIONS),
      ),
    ),
}

/** Commands in examples stay whole: a terminal breaks them without a line break, so they can be copied. */
export function fitHelp(text: string, { isTTY, columns }: { isTTY?: boolean; columns?: number }): string {
  if (!isTTY || !columns) return text
  return text
    .replace(CONTINUED, '$1 ')
    .split('\n')
    .map((line) => fitLine(line, columns))
    .join('\n')
}

/** A line of prose whose sentence continues on the next line. */
const CONTINUED = /^(\S.*[^.:\n])\n(?=[^\s(])(?!.*:$)/gm
const TERM = /^( {2}\S+ {2,})(\S.*)$/
const help = Object.assign(new Help(), HELP_SETTINGS)

function fitLine(line: string, columns: number): string {
  if (widthOf(line) <= columns) return line
  const [, term, meaning] = TERM.exec(line) ?? []
  if (term === undefined || meaning === undefined) return line.startsWith(' ') ? line : help.boxWrap(line, columns)
  return term + help.boxWrap(meaning, columns - term.length).replaceAll('\n', `\n${' '.repeat(term.length)}`)
}
