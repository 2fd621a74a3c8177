/**
 * The threads that read. Each needs about 20 MB, so an idle store has one.
 *
 * The first serves until the store closes. Each further one:
 *
 *   absent --all readers busy for BUSY_MS, and a call waits--> starting --opened the store--> serving
 *     ^                                                          |                             |
 *     +--could not start: not before RETRY_MS--------------------+                             |
 *     +--no call for IDLE_MS-------------------------------------------------------------------+
 */
import type { Call, Thread } from './thread.ts'

/** Longer than a garbage collection, and than the jobs that read at the same moment need. A start takes 100 ms. */
const BUSY_MS = 50
const IDLE_MS = 60_000
/** Delays the next try, because a failed start costs as much as a successful one. */
const RETRY_MS = 60_000

export async function openReaders(start: () => Promise<Thread>, most: number): Promise<Pick<Thread, 'call' | 'close'>> {
  const threads = [await start()]
  const ending = new Set<Promise<void>>()
  let starting: Promise<void> | null = null
  /** Runs from the call that found all readers busy until a call finds one idle. */
  let busy: NodeJS.Timeout | undefined
  let closing = false
  let resting: NodeJS.Timeout | undefined

  function call(act: Call['act'], args: unknown[]): Promise<unknown> {
    const reader = threads.reduce((one, other) => (isLessBusy(other, one) ? other : one))
    if (isIdle(reader)) {
      clearTimeout(busy)
      busy = undefined
    } else if (threads.length < most) {
      // `setImmediate`: answers that arrived while this thread was busy are handled first.
      busy ??= setTimeout(() => setImmediate(startAnother), BUSY_MS)
    }
    return reader.call(act, args)
  }

  function startAnother(): void {
    busy = undefined
    if (closing || resting !== undefined || threads.length === most || threads.some(isIdle)) return
    starting ??= start()
      .then(keepWhileUsed)
      .catch(() => {
        resting = setTimeout(() => (resting = undefined), RETRY_MS)
      })
      .finally(() => (starting = null))
  }

  function keepWhileUsed(thread: Thread): void {
    let idle = setTimeout(end, IDLE_MS)
    const used: Thread = {
      ...thread,
      call(act, args) {
        waitAgain()
        return thread.call(act, args)
      },
      close() {
        clearTimeout(idle)
        return thread.close()
      },
    }
    threads.push(used)

    function waitAgain(): void {
      clearTimeout(idle)
      if (!closing) idle = setTimeout(end, IDLE_MS)
    }

    function end(): void {
      if (thread.pending() > 0) return waitAgain()
      threads.splice(threads.indexOf(used), 1)
      const ended = thread
        .close()
        .catch(() => undefined) // the thread has ended
        .finally(() => ending.delete(ended))
      ending.add(ended)
    }
  }

  return {
    call,
    async close() {
      closing = true
      clearTimeout(busy)
      await starting
      clearTimeout(resting)
      await Promise.all([...threads.map((reader) => reader.close()), ...ending])
    },
  }
}

function isIdle(reader: Thread): boolean {
  return reader.alive() && reader.pending() === 0
}

/** A thread that restarts has no calls and cannot do any. */
function isLessBusy(one: Thread, other: Thread): boolean {
  return one.alive() === other.alive() ? one.pending() < other.pending() : one.alive()
}
