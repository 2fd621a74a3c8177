/** An MCP server on standard input and output whose behaviour a test chooses, including forbidden behaviour. */
import { createInterface } from 'node:readline'

const say = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const texts = (text: string, more: object = {}) => ({ content: [{ type: 'text', text }], ...more })
const tool = (name: string, description = `Does ${name}.`) => ({ name, description, inputSchema: { type: 'object' } })
/** Polls of each task so far. */
const polls = new Map<string, number>()
const questions = { amount: { method: 'elicitation/create', params: { message: 'How much?' } } }
const NAMES = [
  'echo',
  'fail',
  'break',
  'silent',
  'twice',
  'flood',
  'huge',
  'exit',
  'delete_all',
  'variables',
  'spoof',
  'pay',
  'export',
]

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line) as {
    id?: number
    method?: string
    params?: {
      name?: string
      protocolVersion?: string
      arguments?: Record<string, unknown>
      inputResponses?: object
      requestId?: unknown
      taskId?: string
    }
  }
  if (method === 'initialize') {
    const capabilities = { tools: { listChanged: true }, resources: {} }
    const serverInfo = { name: 'scripted', version: '1' }
    say({ id, result: { protocolVersion: params?.protocolVersion, capabilities, serverInfo } })
  } else if (method === 'tools/list') {
    const tools = [...NAMES, ...(process.env['ADDED']?.split(',') ?? [])].map((name) => tool(name))
    const wipe = { ...tool('wipe'), annotations: { destructiveHint: true } }
    const inputSchema = { type: 'object', properties: { order: { type: 'integer' } }, required: ['order'] }
    const ship = { ...tool('ship'), inputSchema }
    say({ id, result: { tools: [...tools, wipe, ship, tool('weather', process.env['WEATHER'])] } })
  } else if (method === 'server/discover') {
    const _meta = { 'io.modelcontextprotocol/serverInfo': { name: 'scripted', version: '1' } }
    say({
      id,
      result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, _meta },
    })
  } else if (params?.name === 'pay') {
    process.stderr.write(`called pay ${JSON.stringify(params.inputResponses ?? null)}\n`)
    if (params.inputResponses) say({ id, result: texts(`paid ${JSON.stringify(params.inputResponses)}`) })
    else say({ id, result: { resultType: 'input_required', inputRequests: questions, requestState: 'state-1' } })
  } else if (params?.name === 'export') {
    const status = { taskId: `task-${id}`, status: 'working', pollIntervalMs: 10 }
    say({ id, result: { resultType: 'task', ...status } })
  } else if (method === 'tasks/update') {
    process.stderr.write(`updated ${JSON.stringify(params?.inputResponses)}\n`)
    say({ id, result: { resultType: 'complete' } })
  } else if (method === 'tasks/get') {
    const { taskId = '' } = params ?? {}
    const count = (polls.get(taskId) ?? 0) + 1
    polls.set(taskId, count)
    const done = { status: 'completed', result: texts(`exported ${taskId}`) }
    say({ id, result: { resultType: 'complete', taskId, ...(count > 1 ? done : { status: 'working' }) } })
  } else if (method === 'raw/line' || params?.name === 'line') say({ id, result: texts(line) })
  else if (method === 'tools/call') call(id, params?.name, params?.arguments ?? {})
  else if (method === 'notifications/cancelled') process.stderr.write(`cancelled ${String(params?.requestId)}\n`)
  else if (method === 'notifications/unheard-of') say({ method: 'notifications/heard', params })
  else if (method?.endsWith('/silent')) return
  else if (id !== undefined && method !== undefined) say({ id, result: method === 'ping' ? {} : { method, params } })
})

function call(id: number | undefined, name: string | undefined, input: Record<string, unknown>): void {
  process.stderr.write(`called ${name}\n`)
  if (name === 'fail') say({ id, result: texts('The disk is full.', { isError: true }) })
  else if (name === 'break') say({ id, error: { code: -32_000, message: 'Broken.' } })
  else if (name === 'silent') return
  else if (name === 'unknown') say({ id, error: { code: -32_602, message: 'Unknown tool: unknown' } })
  else if (name === 'ship' && typeof input['order'] !== 'number')
    say({ id, result: texts('Input validation error: order must be a number', { isError: true }) })
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
