/**
 * A process that runs one PostgreSQL for a test file. When its standard input closes, it stops the server and removes its
 * folder, so that nothing is left however the test file ends. It has its own process group, so Ctrl-C does not reach it.
 * Each input line gets one output line: `start`, `fast`, `immediate`, `kill`.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chownSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { findBinaries, type Release } from './postgres-binaries.ts'

export interface KeeperOptions {
  folder: string
  release: Release
  port: number
  password: string
  /** Lines of postgresql.conf. */
  settings: string[]
  /** Files for the data folder, readable by its owner only: name and content. */
  files: Record<string, string>
}

const SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT', kill: 'SIGKILL' } as const

const options = JSON.parse(process.argv[2] ?? '{}') as KeeperOptions
const { folder, port, password } = options
const data = path.join(folder, 'data')
const logFile = path.join(folder, 'log')
let server: ChildProcess | null = null

process.on('uncaughtException', (error) => leave(`failed ${error.message}`))
const { bin, user } = findBinaries(options.release, folder)
if (user) chownSync(folder, user.uid, user.gid)
initialise()
console.log('initialised')
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'start') await start()
  else await stop(SIGNALS[line as keyof typeof SIGNALS])
  console.log(line)
}
await stop('SIGQUIT')
leave()

function initialise(): void {
  const passwordFile = path.join(folder, 'password')
  writePrivate(passwordFile, password)
  // ICU: an order that depends on the database's collation then differs from SQLite's, and a test fails.
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=icu', '--icu-locale=en-US']
  const account = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`]
  const args = ['-D', data, '--no-sync', '--no-instructions', ...locale, ...account]
  const { status, stderr, error } = spawnSync(path.join(bin, 'initdb'), args, { ...user, cwd: folder })
  if (status !== 0) throw new Error(`initdb: ${error?.message ?? String(stderr)}`)
  const settings = [`port = ${port}`, "listen_addresses = '127.0.0.1'", "unix_socket_directories = ''"]
  for (const [name, content] of Object.entries(options.files)) writePrivate(path.join(data, name), content)
  appendFileSync(path.join(data, 'postgresql.conf'), [...settings, ...options.settings, ''].join('\n'))
}

function writePrivate(file: string, content: string): void {
  writeFileSync(file, content, { mode: 0o600 })
  if (user) chownSync(file, user.uid, user.gid)
}

async function start(): Promise<void> {
  const child = spawn(path.join(bin, 'postgres'), ['-D', data], {
    ...user,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ready = Promise.withResolvers<void>()
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    appendFileSync(logFile, text)
    if (text.includes('ready to accept connections')) ready.resolve()
  })
  child.on('close', () => ready.reject(new Error(`postgres: ${readFileSync(logFile, 'utf8').slice(-1000)}`)))
  server = child
  await ready.promise
}

async function stop(signal: NodeJS.Signals): Promise<void> {
  const child = server
  server = null
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  child.kill(signal)
  await once(child, 'close')
}

function leave(word?: string): void {
  if (word !== undefined) console.log(word.replaceAll('\n', ' '))
  server?.kill('SIGQUIT')
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  process.exit(word === undefined ? 0 : 1)
}
