/** Commander suggests options for a wrong letter, not for a part of a name such as `--data`. */
import type { Command } from 'commander'

/** The error, with the options that begin as the unknown one does. */
export function withNearOption(error: string, program: Command, args: readonly string[]): string {
  const unknown = /unknown option '(--[\w-]+)[^']*'\n$/.exec(error)?.[1]
  if (unknown === undefined) return error
  const flags = namedBy(args, program).options.flatMap(({ long, hidden }) => (long && !hidden ? [long] : []))
  const near = [
    flags.filter((flag) => flag.startsWith(`${unknown}-`) || unknown.startsWith(`${flag}-`)),
    flags.filter((flag) => flag.startsWith(unknown)),
  ].find((some) => some.length > 0)
  if (near === undefined) return error
  const which = near.length === 1 ? near[0] : `one of ${near.join(', ')}`
  return `${error}(Did you mean ${which}?)\n`
}

function namedBy(args: readonly string[], program: Command): Command {
  let command = program
  for (const arg of args) command = command.commands.find((one) => one.name() === arg) ?? command
  return command
}
