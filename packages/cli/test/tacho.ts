/** The real program and server for tests: temporary folders, free ports, full cleanup. */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { Worker } from 'node:worker_threads'
import { readConfig } from '../../server/src/config/config.ts'
import { startServer as startHere } from '../../server/test/setup/start-server.ts'
import type { Answer, CommandLine } from './command-thread.ts'

const PROGRAM = fileURLToPath(new URL('../bin/tacho', import.meta.url))
const COMMAND_THREAD = new URL('command-thread.ts', import.meta.url)
/** The program's main module. `npm test` has built it; without that, the source. */
const MAIN = new URL(process.env['TEST_MODULES'] === undefined ? '../src/main.ts' : '../dist/main.js', import.meta.url)

export const API_KEY = `tacho_00000000testkey0_${'k'.repeat(64)}`
export const OPERATOR_TOKEN = `tacho-operator_00000000testtoken_${'t'.repeat(64)}`

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

export type Variables = Record<string, string>

/** The environment of the tests, with only the given Tacho variables. */
function environment(variables: Variables): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('TACHO_'))
  // Never the profiles of the person who runs the tests.
  return { ...Object.fromEntries(own), NO_COLOR: '1', XDG_CONFIG_HOME: '/nonexistent', ...variables }
}

/** Starts a command line as a process. */
export function startTacho(
  args: readonly string[],
  variables: Variables = {},
  cwd?: string,
  program = PROGRAM,
): ChildProcess {
  return spawn(program, args, { env: environment(variables), cwd, stdio: ['pipe', 'pipe', 'pipe'] })
}

/** Threads that run no command now. They do not keep the test process from ending. */
const idleThreads: Worker[] = []

/**
 * Runs a command line to its end. Without `stdin`, it runs in a thread that has loaded the command, which takes a tenth of the
 * time of a process, and its input is empty.
 */
export async function runCommand(args: readonly string[], variables: Variables = {}, stdin?: string): Promise<Ended> {
  if (stdin !== undefined) return runTacho(args, variables, stdin)
  const thread = idleThreads.pop() ?? new Worker(COMMAND_THREAD, { workerData: { main: MAIN.href }, execArgv: [] })
  thread.ref()
  const { promise, resolve } = Promise.withResolvers<Ended & { isLast: boolean }>()
  let last: Answer | undefined
  let fault = ''
  const noteAnswer = (answer: Answer): void => (answer.isLast ? void (last = answer) : resolve(answer))
  const noteFault = (error: unknown): void => void (fault = inspect(error))
  const noteExit = (code: number): void =>
    resolve({ code, stdout: last?.stdout ?? '', stderr: (last?.stderr ?? '') + fault, isLast: true })
  thread.once('message', noteAnswer).once('error', noteFault).once('exit', noteExit)
  thread.postMessage({ args, variables: environment(variables) } satisfies CommandLine)
  const { isLast, ...end } = await promise
  if (isLast) return end
  thread.off('error', noteFault).off('exit', noteExit).unref()
  idleThreads.push(thread)
  return end
}

/** Runs a command line to its end as a process. */
export async function runTacho(args: readonly string[], variables: Variables = {}, stdin = ''): Promise<Ended> {
  const child = startTacho(args, variables)
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(stdin)
  return ended(child)
}

export async function ended(child: ChildProcess): Promise<Ended> {
  if (!child.stdout || !child.stderr) throw new Error('a child without pipes')
  const [stdout, stderr] = await Promise.all([readText(child.stdout), readText(child.stderr), once(child, 'close')])
  return { code: child.exitCode, stdout, stderr }
}

export interface TestServer {
  url: string
  dataDir: string
  /** For temporary files of the test. */
  directory: string
  /** Runs a command line against this server, with its operator token and API key. */
  tacho: (args: readonly string[], stdin?: string) => Promise<Ended>
  /** Runs a command that must succeed, and returns its text. */
  text: (...args: string[]) => Promise<string>
  /** Runs a command with --json, and returns its parsed output. */
  json: <Value>(...args: string[]) => Promise<Value>
  /** Runs a command that must be refused with a sentence. */
  refused: (...args: string[]) => Promise<Ended>
  variables: Variables
  stop: () => Promise<void>
}

/** Known credentials, instead of those that a first start would print. */
const FIRST = { TACHO_INIT_API_KEY: API_KEY, TACHO_INIT_OPERATOR_TOKEN: OPERATOR_TOKEN }

/**
 * An empty data directory and a server on it; `stop` ends it and removes the directory. It runs in this process,
 * because another one takes a second of processor time to start. To test a separate process, use `serveFrom`.
 */
export async function startServer(variables: Variables = {}): Promise<TestServer> {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-cli-'))
  const dataDir = path.join(directory, 'data')
  const read = readConfig({ port: '0', dataDir, logLevel: 'silent' }, { ...FIRST, ...variables })
  assert.ok(read.ok, read.ok ? '' : read.faults.join('\n'))
  const server = await startHere(read.config).catch((error: unknown) => {
    rmSync(directory, { recursive: true })
    throw error
  })
  const client = { TACHO_URL: server.url, TACHO_OPERATOR_TOKEN: OPERATOR_TOKEN, TACHO_API_KEY: API_KEY }
  const tacho: TestServer['tacho'] = (args, stdin) => runCommand(args, client, stdin)
  const text: TestServer['text'] = async (...args) => {
    const { code, stdout, stderr } = await tacho(args)
    assert.equal(code, 0, stderr)
    return stdout
  }
  return {
    url: server.url,
    dataDir,
    directory,
    variables: client,
    tacho,
    text,
    json: async <Value>(...args: string[]) => JSON.parse(await text(...args, '--json')) as Value,
    async refused(...args) {
      const result = await tacho(args)
      assert.equal(result.stdout, '')
      // A slow command also prints its progress.
      assert.match(result.stderr, /^(\w+: [\d,]+ lines\n)*tacho: .*\n$/)
      return result
    },
    async stop() {
      await server.close()
      rmSync(directory, { recursive: true })
    },
  }
}

/** `tacho serve` on a data directory, as a process. */
export async function serveFrom(
  dataDir: string,
  variables: Variables = {},
  program = PROGRAM,
): Promise<{ url: string; stop: () => Promise<void> }> {
  const child = startTacho(
    ['serve', '--port', '0', '--data-dir', dataDir, '--log-level', 'error'],
    { ...FIRST, TACHO_DRAIN_DELAY: '0s', ...variables },
    undefined,
    program,
  )
  const end = ended(child)
  const url = await Promise.race([addressOf(child), end])
  if (typeof url !== 'string') throw new Error(`The server ended at once: ${url.stderr}`)
  return {
    url,
    async stop() {
      child.kill('SIGTERM')
      await end
    },
  }
}

async function addressOf(child: ChildProcess): Promise<string> {
  let told = ''
  for (;;) {
    const [chunk] = (await once(child.stdout ?? child, 'data')) as [Buffer]
    told += chunk.toString()
    const url = /listens on (\S+);/.exec(told)?.[1]
    if (url !== undefined) return url
  }
}
