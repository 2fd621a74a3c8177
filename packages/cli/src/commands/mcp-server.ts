import type { Command } from 'commander'
import { connect, withUrl, type ServerOptions } from '../settings/options.ts'

export function addMcpServer(command: Command): void {
  withUrl(command)
    .option('--token-file <file>', 'file with the operator token, instead of TACHO_OPERATOR_TOKEN')
    .addHelpText(
      'after',
      `
Speaks MCP on standard input and output, for a program that starts it: an editor, an agent, a chat with a model. It only reads;
what it can read is what its operator token can read. A token with the role viewer is enough.

Example of a client's settings:
  { "mcpServers": { "tacho": { "command": "tacho", "args": ["mcp-server"],
      "env": { "TACHO_URL": "http://localhost:4680", "TACHO_OPERATOR_TOKEN": "tacho-operator_…" } } } }`,
    )
    .action(serve)
}

async function serve(options: ServerOptions, command: Command): Promise<void> {
  // Fails at once and with a sentence if the address or the token is wrong, rather than in each tool.
  const client = connect(options)
  await client.readMe()
  // Loaded here, not for the help.
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio')
  const { createTachoServer } = await import('@tacho/mcp/server.ts')
  const version = command.parent?.version() ?? ''
  const handle = serveStdio(() => createTachoServer(client.whole, version), {
    onerror: (error) => process.stderr.write(`tacho: ${error.message}\n`),
  })
  process.stdin.once('end', () => void handle.close())
}
