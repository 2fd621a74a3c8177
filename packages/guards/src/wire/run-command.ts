/**
 * Runs a program in place of this process. The program gets the input, output, terminal and signals of this process,
 * and this process ends with it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'

export interface CommandEnd {
  /** Exit code as in a shell: 128 plus the number of the signal that ended the program. */
  readonly code: number
  readonly signal: NodeJS.Signals | null
  /** Whether the program ended after a signal from a person or a supervisor. */
  readonly isStopped: boolean
}

/** A terminal also sends these to the program itself. */
const OF_THE_TERMINAL = new Set<NodeJS.Signals>(['SIGINT', 'SIGQUIT'])
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const
const STOPPING = new Set<string | null>(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'])
/** Variables that are removed from the program's environment. */
const OWN_VARIABLES = ['TACHO_OWN_VARIABLES']

/** @throws the system's error if the command cannot be started. */
export async function runCommand(
  words: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<CommandEnd> {
  const [command = '', ...args] = words
  const env = { ...process.env, ...variables }
  const set = (env['TACHO_OWN_VARIABLES'] ?? '').split(' ')
  for (const name of [...OWN_VARIABLES, ...set]) delete env[name]
  const child = spawn(command, args, { stdio: 'inherit', env })
  let isStopped = false
  const listeners = SIGNALS.map((name) => {
    const pass = (): void => {
      isStopped ||= STOPPING.has(name)
      // Skip signals that the terminal already sent: many programs take a second SIGINT as "exit at once".
      if (!(OF_THE_TERMINAL.has(name) && process.stdin.isTTY)) child.kill(name)
    }
    process.on(name, pass)
    return { name, pass }
  })
  try {
    await once(child, 'spawn')
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    return {
      code: code ?? 128 + (signal ? constants.signals[signal] : 0),
      signal,
      isStopped: isStopped || STOPPING.has(signal),
    }
  } finally {
    for (const { name, pass } of listeners) process.off(name, pass)
  }
}
