import type { Thread } from './thread.ts'

export interface Readers {
  /** The one with the least to do. */
  idlest(): Thread
  close(): Promise<void>
}

/** One reader from the start, and up to `most` once all are busy: an idle store costs the memory of one. */
export async function openReaders(start: () => Promise<Thread>, most: number): Promise<Readers> {
  const threads = [await start()]
  let starting: Promise<void> | null = null
  let closing = false

  function startAnother(): Promise<void> {
    return start()
      .then((reader) => void threads.push(reader))
      .catch(() => undefined) // its death has been told already
      .finally(() => (starting = null))
  }

  return {
    idlest() {
      const best = threads.reduce((one, other) => (isIdler(other, one) ? other : one))
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

/** A thread that starts again has nothing to do and can do nothing. */
function isIdler(one: Thread, other: Thread): boolean {
  return one.alive() === other.alive() ? one.pending() < other.pending() : one.alive()
}
