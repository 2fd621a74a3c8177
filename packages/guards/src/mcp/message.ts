/** JSON-RPC messages as MCP sends them: one JSON object on a line. */
export type Json = Readonly<Record<string, unknown>>

export interface Message {
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: unknown
}

/** Names of members in `_meta`, which every request or result has since 2026-07-28. */
const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion'
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo'
const CLIENT_INFO = 'io.modelcontextprotocol/clientInfo'

/** Error codes of JSON-RPC. */
export const ERRORS = { parse: -32_700, invalidRequest: -32_600, invalidParams: -32_602, server: -32_000 } as const

export const NOT_A_CALL =
  'tools/call needs a name and an object of arguments; inputResponses must be an object, and then no argument has that name.'

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An id as a map key: 1 and "1" are different ids. Undefined if there is no id, or if it is a number beyond 2^53. */
export function keyOf(id: unknown): string | undefined {
  if (typeof id === 'number' && Math.abs(id) > Number.MAX_SAFE_INTEGER) return undefined
  return typeof id === 'string' || typeof id === 'number' ? JSON.stringify(id) : undefined
}

export function isResponse({ method, id }: Message): boolean {
  return method === undefined && id !== undefined
}

/** How the client names itself: in `initialize`, or in each request since 2026-07-28. */
export function clientInfoOf({ method, params }: Message): { name: string; version: string | null } | null {
  if (!isObject(params)) return null
  const info = method === 'initialize' ? params['clientInfo'] : metaOf(params)[CLIENT_INFO]
  if (!isObject(info) || typeof info['name'] !== 'string' || info['name'] === '') return null
  return { name: info['name'], version: typeof info['version'] === 'string' ? info['version'] : null }
}

/** The server's name, from its answer to `initialize` or `server/discover`. */
export function serverInfoOf(result: Json): Json | null {
  const info = result['serverInfo'] ?? metaOf(result)[SERVER_INFO]
  return isObject(info) ? info : null
}

export function progressTokenOf(params: Json): string | number | null {
  const token = metaOf(params)['progressToken']
  return typeof token === 'string' || typeof token === 'number' ? token : null
}

/** Whether a request has protocol version 2026-07-28 or later: such a request contains its version. */
export function isModern(params: unknown): boolean {
  return isObject(params) && typeof metaOf(params)[PROTOCOL_VERSION] === 'string'
}

/** A tool result with the reason why the tool did not run. It is a result, not an error, so that the model reads it. */
export function toolError(id: unknown, params: Json, text: string): string {
  const result = { content: [{ type: 'text', text }], isError: true }
  // Required since 2026-07-28.
  const whole = isModern(params) ? { resultType: 'complete', ...result } : result
  return JSON.stringify({ jsonrpc: '2.0', id, result: whole })
}

export function errorReply(id: unknown, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error: { code, message } })
}

export function progressNotification(progressToken: string | number, progress: number, message: string): string {
  const params = { progressToken, progress, message }
  return JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })
}

function metaOf(params: Json): Json {
  const meta = params['_meta']
  return isObject(meta) ? meta : {}
}

/** The input that is judged: the arguments, and the answers to the server's questions; null if they cannot be distinguished. */
export function inputOf({ arguments: callArguments = {}, inputResponses }: Json): Json | null {
  if (!isObject(callArguments)) return null
  if (inputResponses === undefined) return callArguments
  return isObject(inputResponses) && !Object.hasOwn(callArguments, 'inputResponses')
    ? { ...callArguments, inputResponses }
    : null
}
