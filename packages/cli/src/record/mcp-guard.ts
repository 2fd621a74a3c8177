import { InvalidArgumentError, type Command } from 'commander'
import { readApiKey } from '../engine/credentials.ts'
import { readUrl } from '../engine/server-address.ts'
import { wholeNumber } from '../engine/options.ts'
import { failed, wrongUsage } from '../engine/stop.ts'
import { printable, printableJson } from '@tacho/contract/engine/shown-text.ts'

interface GuardOptions {
  url?: string
  tachoUrl?: string
  header?: Record<string, string>
  agent?: string
  serverName?: string
  approvalTimeout: number
}

/** Without progress notifications, the official clients give up after 60 seconds. */
const SILENT_APPROVAL_MS = 50_000

export function addMcpGuard(command: Command): void {
  command
    .usage('[options] -- <server command> [args...]')
    .option('--url <address>', 'guard a server at this address (streamable HTTP) instead of a command')
    .option('--header <name=VARIABLE>', 'send the value of this variable as a header to --url; may repeat', addHeader)
    .option('--tacho-url <address>', 'address of Tacho (TACHO_URL; default http://localhost:4680)')
    .option('--agent <name>', 'name of the agent in runs and policies; default: the name that the client gives')
    .option(
      '--server-name <name>',
      'name of the server in policies and events; default: the name that the server gives',
    )
    .option('--approval-timeout <seconds>', 'longest wait for a person', wholeNumber(86_400), 300)
    .addHelpText(
      'after',
      `
Speaks MCP on standard input and output, for a client that starts it. Needs TACHO_API_KEY with the scopes events:write,
config:read and policies:read. The policies of its environment decide each tools/call; everything else passes unchanged.

Examples:
  tacho mcp-guard -- npx -y @modelcontextprotocol/server-filesystem /home/me/notes
  MCP_TOKEN='Bearer …' tacho mcp-guard --url https://example.com/mcp --header Authorization=MCP_TOKEN`,
    )
    .action(guard)
  command
    .command('accept [command...]')
    .usage('[options] -- <server command> [args...]')
    .description('accept the tools of a server that are new or changed, after a review of the list in the client')
    .option('--url <address>', 'address of the server, as given to the guard, instead of its command')
    .option('--tool <name>', 'only this tool; may repeat', (name: string, names?: string[]) => [...(names ?? []), name])
    .option('--tacho-url <address>', 'address of Tacho (TACHO_URL; default http://localhost:4680)')
    .action(accept)
}

function addHeader(text: string, headers: Record<string, string> = {}): Record<string, string> {
  const [, name, variable] = /^([\w-]+)=(\w+)$/.exec(text) ?? []
  if (name === undefined || variable === undefined) {
    throw new InvalidArgumentError('It must be a header and a variable, such as Authorization=MCP_TOKEN.')
  }
  const value = process.env[variable]
  if (value === undefined) throw new InvalidArgumentError(`The variable ${variable} is not set.`)
  return { ...headers, [name]: value }
}

/** The server's name in the file of accepted tool definitions. */
function serverOf(words: readonly string[], url: string | undefined): string {
  if ((words.length === 0) === (url === undefined)) {
    throw wrongUsage('Give the command of an MCP server after --, or its address with --url.')
  }
  return JSON.stringify(url === undefined ? words : [url])
}

interface AcceptOptions {
  url?: string
  tool?: string[]
  tachoUrl?: string
}

async function accept(words: readonly string[], _own: unknown, command: Command): Promise<void> {
  // Include the parent's options: the guard itself has --url too, and takes the value if it comes first.
  const options: AcceptOptions = command.optsWithGlobals()
  const serverName = serverOf(words, options.url)
  const { stateRoot } = await import('@tacho/guards/state.ts')
  const { Definitions } = await import('@tacho/guards/mcp/definitions.ts')
  const definitions = new Definitions(stateRoot(), readUrl(options.tachoUrl), serverName, (message) => {
    throw failed(message)
  })
  const accepted = definitions.accept(options.tool)
  for (const { name, change } of accepted)
    process.stdout.write(`accepted ${printableJson(JSON.stringify(name))} (${change})\n`)
  if (accepted.length === 0) process.stdout.write('No tool of this server waits to be accepted.\n')
}

async function guard(words: readonly string[], options: GuardOptions): Promise<void> {
  const [command, ...args] = words
  const serverName = serverOf(words, options.url)
  const account = { url: readUrl(options.tachoUrl), apiKey: readApiKey() }
  const warn = (message: string): void => void process.stderr.write(`tacho: ${printable(message)}\n`)
  // Loaded here, not for the help.
  const { guardServer } = await import('@tacho/guards/mcp/guard-server.ts')
  const server = command === undefined ? await remote(options, warn) : await local(command, args)
  const approvalTimeoutMs = options.approvalTimeout * 1_000
  process.exitCode = await guardServer({
    account,
    server,
    serverName,
    settings: {
      approvalTimeoutMs,
      silentApprovalTimeoutMs: Math.min(approvalTimeoutMs, SILENT_APPROVAL_MS),
      agentName: options.agent,
      agentId: options.agent,
      serverName: options.serverName,
    },
    warn,
    input: process.stdin,
    output: process.stdout,
  })
}

async function local(command: string, args: readonly string[]) {
  const { startServer } = await import('@tacho/guards/mcp/child-server.ts')
  return startServer(command, args)
}

async function remote({ url: text, header = {} }: GuardOptions, warn: (message: string) => void) {
  const url = URL.parse(text ?? '')
  if (url === null || !/^https?:$/.test(url.protocol)) throw wrongUsage('--url must be an http or https address.')
  const { connectServer } = await import('@tacho/guards/mcp/http-server.ts')
  return connectServer(url, header, warn)
}
