/** One service, and how it is spoken to. */
export interface Connection {
  /** Origin of the service, with the path that a proxy adds, without a slash at the end. Empty: the page's own origin. */
  url: string
  /** Sent with each call: who asks. */
  headers: Readonly<Record<string, string>>
  /** Below `url`. */
  prefix: string
  timeoutMs: number
  maxReplyBytes: number
  fetch: typeof globalThis.fetch
}

/** What both clients let you choose. */
export interface ConnectionOptions {
  /** Longest wait, in milliseconds, unless a call says otherwise; default 30,000. */
  timeoutMs?: number | undefined
  /** Largest reply in bytes, and largest message of a stream; default 32 MiB. */
  maxReplyBytes?: number | undefined
  /** Instead of the global one. */
  fetch?: typeof globalThis.fetch | undefined
}

const TIMEOUT_MS = 30_000
const MAX_REPLY_BYTES = 32 * 1024 * 1024

export function connectionTo(
  service: Pick<Connection, 'url' | 'headers' | 'prefix'>,
  { timeoutMs = TIMEOUT_MS, maxReplyBytes = MAX_REPLY_BYTES, fetch }: ConnectionOptions,
): Connection {
  // A page's fetch wants to be called on its window.
  return { ...service, timeoutMs, maxReplyBytes, fetch: fetch ?? ((...given) => globalThis.fetch(...given)) }
}
