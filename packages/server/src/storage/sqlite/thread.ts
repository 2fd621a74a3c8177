/**
 * The main thread's side of one worker thread: sends calls, receives replies. A new thread replaces one that runs out
 * of memory.
 *
 *   starting --opened the store--> serving --out of memory--> starting
 *       |                             |
 *       +--cannot open the store------+--any other end--> failed (the service ends; it goes on without a further reader)
 *
 * Calls of an ended thread are rejected as storage_unavailable, and so are calls until the next thread starts; clients
 * retry. Everything the thread acknowledged is on disk.
 */
import { Worker } from 'node:worker_threads'
import { StorageError, StoreDamaged } from '../engine/store.ts'
import { storageError } from './errors.ts'
import { moduleUrl } from '../../program/program.ts'
import { PendingCalls } from '../../threads/threads.ts'
import type { ActName } from '../sql/acts.ts'
import type { DamagedPayload, DamagedRow } from '../sql/engine/sql.ts'

export interface Thread {
  /** The buffers in `moved` are no longer readable here. */
  call(act: Call['act'], args: unknown[], moved?: ArrayBuffer[]): Promise<unknown>
  alive(): boolean
  pending(): number
  close(): Promise<void>
}

interface ThreadOptions {
  name: 'writer' | 'reader'
  file: string
  heapMib: number
  onReplies?: (replies: Replies) => void
  onDeath: (end: ThreadEnd) => void
}

export interface ThreadEnd {
  error: Error
  outOfMemory: boolean
}

export async function startThread(options: ThreadOptions): Promise<Thread> {
  const { name, file, heapMib, onReplies, onDeath } = options
  const worker = new Worker(moduleUrl(name, import.meta.url), {
    name: `tacho-${name}`,
    workerData: { file },
    resourceLimits: { maxOldGenerationSizeMb: heapMib },
  })
  const calls = new PendingCalls<unknown>()
  let ended: Error | null = null
  let started = false
  let closing = false
  const exited = Promise.withResolvers<void>()

  worker.on('message', (message: Replies) => {
    onReplies?.(message)
    for (const { id, result, error } of message.replies) {
      if (error) calls.reject(id, receivedError(error))
      else calls.resolve(id, result)
    }
  })
  worker.on('error', (error) => end(error))
  worker.on('exit', (code) => {
    end(new Error(`The thread ended with code ${code}`))
    exited.resolve()
  })

  function end(cause: unknown) {
    if (ended !== null) return
    const storeProblem = storageError(cause)
    const reason = `The ${name} thread of the store has ended`
    ended = storeProblem instanceof StorageError ? storeProblem : new StorageError('storage_unavailable', reason, cause)
    calls.rejectAll(ended)
    if (started && !closing) onDeath({ error: ended, outOfMemory: isOutOfMemory(cause) })
  }

  async function call(act: Call['act'], args: unknown[], moved: ArrayBuffer[] = []): Promise<unknown> {
    if (ended !== null) throw ended
    return calls.start((id) => worker.postMessage({ id, act, args } satisfies Call, moved))
  }

  async function close() {
    closing = true
    if (ended === null) await call('close', [])
    await exited.promise
  }

  await call('ping', [])
  started = true
  return { call, alive: () => ended === null && !closing, pending: () => calls.size, close }
}

function isOutOfMemory(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ERR_WORKER_OUT_OF_MEMORY'
}

type StartThread = (onDeath: (end: ThreadEnd) => void) => Promise<Thread>

export async function startReplacedThread(start: StartThread, onTrouble: (error: Error) => void): Promise<Thread> {
  let serving: Thread | null = null
  let starting: Promise<void> | null = null
  let closing = false
  serving = await start(onDeath)

  function onDeath({ error, outOfMemory }: ThreadEnd): void {
    serving = null
    if (closing) return
    if (!outOfMemory) return onTrouble(error)
    starting = start(onDeath)
      .then((thread) => void (serving = thread))
      // Do not replace a thread that ends while opening the store: the next one would fail too.
      .catch((cause: unknown) => onTrouble(cause instanceof Error ? cause : error))
      .finally(() => (starting = null))
  }

  return {
    async call(act, args, moved) {
      if (serving === null) throw new StorageError('storage_unavailable', 'A storage thread is restarting')
      return serving.call(act, args, moved)
    },
    alive: () => serving?.alive() ?? false,
    pending: () => serving?.pending() ?? 0,
    async close() {
      closing = true
      await starting
      await serving?.close()
    },
  }
}

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

type SentError = ReturnType<typeof sentError>

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
