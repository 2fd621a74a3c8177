import type { ActName } from '../sql/acts.ts'
import type { DamagedPayload, DamagedRow } from '../sql/engine/sql.ts'
import { StorageError, StoreDamaged } from '../engine/store.ts'

export interface Call {
  id: number
  act: ActName | 'appendEvents' | 'ping' | 'durability' | 'backup' | 'check' | 'close'
  args: unknown[]
}

export interface Reply {
  id: number
  result?: unknown
  error?: SentError
}

export interface Replies {
  replies: Reply[]
  commits?: number
  events?: number
  actMs?: number
  freeBytes?: number
  damaged?: (DamagedPayload | DamagedRow)[]
  warning?: { what: string; error: SentError }
}

export type SentError = ReturnType<typeof sentError>

/** Classes cannot be sent between threads. */
export function sentError(error: unknown) {
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  const code = error instanceof StorageError ? error.code : null
  return { code, isDamage: error instanceof StoreDamaged, message, stack }
}

export function receivedError({ code, isDamage, message, stack }: SentError): Error {
  const cause = { stack }
  if (isDamage) return new StoreDamaged(message, cause)
  return code === null ? new Error(message, { cause }) : new StorageError(code, message, cause)
}
