/** Long output on a terminal goes through a pager, as git and gh do: $TACHO_PAGER, $PAGER or less. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Writable } from 'node:stream'

/** Resolves to false when the reader has closed the output. */
export type Print = (line: string) => Promise<boolean>

/** Runs `act` with a function that prints to the pager. Without a pager or a terminal, it prints to stdout. */
export async function paged(act: (print: Print) => Promise<void>): Promise<void> {
  const pager = process.stdout.isTTY && process.stdin.isTTY ? startPager() : null
  if (pager === null) return act(printTo(process.stdout))
  const ended = once(pager, 'close')
  // Ctrl-C must not end this process while the pager still shows its text.
  const ignore = (): void => undefined
  process.on('SIGINT', ignore)
  try {
    await act(printTo(pager.stdin))
  } finally {
    pager.stdin.end()
    await ended
    process.off('SIGINT', ignore)
  }
}

function printTo(stream: Writable): Print {
  return async (line) => {
    if (!stream.writable) return false
    // Wait for the reader: a run can have 100,000 steps.
    if (!stream.write(`${line}\n`)) await Promise.race([once(stream, 'drain'), once(stream, 'close')])
    return stream.writable
  }
}

const DEFAULT = 'less'

function startPager(): (ChildProcess & { stdin: Writable }) | null {
  const command = process.env['TACHO_PAGER'] ?? process.env['PAGER'] ?? (isInstalled(DEFAULT) ? DEFAULT : '')
  if (command === '' || command === 'cat') return null
  // F: end at once if everything fits on the screen; R: pass colours; X: leave the text on the screen.
  const env = { LESS: 'FRX', ...process.env }
  const pager = spawn(command, { shell: true, stdio: ['pipe', 'inherit', 'inherit'], env })
  pager.stdin.on('error', () => undefined)
  return pager
}

function isInstalled(program: string): boolean {
  const directories = (process.env['PATH'] ?? '').split(path.delimiter)
  return directories.some((directory) => existsSync(path.join(directory, program)))
}
