/** The client of the conformance suite: `conformance-client.ts <address>` calls each tool there through `tacho mcp-guard`. */
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

const PROGRAM = fileURLToPath(new URL('../../../cli/bin/tacho', import.meta.url))

const address = process.argv.at(-1) ?? ''
const isModern = process.env['MCP_CONFORMANCE_PROTOCOL_VERSION'] === '2026-07-28'
const client = new Client(
  { name: process.env['MCP_CONFORMANCE_SCENARIO'] ?? 'conformance', version: '1' },
  { capabilities: { elicitation: {} }, ...(isModern && { versionNegotiation: { mode: { pin: '2026-07-28' } } }) },
)
client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { confirmed: true } }))
const env = process.env as Record<string, string>
const args = ['mcp-guard', '--url', address]
await client.connect(new StdioClientTransport({ command: PROGRAM, args, env, stderr: 'inherit' }))
for (const { name } of (await client.listTools()).tools) {
  const input = name === 'add_numbers' ? { a: 5, b: 3 } : {}
  try {
    await client.callTool({ name, arguments: input })
  } catch (error) {
    // One tool of the suite leaves resultType out; the official client refuses that answer.
    if ((error as { data?: { violation?: string } }).data?.violation !== 'missing-resultType') throw error
  }
}
await client.close()
