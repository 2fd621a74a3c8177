/** Fits help to a terminal, and suggests options that are similar to a wrong one. Pure. */
import { Help, type Command } from 'commander'
import { widthOf } from './text-width.ts'

/** Heading of the flags that most commands share. It comes after a command's own flags. */
export const COMMON_OPTIONS = 'Common options:'

/** Settings for commander's `configureHelp`. */
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

/**
 * Wraps help texts. Commands in examples have no line breaks, so that they can be copied: the terminal itself wraps
 * them.
 */
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

/** Suggests options for an incomplete name such as `--data`. Commander suggests only for a wrong letter. */

/**
 * The options that begin like the unknown one in the error; null if there are none, or if the error already has a
 * suggestion.
 */
export function nearOption(error: string, program: Command, args: readonly string[]): string | null {
  const unknown = /unknown option '(--[\w-]+)[^']*'$/.exec(error)?.[1]
  if (unknown === undefined) return null
  const flags = namedBy(args, program).options.flatMap(({ long, hidden }) => (long && !hidden ? [long] : []))
  const near = [
    flags.filter((flag) => flag.startsWith(`${unknown}-`) || unknown.startsWith(`${flag}-`)),
    flags.filter((flag) => flag.startsWith(unknown)),
  ].find((some) => some.length > 0)
  if (near === undefined) return null
  return near.length === 1 ? (near[0] ?? null) : `one of ${near.join(', ')}`
}

function namedBy(args: readonly string[], program: Command): Command {
  let command = program
  for (const arg of args) command = command.commands.find((one) => one.name() === arg) ?? command
  return command
}
