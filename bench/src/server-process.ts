/** Runs a server in its own process, started as users start it. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { Held } from './load/loop-probe.ts'
import { ROOT } from './place.ts'

export type ServerProcess = Awaited<ReturnType<typeof startProcess>>

/** Resources used by a process. */
export interface Usage {
  megabytes: number
  /** Processor time since its start, user and system. */
  cpuSeconds: number
}

export interface ServerProgram {
  /** Program and arguments for Node. */
  args: readonly string[]
  /** File for its errors and its log. */
  logFile: string
  variables?: Record<string, string>
  /** Path that answers 200 when the server is ready. */
  readyPath: string
  /** Whether to measure its event loop with load/loop-probe.ts. */
  probe?: boolean
}

const STOP_MS = 20_000
const PROBE = new URL('load/loop-probe.ts', import.meta.url).href

/** The program must print its address as `listens on http://…`. */
export async function startProcess({ args, logFile, variables, readyPath, probe = false }: ServerProgram) {
  const log = openSync(logFile, 'a')
  const startedAt = performance.now()
  const child = spawn(path.join(ROOT, 'scripts/node'), [...(probe ? ['--import', PROBE] : []), ...args], {
    stdio: ['ignore', 'pipe', log, ...(probe ? ['ipc' as const] : [])],
    env: { ...usersEnvironment(), ...variables },
  })
  closeSync(log)
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  const exited = once(child, 'exit').then(() => process.off('exit', kill))
  const url = await Promise.race([addressOf(child), exited.then(() => null)])
  if (url === null) throw new Error(`The server ended: ${readFileSync(logFile, 'utf8').slice(-2_000)}`)
  while (!(await fetch(`${url}${readyPath}`)).ok) await new Promise(setImmediate)
  /** Milliseconds from the spawn to the first answer that it is ready. */
  const startMs = performance.now() - startedAt

  async function stop(): Promise<void> {
    child.kill('SIGTERM')
    const late = setTimeout(kill, STOP_MS)
    await exited
    clearTimeout(late)
  }

  /** Ends it as a power failure would: SIGKILL. */
  async function crash(): Promise<void> {
    kill()
    await exited
  }

  /** The longest turn of its event loop since the previous call, in milliseconds of processor time. Needs `probe`. */
  async function heldMs(): Promise<number> {
    child.send({})
    const [held] = (await once(child, 'message')) as [Held]
    return held.heldMs
  }

  /** Headers that each request needs. */
  const headers: Record<string, string> = {}
  return { url, pid: child.pid ?? 0, headers, startMs, stop, kill: crash, heldMs, [Symbol.asyncDispose]: stop }
}

/** The environment without the Tacho settings of the user's shell. */
function usersEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TACHO_')))
}

async function addressOf({ stdout }: ChildProcess): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let printed = ''
  // Keep reading: a full pipe would block the server.
  stdout?.setEncoding('utf8').on('data', (text: string) => {
    printed += text
    const url = /listens on (http:\/\/[\w.:[\]]+)/.exec(printed)?.[1]
    if (url !== undefined) resolve(url)
  })
  return promise
}
