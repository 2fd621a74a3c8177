/**
 * Remembers which approvals clients wait for, and writes it: soon for a new one, then at most once in a while, all of an
 * environment together. A poll that is held open counts as long as it is.
 *
 *   (none) --held, or asked twice--> noted --flush--> written --asked again, later than WRITE_MS--> noted
 *
 * One question without `wait` is none: a process that looks whether a person has decided does not wait.
 */
import { LRUCache } from 'lru-cache'
import type { Storage } from '../../storage/storage.ts'

const FLUSH_MS = 2_000
/** Less than half of what makes a client count as one that stopped. */
const WRITE_MS = 12_000
/** A client that polls asks again within this time. */
const POLL_MS = 60_000
const KEPT = 20_000

export interface SeenOptions {
  storage: Pick<Storage, 'noteApprovalsSeen'>
  now: () => number
  onError: (error: unknown) => void
  flushMs?: number
}

interface Seen {
  environmentId: string
  id: string
  askedAt: number
  /** Null: nothing shows that the client waits. */
  waitedAt: number | null
  writtenAt: number
  held: number
}

export function createSeenApprovals({ storage, now, onError, flushMs = FLUSH_MS }: SeenOptions) {
  const known = new LRUCache<string, Seen>({ max: KEPT })
  const held = new Set<Seen>()
  const changed = new Set<Seen>()
  let timer: NodeJS.Timeout | undefined
  let flushing: Promise<void> = Promise.resolve()

  function schedule(): void {
    if (timer !== undefined || (changed.size === 0 && held.size === 0)) return
    timer = setTimeout(() => {
      timer = undefined
      flushing = flush().catch(onError).finally(schedule)
    }, flushMs)
    timer.unref()
  }

  function note(environmentId: string, id: string, isWaiting: boolean): Seen {
    const at = now()
    const seen = known.get(id) ?? {
      environmentId,
      id,
      askedAt: -Infinity,
      waitedAt: null,
      writtenAt: -Infinity,
      held: 0,
    }
    if (isWaiting || at - seen.askedAt < POLL_MS) {
      seen.waitedAt = at
      changed.add(seen)
    }
    seen.askedAt = at
    known.set(id, seen)
    schedule()
    return seen
  }

  async function flush(isLast = false): Promise<void> {
    const at = now()
    for (const seen of held) {
      seen.waitedAt = at
      changed.add(seen)
    }
    const due = [...changed].filter(({ waitedAt, writtenAt }) => isLast || (waitedAt ?? 0) - writtenAt >= WRITE_MS)
    for (const seen of due) {
      changed.delete(seen)
      seen.writtenAt = seen.waitedAt ?? at
    }
    for (const [environmentId, some] of Map.groupBy(due, (seen) => seen.environmentId)) {
      await storage.noteApprovalsSeen(
        environmentId,
        some.map(({ id, writtenAt }) => ({ id, at: writtenAt })),
      )
    }
  }

  return {
    note: (environmentId: string, id: string, isWaiting: boolean) => void note(environmentId, id, isWaiting),
    /** Call the result when the poll ends. */
    hold(environmentId: string, id: string): () => void {
      const seen = note(environmentId, id, true)
      seen.held++
      held.add(seen)
      return () => {
        seen.held--
        if (seen.held === 0) held.delete(seen)
        note(environmentId, id, true)
      }
    },
    async close(): Promise<void> {
      clearTimeout(timer)
      await flushing
      await flush(true).catch(onError)
    },
  }
}
