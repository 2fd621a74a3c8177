/** Starts the server as a separate process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { eventually } from './eventually.ts'

export interface ServerProcess {
  /** Resolves with the address when the server listens; rejects if it ends before. */
  ready(): Promise<string>
  stdout(): string
  stderr(): string
  signal(signal: NodeJS.Signals): void
  /** Exit code, or the signal that ended it. */
  ended(): Promise<number | NodeJS.Signals | null>
}

const PROGRAM = path.resolve(import.meta.dirname, '../../../cli/bin/tacho')
/** Lets a test cause an uncaught error. */
const UNCAUGHT = new URL('uncaught-on-signal.ts', import.meta.url).href

/** A directory that is removed after the test. */
export function temporaryDirectory(t: TestContext): string {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-process-'))
  t.after(() => rmSync(directory, { recursive: true }))
  return directory
}

/** Starts a server process that ends with the test. */
export function startProcess(t: TestContext, directory: string, variables: Record<string, string> = {}): ServerProcess {
  const child = spawn(PROGRAM, ['serve'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      NODE_OPTIONS: `--import=${UNCAUGHT}`,
      TACHO_PORT: '0',
      TACHO_DRAIN_DELAY: '0s',
      TACHO_DATA_DIR: directory,
      ...variables,
    },
  })
  const exited = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  t.after(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => (output[name] += text))
  }
  function ready(): Promise<string> {
    return eventually(() => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`The server ended with ${child.exitCode ?? child.signalCode}: ${output.stderr}`)
      // Wait for the log line first. The address is printed in one piece with the first credentials.
      return output.stderr.includes('"ready"') ? /listens on (\S+);/.exec(output.stdout)?.[1] : undefined
    }, 'a server that is ready')
  }
  return {
    ready,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    signal: (signal) => child.kill(signal),
    ended: async () => {
      const [code, signal] = await exited
      return code ?? signal
    },
  }
}
