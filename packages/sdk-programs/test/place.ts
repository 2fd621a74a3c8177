/**
 * A folder with a small real program: its sources from `programs/`, the packages it needs, and the packed SDK. The packages
 * are installed once, below `.cache/`.
 */
import { execFileSync, spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { placeSdk } from '../../sdk/test/packed-sdk.ts'
import { folderOf, installPackages } from '../../sdk-integrations/test/large-packages.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const PROGRAMS = fileURLToPath(new URL('../programs/', import.meta.url))
const END_MS = 5_000

let packed: Promise<string> | undefined

/** The packed SDK, made once for each process of tests. */
async function pack(): Promise<string> {
  mkdirSync(path.join(ROOT, '.cache'), { recursive: true })
  const folder = mkdtempSync(path.join(ROOT, '.cache/packed-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return placeSdk(folder)
}

export interface Place {
  readonly folder: string
  start(command: readonly string[], env?: Record<string, string>): Started
  /** The standard output of a command that ends by itself. Rejects with all output if it fails. */
  run(command: readonly string[], env?: Record<string, string>): Promise<string>
  /** Starts a server and resolves with its address, the first group of `address` in its output. */
  serve(command: readonly string[], address: RegExp, env?: Record<string, string>): Promise<Server>
}

export interface Started {
  readonly child: ChildProcessWithoutNullStreams
  stdout(): string
  /** Standard output and standard error. */
  output(): string
  /** Sends a signal to the server and its child processes, and waits until they end. */
  end(signal: NodeJS.Signals): Promise<void>
}

export interface Server {
  readonly url: string
  readonly child: ChildProcessWithoutNullStreams
  output(): string
}

/** Packages that are too large for every run: they need TACHO_TEST_FRAMEWORKS=1. `skip` says why they are left out. */
export function packagesOf(packages: readonly string[]): { skip: string | false; packages: readonly string[] } {
  const [first] = packages
  if (process.env['TACHO_TEST_FRAMEWORKS'] === undefined)
    return { skip: `needs ${first}: set TACHO_TEST_FRAMEWORKS=1`, packages }
  return { skip: !installPackages(packages) && `${first} could not be installed`, packages }
}

/** A copy of `programs/<name>`, removed after the test. */
export async function startPlace(t: TestContext, name: string, packages: readonly string[]): Promise<Place> {
  const tarball = await (packed ??= pack())
  const home = packages.length > 0 ? folderOf(packages) : path.join(ROOT, '.cache')
  mkdirSync(home, { recursive: true })
  const folder = mkdtempSync(path.join(home, `${name}-`))
  const children = new Set<ChildProcess>()
  t.after(async () => {
    await Promise.all([...children].map((child) => end(child, 'SIGTERM')))
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  cpSync(path.join(PROGRAMS, name), folder, { recursive: true })
  const sdk = path.join(folder, 'node_modules/@tacho/sdk')
  mkdirSync(sdk, { recursive: true })
  execFileSync('tar', ['-xzf', tarball, '-C', sdk, '--strip-components=1'])

  function start([program = '', ...args]: readonly string[], env: Record<string, string> = {}): Started {
    const bin = [
      path.dirname(process.execPath),
      path.join(home, 'node_modules/.bin'),
      env['PATH'] ?? process.env['PATH'],
    ]
    const child = spawn(program, args, {
      cwd: folder,
      env: {
        ...process.env,
        NODE_TEST_CONTEXT: undefined,
        NEXT_TELEMETRY_DISABLED: '1',
        CI: '1',
        ...env,
        PATH: bin.join(path.delimiter),
      },
      stdio: ['pipe', 'pipe', 'pipe'],
      // A process group, because programs start other processes, which must end with them.
      detached: true,
    })
    children.add(child)
    let [stdout, output] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => ((stdout += text), (output += text)))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
    return { child, stdout: () => stdout, output: () => output, end: (signal) => end(child, signal) }
  }

  return {
    folder,
    start,
    run: (command, env) =>
      new Promise((resolve, reject) => {
        const { child, stdout, output } = start(command, env)
        child.stdin.end()
        child.on('error', reject)
        child.on('close', (code) => {
          if (code === 0) resolve(stdout())
          else reject(new Error(`${command.join(' ')} ended with ${code}:\n${output()}`))
        })
      }),
    serve: (command, address, env) =>
      new Promise((resolve, reject) => {
        const { child, output } = start(command, env)
        const look = () => {
          const url = address.exec(output())?.[1]
          if (url !== undefined) resolve({ url, child, output })
        }
        child.stdout.on('data', look)
        child.stderr.on('data', look)
        child.on('error', reject)
        child.on('close', () => reject(new Error(`${command.join(' ')} ended:\n${output()}`)))
      }),
  }
}

/** Ends the whole process group of `child`. */
async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const { pid } = child
  const closed = new Promise((resolve) => child.once('close', resolve))
  process.kill(-pid, signal)
  const timer = setTimeout(() => process.kill(-pid, 'SIGKILL'), END_MS)
  await closed
  clearTimeout(timer)
}
