/**
 * An SDK under test: a process that reads one JSON object per line and answers each with one line of the same `id`.
 * docs/sdk/conformance.md describes the operations. Answers may come in any order.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export interface Adapter {
  /** Starts another process of the same program, with additional environment variables. */
  again(variables: Readonly<Record<string, string>>): Adapter
  /** Rejects if the adapter answers with an error, or ends. */
  send<Result = unknown>(op: string, args?: object): Promise<Result>
  /** Everything it wrote to stdout and stderr. */
  output(): string
  stop(): Promise<void>
}

interface Line {
  id: number
  ok: boolean
  result?: unknown
  error?: unknown
}

/** @param command the program and its arguments. */
export function startAdapter(command: readonly string[], variables: Readonly<Record<string, string>> = {}): Adapter {
  const [program = '', ...args] = command
  const env = { ...process.env, ...variables }
  const child: ChildProcess = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'pipe'] })
  const waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>()
  let written = ''
  let count = 0
  let ended: Error | null = null

  function end(why: string): void {
    ended = new Error(`The adapter ended: ${why}\n${written.slice(-2_000)}`)
    for (const { reject } of waiting.values()) reject(ended)
    waiting.clear()
  }
  child.on('error', ({ message }) => end(message))
  child.on('close', (code, signal) => end(`${signal ?? code}`))
  child.stdin?.on('error', () => undefined)
  child.stderr?.on('data', (chunk: Buffer) => (written += chunk.toString()))
  if (child.stdout) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      written += `${line}\n`
      const { id, ok, result, error } = JSON.parse(line) as Line
      const one = waiting.get(id)
      waiting.delete(id)
      if (ok) one?.resolve(result as never)
      else one?.reject(new Error(`The adapter answered: ${String(error)}`))
    })
  }

  return {
    again: (more) => startAdapter(command, { ...variables, ...more }),
    send: (op, args = {}) =>
      new Promise((resolve, reject) => {
        if (ended) return reject(ended)
        const id = ++count
        waiting.set(id, { resolve, reject })
        child.stdin?.write(`${JSON.stringify({ id, op, ...args })}\n`)
      }),
    output: () => written,
    async stop() {
      if (ended) return
      const closed = once(child, 'close')
      child.stdin?.end()
      const forced = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await closed
      clearTimeout(forced)
    },
  }
}
