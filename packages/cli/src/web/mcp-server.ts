import type { Command } from 'commander'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import { connect, withUrl, type ServerOptions } from '../engine/options.ts'

/** Longest line: arguments of these tools are short. */
const LINE_BYTES_MAX = 1_048_576
const INVALID_REQUEST = -32_600

export function addMcpServer(command: Command): void {
  withUrl(command)
    .option('--token-file <file>', 'file with the operator token, instead of TACHO_OPERATOR_TOKEN')
    .addHelpText(
      'after',
      `
Speaks MCP on standard input and output, for a program that starts it: an editor, an agent, a chat with a model. It only reads;
what it can read is what its operator token can read. A token with the role viewer is enough.

Example of a client's settings:
  { "mcpServers": { "tacho": { "command": "/path/to/tacho/packages/cli/bin/tacho", "args": ["mcp-server"],
      "env": { "TACHO_URL": "http://localhost:4680", "TACHO_OPERATOR_TOKEN": "tacho-operator_…" } } } }`,
    )
    .action(serve)
}

async function serve(options: ServerOptions, command: Command): Promise<void> {
  // Fail now and with a sentence if the address or token is wrong, not in each tool.
  const client = connect(options)
  await client.readMe()
  // Loaded here, not for the help.
  const { serveStdio, StdioServerTransport } = await import('@modelcontextprotocol/server/stdio')
  const { boundedLines } = await import('@tacho/guards/mcp/lines.ts')
  const { createTachoServer } = await import('@tacho/mcp/server.ts')
  const version = command.parent?.version() ?? ''
  // Drop long lines, because the library would end the connection.
  const input = boundedLines(process.stdin, LINE_BYTES_MAX, () => {
    const error = { code: INVALID_REQUEST, message: `A message may have at most ${LINE_BYTES_MAX} bytes.` }
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: null, error })}\n`)
  })
  const transport = new StdioServerTransport(input, process.stdout)
  const handle = serveStdio(() => createTachoServer(client.whole, version), {
    transport,
    onerror: (error) => process.stderr.write(`tacho: ${printable(error.message)}\n`),
  })
  input.once('end', () => void handle.close())
}
