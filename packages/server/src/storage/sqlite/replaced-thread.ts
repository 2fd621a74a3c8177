/**
 * A thread of the store that survives running out of memory: a new thread replaces it.
 *
 *   starting --opened the store--> serving --out of memory--> starting
 *       |                             |
 *       +--cannot open the store------+--any other end--> failed (the service ends)
 *
 * Calls of an ended thread are rejected as storage_unavailable, and so are calls until the next thread starts; clients
 * retry. Everything the thread acknowledged is on disk.
 */
import { StorageError } from '../storage.ts'
import type { Thread, ThreadEnd } from './thread.ts'

export type StartThread = (onDeath: (end: ThreadEnd) => void) => Promise<Thread>

/**
 * Resolves when the first thread has opened the store. `onTrouble` is called for an end that a new thread cannot fix.
 */
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
      // Do not replace a thread that ends while opening the store: the next one would end too.
      .catch((cause: unknown) => onTrouble(cause instanceof Error ? cause : error))
      .finally(() => (starting = null))
  }

  return {
    async call(act, args) {
      if (serving === null) throw new StorageError('storage_unavailable', 'A storage thread is restarting')
      return serving.call(act, args)
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
