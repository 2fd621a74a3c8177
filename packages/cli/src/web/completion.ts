import type { Command, Option } from 'commander'
import { printLine } from '../engine/output.ts'

/** Scripts by shell. Each gets completions from `tacho complete`, so it is never out of date. */
const SCRIPTS = new Map([
  [
    'bash',
    `_tacho() {
  local IFS=$'\\n'
  COMPREPLY=($(tacho complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null))
}
complete -o default -F _tacho tacho`,
  ],
  [
    'zsh',
    `_tacho() {
  local -a found
  found=("\${(@f)$(tacho complete -- "\${(@)words[2,CURRENT]}" 2> /dev/null)}")
  if (( \${#found[1]} )); then compadd -a found; else _files; fi
}
compdef _tacho tacho`,
  ],
  ['fish', `complete -c tacho -f -a '(tacho complete -- (commandline -opc)[2..] (commandline -ct) 2> /dev/null)'`],
])

export function addCompletion(command: Command): void {
  command.registeredArguments[0]?.choices([...SCRIPTS.keys()])
  command
    .addHelpText(
      'after',
      `
Prints a script that completes commands and flags with the tab key.

Examples:
  source <(tacho completion bash)                              in ~/.bashrc
  source <(tacho completion zsh)                               in ~/.zshrc, after compinit
  tacho completion fish > ~/.config/fish/completions/tacho.fish`,
    )
    .action(script)
}

type MakeProgram = (args: readonly string[]) => Promise<Command>

export function addComplete(command: Command, makeProgram: MakeProgram): void {
  command.action(async (words: string[]) => {
    const program = await makeProgram(words.slice(0, -1))
    for (const completedWord of completions(program, words)) printLine(completedWord)
  })
}

function script(shell: string): void {
  printLine(SCRIPTS.get(shell))
}

/** Completions of the last word: a command, a flag, or a value of the flag before it. */
function completions(program: Command, words: readonly string[]): string[] {
  const typed = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  let command = program
  for (const word of before) command = command.commands.find((known) => known.name() === word) ?? command
  const flag = findFlag(command, before.at(-1) ?? '')
  return candidates(command, flag, typed).filter((word) => word.startsWith(typed))
}

function candidates(command: Command, flag: Option | undefined, typed: string): string[] {
  // Most values are file names, which the shell itself completes.
  if (flag !== undefined && (flag.required || flag.optional)) return [...(flag.argChoices ?? [])]
  if (typed.startsWith('-')) return [...command.options.flatMap(({ long }) => long ?? []), '--help']
  const commands = command.createHelp().visibleCommands(command)
  return [...commands.map((known) => known.name()), ...(command.registeredArguments[0]?.argChoices ?? [])]
}

function findFlag(command: Command, word: string): Option | undefined {
  return command.options.find(({ long, short }) => word !== '' && (long === word || short === word))
}
