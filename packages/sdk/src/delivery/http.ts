import type { Fetch, FetchReply, Runtime, StopSignal } from './runtime.ts'

/** Pieces, because a text of a megabyte costs more to join than to send. */
export type Body = string | Uint8Array | readonly string[]

export interface HttpRequest {
  headers?: Record<string, string>
  /** JSON text, or bytes whose encoding a header names. */
  body?: Body
  /** Includes the answer's body. */
  timeoutMs: number
  signal?: StopSignal
  /** Set for a long poll. Called when nothing else keeps the process running; other requests are then not ended. */
  endWait?: (() => void) | undefined
  /** A larger answer is not read. */
  maxReplyBytes?: number
}

/** A reply of any status. `json` is undefined if the body is not JSON. */
export interface Reply {
  readonly kind: 'reply'
  readonly ok: boolean
  readonly status: number
  readonly header: (name: string) => string | null
  readonly json: unknown
}

/** The request may still have arrived. */
export interface NoReply {
  readonly kind: 'no-reply'
  readonly reason: 'timeout' | 'aborted' | 'network' | 'reply_too_large'
  /** Message for a diagnostic; contains no key and no body. */
  readonly message: string
}

export type HttpResult = Reply | NoReply

/** `path` is under /openapi/v1. Never throws. */
export type Request = (method: string, path: string, request: HttpRequest) => Promise<HttpResult>

const REPLY_BYTES_MAX = 1_048_576
/** Without this option, Next.js caches answers: policies and approvals would be outdated. */
function uncachedOption(isNode: boolean): { cache?: 'no-store' } {
  try {
    const option = { cache: 'no-store' } as const
    // This check would make Node load all of its fetch, which takes too long for a hook of a coding agent.
    if (!isNode) void new Request('a:', option)
    return option
  } catch {
    // Some edge runtimes reject the option. They keep no connections.
    return {}
  }
}

/** `apiKey` is a function, so no printable object holds the key. */
export interface Connection {
  readonly baseUrl: string
  readonly apiKey: () => string
  readonly fetch: Fetch
  readonly timer: Runtime['timer']
  readonly isNode: boolean
  /**
   * Functions that end the requests without a signal, called at the client's end. They are plain functions, because edge
   * workers forbid an AbortController outside a request, and one of another request.
   */
  readonly ends: Set<() => void>
}

export async function sendRequest(
  { baseUrl, apiKey, fetch, timer, isNode, ends }: Connection,
  ...[method, path, { headers, body, timeoutMs, signal, maxReplyBytes = REPLY_BYTES_MAX }]: Parameters<Request>
): Promise<HttpResult> {
  const controller = new AbortController()
  let reason: NoReply['reason'] = 'network'
  const stop = (why: NoReply['reason']) => {
    reason = why
    controller.abort()
  }
  const onAbort = () => stop('aborted')
  // A fetch that ignores its signal must not block the sender forever.
  const ended = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(new Error(reason)))
  })
  // If the request is aborted before it begins, nothing waits for this promise.
  ended.catch(() => undefined)
  const timeout = timer(timeoutMs, () => stop('timeout'))
  if (!signal) ends.add(onAbort)
  signal?.addEventListener('abort', onAbort)
  async function exchange(): Promise<HttpResult> {
    const init = {
      method,
      headers: { 'content-type': 'application/json', ...headers, 'x-api-key': apiKey() },
      ...(body !== undefined && { body }),
      signal: controller.signal,
      // A redirect could take the key to another origin.
      redirect: 'manual',
      ...uncachedOption(isNode),
    } as const
    const reply = await fetch(`${baseUrl}/openapi/v1${path}`, init)
    const text = await readText(reply, maxReplyBytes)
    if (text === undefined) return { kind: 'no-reply', reason: 'reply_too_large', message: 'the answer is too large' }
    const { status, headers: replied } = reply
    const ok = status >= 200 && status < 300
    return { kind: 'reply', ok, status, header: (name) => replied.get(name), json: parse(text) }
  }
  try {
    if (signal?.aborted) throw stop('aborted')
    return await Promise.race([exchange(), ended])
  } catch (error) {
    return { kind: 'no-reply', reason, message: reason === 'network' ? causeOf(error, apiKey()) : reason }
  } finally {
    timeout.cancel()
    ends.delete(onAbort)
    signal?.removeEventListener('abort', onAbort)
  }
}

/** Reads the whole body, so that the connection can be reused; undefined if it is larger than `maxBytes`. */
async function readText({ body }: FetchReply, maxBytes: number): Promise<string | undefined> {
  if (!body) return ''
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (let bytes = 0; ;) {
    const { value } = await reader.read()
    if (!value) return text + decoder.decode()
    bytes += value.byteLength
    if (bytes > maxBytes) {
      await reader.cancel()
      return undefined
    }
    text += decoder.decode(value, { stream: true })
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** "fetch failed" gives no reason; its cause has the code. A custom fetch may quote headers, so the key is removed. */
function causeOf(error: unknown, apiKey: string): string {
  const { cause, message } = (error ?? {}) as { cause?: { code?: unknown; message?: unknown }; message?: unknown }
  const text = [cause?.code, cause?.message, message].find(
    (textValue): textValue is string => typeof textValue === 'string' && textValue !== '',
  )
  return (text ?? 'failed').replaceAll(apiKey, '[key]')
}
