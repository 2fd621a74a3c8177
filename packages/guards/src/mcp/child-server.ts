/** A server that the guard starts: MCP on its standard input and output. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { PassThrough, type Writable } from 'node:stream'
import type { ServerConnection } from './connection.ts'
import { linesOf } from './lines.ts'

/** How long a server may take to exit on its own, and again after SIGTERM. */
const END_MS = 5_000

/** How long to wait for the output to close after the exit: child processes of the server may keep it open. */
const OUTPUT_MS = 500

/** How long the guard answers requests in place of a server that could not start. */
const ANSWERING_MS = 2_000

const LINE_BREAK = Buffer.of(0x0a)

/**
 * Removed from the server's environment: the guard's credentials, and the variables that `scripts/node` sets and names
 * in TACHO_OWN_VARIABLES.
 */
const OWN_VARIABLES = ['TACHO_API_KEY', 'TACHO_OPERATOR_TOKEN', 'TACHO_OWN_VARIABLES']

/** Returns a connection that reports the error if the command cannot be started. */
export async function startServer(command: string, args: readonly string[]): Promise<ServerConnection> {
  const env = { ...process.env }
  const set = (env['TACHO_OWN_VARIABLES'] ?? '').split(' ')
  for (const name of [...OWN_VARIABLES, ...set]) delete env[name]
  let child
  try {
    child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], env })
    await once(child, 'spawn')
  } catch (error) {
    const cause = String((error as NodeJS.ErrnoException).code)
    return unstarted(`The server command ${JSON.stringify(command)} cannot be started (${cause}).`)
  }
  let isClosing = false
  let timer: NodeJS.Timeout | undefined
  const ended = new Promise<number>((resolve) => {
    child.once('exit', (code, signal) => {
      clearTimeout(timer)
      isClosing = true
      const outputTimer = setTimeout(() => child.stdout.destroy(), OUTPUT_MS)
      child.stdout.once('close', () => clearTimeout(outputTimer))
      resolve(code ?? 128 + (signal ? constants.signals[signal] : 0))
    })
  })
  // Ignore write errors: the exit of the server is what counts.
  child.stdin.on('error', () => undefined)

  return {
    send: (line) => writeLine(child.stdin, line),
    lines: linesOf(child.stdout),
    ended,
    signal: (name) => void child.kill(name),
    close() {
      if (isClosing) return
      isClosing = true
      child.stdin.end()
      timer = setTimeout(() => {
        child.kill('SIGTERM')
        timer = setTimeout(() => child.kill('SIGKILL'), END_MS)
      }, END_MS)
    },
  }
}

/** Stands in for a server that could not start. Answers every request with the error, even before `initialize`. */
function unstarted(why: string): ServerConnection {
  const { promise: ended, resolve } = Promise.withResolvers<number>()
  const lines = new PassThrough()
  const close = (): void => {
    clearTimeout(timer)
    lines.end()
    resolve(1)
  }
  const timer = setTimeout(close, ANSWERING_MS)
  return { why, send: () => Promise.resolve(), lines, ended, signal: close, close }
}

/** Resolves when the stream has room for more, or is closed. */
export async function writeLine(stream: Writable, line: string | Buffer): Promise<void> {
  if (!stream.writable) return
  stream.cork()
  stream.write(line)
  const hasRoom = stream.write(LINE_BREAK)
  stream.uncork()
  if (hasRoom || stream.destroyed) return
  const end = new AbortController()
  const { signal } = end
  const events = ['drain', 'close', 'error'].map((name) => once(stream, name, { signal }).catch(() => undefined))
  await Promise.race(events)
  end.abort()
}
