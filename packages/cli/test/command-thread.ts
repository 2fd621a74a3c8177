/**
 * A thread that runs command lines in turn, because loading the command takes most of a command's processor time. Each has
 * separate arguments, variables, streams and exit code, and ends when all of its timers, files and threads have ended.
 */
import { globalAgent } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { Readable, Writable } from 'node:stream'
import { parentPort, workerData } from 'node:worker_threads'

export interface CommandLine {
  args: readonly string[]
  variables: NodeJS.ProcessEnv
}

export interface Answer {
  code: number
  stdout: string
  stderr: string
  /** Whether the thread ends with this command. */
  isLast: boolean
}

const port = parentPort
if (port === null) throw new Error('This module is a thread.')

/** Where Node keeps the connections of `fetch`; those of node:http are in its `globalAgent`. */
const CONNECTIONS = Symbol.for('undici.globalDispatcher.2')
const MOMENT_MS = 2

// Declared here, because the real type would add the whole command to the types of other packages' tests.
const { runCommandLine } = (await import((workerData as { main: string }).main)) as {
  runCommandLine(args: readonly string[]): Promise<number>
}

port.on('message', (line: CommandLine) => void run(line))

async function run({ args, variables }: CommandLine): Promise<void> {
  const [events, leaving, resources] = [
    process.eventNames(),
    process.listeners('exit'),
    process.getActiveResourcesInfo(),
  ]
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, variables)
  process.exitCode = undefined
  Object.defineProperty(process, 'stdin', { configurable: true, value: Readable.from([]) })
  const [stdout, stderr] = [replaceStream('stdout'), replaceStream('stderr')]
  const answer = (isLast: boolean): void =>
    port?.postMessage({ code: Number(process.exitCode), stdout: stdout(), stderr: stderr(), isLast } satisfies Answer)
  // The command called process.exit(), or failed where nothing catches it.
  const answerLast = (): void => answer(true)
  process.once('exit', answerLast)
  process.exitCode = await runCommandLine(args)
  await closeConnections()
  while (process.getActiveResourcesInfo().length > resources.length) await wait(MOMENT_MS)
  process.off('exit', answerLast)
  for (const listener of process.listeners('exit').filter((each) => !leaving.includes(each))) {
    process.off('exit', listener)
    listener.call(process, Number(process.exitCode))
  }
  for (const name of process.eventNames()) if (!events.includes(name)) process.removeAllListeners(name)
  answer(false)
}

/** Returns what the command wrote. */
function replaceStream(name: 'stdout' | 'stderr'): () => string {
  const chunks: Buffer[] = []
  const value = new Writable({
    write(chunk: Buffer, _, done) {
      chunks.push(chunk)
      done()
    },
  })
  Object.defineProperty(process, name, { configurable: true, value })
  return () => Buffer.concat(chunks).toString()
}

/** Closes connections, as the end of a process does: a connection with an unread answer still counts among the resources. */
async function closeConnections(): Promise<void> {
  globalAgent.destroy()
  const globals = globalThis as unknown as Record<symbol, { destroy(): Promise<void> } | undefined>
  const connections = globals[CONNECTIONS]
  if (connections === undefined) return
  const Connections = connections.constructor as new () => typeof connections
  globals[CONNECTIONS] = new Connections()
  await connections.destroy()
}
