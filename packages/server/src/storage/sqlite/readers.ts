import type { Thread } from './thread.ts'

export interface Readers {
  /** The least busy one. */
  idlest(): Thread
  close(): Promise<void>
}

/** Starts with one reader and adds up to `most` when all are busy, so that an idle store needs the memory of one. */
export async function openReaders(start: () => Promise<Thread>, most: number): Promise<Readers> {
  const threads = [await start()]
  let starting: Promise<void> | null = null
  let closing = false

  function startAnother(): Promise<void> {
    return start()
      .then((reader) => void threads.push(reader))
      .catch(() => undefined) // its death was already reported
      .finally(() => (starting = null))
  }

  return {
    idlest() {
      const best = threads.reduce((one, other) => (isLessBusy(other, one) ? other : one))
      if ((best.pending() > 0 || !best.alive()) && threads.length < most && !closing) starting ??= startAnother()
      return best
    },
    async close() {
      closing = true
      await starting
      await Promise.all(threads.map((reader) => reader.close()))
    },
  }
}

/** A thread that restarts has no calls and cannot do any. */
function isLessBusy(one: Thread, other: Thread): boolean {
  return one.alive() === other.alive() ? one.pending() < other.pending() : one.alive()
}
