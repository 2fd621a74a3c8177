/** Commander suggests options for a wrong letter, not for a part of a name such as `--data`. */
import type { Command } from 'commander'

/** The options that begin as the unknown one of the error does; null if there are none, or if the error has a suggestion. */
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
