/** Runs the guard until the client or the server ends. The client uses this process's standard input and output. */
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { Tacho } from '@tacho/sdk'
import { openState, stateRoot, type Account } from '../state.ts'
import { writeLine } from './child-server.ts'
import type { ServerConnection } from './connection.ts'
import { Definitions } from './definitions.ts'
import { McpGuard, type GuardSettings } from './guard.ts'
import { linesOf } from './lines.ts'

export interface GuardOptions {
  readonly account: Account
  readonly server: ServerConnection
  /** Command line or address. It identifies the server whose tool definitions were accepted. */
  readonly serverName: string
  readonly settings: GuardSettings
  readonly warn: (message: string) => void
  readonly input: Readable
  readonly output: Writable
}

const FLUSH_MS = 5_000
/** A process that closed its output usually exits within this time. */
const EXIT_MS = 250
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Resolves with the exit code of the server when everything is recorded. */
export async function guardServer({
  account,
  server,
  serverName,
  settings,
  warn,
  input,
  output,
}: GuardOptions): Promise<number> {
  const state = openState(account)
  // `tacho record` continues to record the client.
  delete process.env['TACHO_RECORDED_BY']
  const tacho = new Tacho({
    apiKey: account.apiKey,
    baseUrl: account.url,
    clientId: state.clientId,
    spool: state.spool,
    configuration: { cacheFile: state.configurationFile },
    // Without policies, the guard blocks every call.
    guard: { whenUnconfigured: 'block' },
    onDiagnostic: ({ level, message }) => {
      if (level !== 'info') warn(message)
    },
  })
  // Load the policies while the client and the server initialize.
  void tacho.configuration.ready()
  const guard = new McpGuard({
    tacho,
    settings,
    definitions: new Definitions(stateRoot(), account.url, serverName, warn),
    toClient: (line) => writeLine(output, line),
    toServer: (line) => server.send(line),
    warn,
  })
  if (server.why !== undefined) {
    warn(server.why)
    await guard.serverLeft(server.why)
  }
  let isClosing = false
  for (const name of SIGNALS) {
    process.on(name, () => {
      isClosing = true
      server.signal(name)
    })
  }
  const sent = forwardClient(guard, input).finally(() => {
    isClosing = true
    guard.clientLeft()
    server.close()
  })
  // A server that closed its output cannot answer any more, so close it.
  const received = forwardServer(guard, server).finally(() => server.close())
  const noted = received.then(async () => {
    const exit = await Promise.race([server.ended, sleep(EXIT_MS, null, { ref: false })])
    await guard.serverLeft(
      exit === null ? 'The MCP server closed its output.' : `The MCP server ended with exit code ${exit}.`,
    )
  })
  const code = await server.ended
  // Wait until the last output of the server is read.
  await noted
  await guard.close(server.why === undefined && (isClosing || code === 0) ? 'COMPLETED' : 'FAILED')
  input.destroy()
  await sent
  const { left } = await tacho.shutdown(FLUSH_MS)
  if (left > 0) warn(`${left} events were not delivered; they stay in ${state.spool} for the next guard.`)
  return code
}

async function forwardClient(guard: McpGuard, input: Readable): Promise<void> {
  try {
    for await (const line of linesOf(input)) await guard.fromClient(line)
  } catch {
    // The client disconnected, or the server has ended.
  }
}

async function forwardServer(guard: McpGuard, { lines }: ServerConnection): Promise<void> {
  try {
    for await (const line of lines) await guard.fromServer(line)
  } catch {
    // The server's output was closed in the middle of a line.
  }
}
