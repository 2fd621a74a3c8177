/** One service, and how to connect to it. */
export interface Connection {
  /** Origin of the service, with a proxy's path, without a slash at the end. Empty: the page's own origin. */
  url: string
  /** Credentials, sent with each call. */
  headers: Readonly<Record<string, string>>
  /** Path below `url`. */
  prefix: string
  timeoutMs: number
  maxReplyBytes: number
  fetch: typeof globalThis.fetch
}

/** Options of both clients. */
export interface ConnectionOptions {
  /** Timeout in milliseconds, unless a call sets its own; default 30,000. */
  timeoutMs?: number | undefined
  /** Largest reply in bytes, and largest message of a stream; default 32 MiB. */
  maxReplyBytes?: number | undefined
  /** Replaces the global fetch. */
  fetch?: typeof globalThis.fetch | undefined
}

const TIMEOUT_MS = 30_000
const MAX_REPLY_BYTES = 32 * 1024 * 1024

export function connectionTo(
  service: Pick<Connection, 'url' | 'headers' | 'prefix'>,
  { timeoutMs = TIMEOUT_MS, maxReplyBytes = MAX_REPLY_BYTES, fetch }: ConnectionOptions,
): Connection {
  // A browser's fetch must be called on its window.
  return {
    ...service,
    timeoutMs,
    maxReplyBytes,
    fetch: fetch ?? ((...fetchArguments) => globalThis.fetch(...fetchArguments)),
  }
}
