import { once } from 'node:events'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import type { Command } from 'commander'
import { readUrl } from '../engine/server-address.ts'
import { wholeNumber } from '../engine/options.ts'
import { failed } from '../engine/stop.ts'

interface GatewayFlags {
  tachoUrl?: string
  host: string
  port: number
  metadataOnly?: true
  guard?: true
  approvalTimeout: number
}

/** Time for requests under way to end. */
const GRACE_MS = 10_000

export function addGateway(command: Command): void {
  command
    .option('--tacho-url <address>', 'address of Tacho (TACHO_URL; default http://localhost:4680)')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <number>', 'port to listen on', wholeNumber(65_535), 4690)
    .option('--guard', 'let the policies of each key decide what answers ask for')
    .option('--approval-timeout <seconds>', 'longest wait for a person, with --guard', wholeNumber(86_400), 300)
    .option('--metadata-only', 'record no texts: only models, tokens, tools, times and outcomes')
    .addHelpText(
      'after',
      `
Stands before models for a team. Each client names its key of Tacho in the path, or as X-Tacho-Key with - in the path, and
sends its provider key as always. Variables such as OPENAI_BASE_URL name other upstreams. Put TLS before it.

Examples:
  tacho gateway --host 0.0.0.0
  OPENAI_BASE_URL=http://gateway:4690/<key of Tacho>/openai/v1 node agent.js`,
    )
    .action(serveGateway)
}

async function serveGateway(options: GatewayFlags): Promise<void> {
  const { host, port, guard, approvalTimeout, metadataOnly } = options
  const warn = (message: string): void => void process.stderr.write(`tacho: ${printable(message)}\n`)
  // Loaded here, not for the help.
  const { startGateway } = await import('@tacho/guards/wire/gateway.ts')
  const gateway = await startGateway({
    url: readUrl(options.tachoUrl),
    host,
    port,
    capture: metadataOnly ? 'metadata-only' : 'full',
    guard: guard && { approvalTimeoutMs: approvalTimeout * 1_000 },
    variables: process.env,
    warn,
  }).catch((error: NodeJS.ErrnoException) => {
    throw failed(`The gateway cannot listen on ${host}:${port} (${error.code}).`)
  })
  process.stdout.write(`Listening on ${gateway.origin}\n`)
  for (const [route, url] of gateway.routes) process.stdout.write(`  /<key of Tacho>/${route}  ${url.origin}\n`)
  const stopped = new AbortController()
  const { signal } = stopped
  await Promise.race([once(process, 'SIGTERM', { signal }), once(process, 'SIGINT', { signal })])
  stopped.abort()
  await gateway.close(GRACE_MS)
}
