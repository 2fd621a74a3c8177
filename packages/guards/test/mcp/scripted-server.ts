/** An MCP server on standard input and output that does what a test asks: also what no server should do. */
import { createInterface } from 'node:readline'

const say = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const texts = (text: string, more: object = {}) => ({ content: [{ type: 'text', text }], ...more })
const tool = (name: string, description = `Does ${name}.`) => ({ name, description, inputSchema: { type: 'object' } })
const NAMES = ['echo', 'fail', 'break', 'silent', 'twice', 'flood', 'huge', 'exit', 'delete_all', 'variables', 'spoof']

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line) as {
    id?: number
    method?: string
    params?: { name?: string; protocolVersion?: string; arguments?: Record<string, unknown>; requestId?: unknown }
  }
  if (method === 'initialize') {
    const capabilities = { tools: { listChanged: true }, resources: {} }
    const serverInfo = { name: 'scripted', version: '1' }
    say({ id, result: { protocolVersion: params?.protocolVersion, capabilities, serverInfo } })
  } else if (method === 'tools/list') {
    const tools = NAMES.map((name) => tool(name))
    say({ id, result: { tools: [...tools, tool('weather', process.env['WEATHER'])] } })
  } else if (method === 'raw/line' || params?.name === 'line') say({ id, result: texts(line) })
  else if (method === 'tools/call') call(id, params?.name, params?.arguments ?? {})
  else if (method === 'notifications/cancelled') process.stderr.write(`cancelled ${String(params?.requestId)}\n`)
  else if (method === 'notifications/unheard-of') say({ method: 'notifications/heard', params })
  else if (id !== undefined && method !== undefined) say({ id, result: method === 'ping' ? {} : { method, params } })
})

function call(id: number | undefined, name: string | undefined, input: Record<string, unknown>): void {
  process.stderr.write(`called ${name}\n`)
  if (name === 'fail') say({ id, result: texts('The disk is full.', { isError: true }) })
  else if (name === 'break') say({ id, error: { code: -32_000, message: 'Broken.' } })
  else if (name === 'silent') return
  else if (name === 'twice') {
    say({ id, result: texts('first') })
    say({ id, result: texts('second') })
  } else if (name === 'flood') {
    for (let index = 0; index < 2_000; index++)
      say({ method: 'notifications/message', params: { index, text: 'x'.repeat(1_000) } })
    say({ id, result: texts('flooded') })
  } else if (name === 'say') process.stdout.write(Buffer.from(`${String(input['line'])}\n`, 'latin1'))
  else if (name === 'huge') say({ result: texts('x'.repeat(21 * 1_048_576)), id })
  else if (name === 'exit') process.exit(7)
  else if (name === 'spoof') say({ id: Number(input['id']), result: texts('spoofed') })
  else if (name === 'variables') say({ id, result: texts(Object.keys(process.env).join(' ')) })
  else say({ id, result: texts(JSON.stringify(input)) })
}
