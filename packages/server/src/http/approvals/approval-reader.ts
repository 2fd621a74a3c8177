import type { FastifyInstance } from 'fastify'
import { Gauge } from 'prom-client'
import { LRUCache } from 'lru-cache'
import { createApprovalFeed } from './approval-feed.ts'
import type { Deps } from '../web/deps.ts'
import { expireOverdue, isOverdue } from '../../domain/approvals/approval.ts'
import type { ApprovalRow } from '../../storage/approvals/approvals.ts'
import type { Page } from '../../storage/engine/page.ts'
import type { Storage } from '../../storage/storage.ts'
import { StorageError } from '../../storage/engine/store.ts'

export type ApprovalReader = ReturnType<typeof createApprovalReader>

export function createApprovalReader(app: FastifyInstance, { storage, metrics, now }: Deps) {
  const feed = createApprovalFeed({
    storage,
    onError: (err) => app.log.warn({ err }, 'could not read changes of approvals; it will retry'),
  })
  new Gauge({
    name: 'tacho_approval_followers',
    help: 'Open long polls and streams for approvals',
    registers: [metrics.registry],
    collect() {
      this.set(feed.size())
    },
  })
  const seen = createSeenApprovals({
    storage,
    now,
    onError: (err) => app.log.warn({ err }, 'could not store which approvals are waited for'),
  })
  app.addHook('preClose', async () => {
    feed.close()
    await seen.close()
  })
  return { feed, seen, current: createCurrentApprovals({ storage, now, onChange: () => feed.look() }) }
}

/**
 * The store marks overdue approvals EXPIRED before any caller sees that status. A thousand clients may share a
 * deadline, so concurrent requests of one environment share one write.
 */

interface CurrentOptions {
  storage: Pick<Storage, 'findApproval' | 'expireApprovals'>
  now: () => number
  onChange: () => void
}

/** Stops the loop if the clock jumps. */
const MOST_ROUNDS = 5

export function createCurrentApprovals({ storage, now, onChange }: CurrentOptions) {
  const neededUpTo = new Map<string, number>()
  const expireShared = sharing(async (environmentId) => {
    const upTo = neededUpTo.get(environmentId) ?? now()
    neededUpTo.delete(environmentId)
    await expireOverdue(storage, environmentId, upTo, { onExpired: onChange })
  })

  // Expires by the time of the read that found an approval overdue. If the clock was set back since, it would otherwise
  // stay PENDING.
  function expire(environmentId: string, at: number): Promise<void> {
    neededUpTo.set(environmentId, Math.max(at, neededUpTo.get(environmentId) ?? at))
    return expireShared(environmentId)
  }

  async function read(environmentId: string, readPage: () => Promise<Page<ApprovalRow>>): Promise<Page<ApprovalRow>> {
    const at = now()
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const page = await readPage()
      if (!page.rows.some((row) => isOverdue(row, at))) return page
      await expire(environmentId, at)
    }
    throw new StorageError('overloaded', 'Approvals expire faster than they can be recorded')
  }

  return {
    read,
    async find(environmentId: string, id: string): Promise<ApprovalRow | null> {
      const { rows } = await read(environmentId, async () => {
        const row = await storage.findApproval(environmentId, id)
        return { rows: row ? [row] : [], more: false }
      })
      return rows[0] ?? null
    },
  }
}

/** Calls during a run share the next run, because the current one may have started too early. */
function sharing(work: (key: string) => Promise<void>): (key: string) => Promise<void> {
  const running = new Map<string, Promise<void>>()
  const waiting = new Map<string, Promise<void>>()

  function start(key: string): Promise<void> {
    const run = work(key).finally(() => running.delete(key))
    running.set(key, run)
    return run
  }

  return (key) => {
    const current = running.get(key)
    if (!current) return start(key)
    let next = waiting.get(key)
    if (!next) {
      next = current
        .catch(() => undefined)
        .then(() => {
          waiting.delete(key)
          return start(key)
        })
      waiting.set(key, next)
    }
    return next
  }
}

/**
 * Remembers which approvals clients wait for, and stores it: soon for a new one, then at most once in a while, all of
 * an environment together. A poll that is held open counts as waiting all the time.
 *
 *   (none) --held, or asked twice--> noted --flush--> written --asked again, later than WRITE_MS--> noted
 *
 * A single request without `wait` does not count: a process that only checks for a decision does not wait.
 */

const FLUSH_MS = 2_000
/** Less than half of the time after which a client counts as stopped. */
const WRITE_MS = 12_000
/** A waiting client polls at least this often. */
const POLL_MS = 60_000
const KEPT = 20_000

interface SeenOptions {
  storage: Pick<Storage, 'noteApprovalsSeen'>
  now: () => number
  onError: (error: unknown) => void
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

function createSeenApprovals({ storage, now, onError }: SeenOptions) {
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
    }, FLUSH_MS)
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
