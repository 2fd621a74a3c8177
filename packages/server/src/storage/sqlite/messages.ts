/** Messages between the main thread and the threads of the store. */
import type { ActName } from '../sql/acts.ts'
import { StorageError, type StorageErrorCode } from '../storage.ts'

export interface Call {
  id: number
  act: ActName | 'appendEvents' | 'ping' | 'durability' | 'close'
  args: unknown[]
}

export interface Reply {
  id: number
  result?: unknown
  error?: SentError
}

/** Replies of one commit are sent together, with its size for the gauges. */
export interface Replies {
  replies: Reply[]
  commits?: number
  events?: number
  /** How long a write other than an append took. */
  actMs?: number
  /** An error that belongs to no reply. */
  warning?: { what: string; error: SentError }
}

/** An error as plain data, because classes cannot be sent between threads. */
export interface SentError {
  code: StorageErrorCode | null
  message: string
  stack: string | undefined
}

export function sentError(error: unknown): SentError {
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  return { code: error instanceof StorageError ? error.code : null, message, stack }
}

export function receivedError({ code, message, stack }: SentError): Error {
  const cause = { stack }
  return code === null ? new Error(message, { cause }) : new StorageError(code, message, cause)
}
