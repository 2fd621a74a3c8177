/**
 *   polling --found--> working --done--> polling
 *      |                  +--failed: retries each item alone, then postpones it with backoff, and finally gives up
 *      +--found less than a batch--> resting --woken--> polling
 *
 * A kind that waits for others, such as receivers, has slots instead of batches: each item runs alone, a slot that gets
 * free takes the next item, and the workspaces take turns. A slow receiver delays no other. A kind is woken when this
 * node queues work for it, or when the poll for all kinds finds work that is due. A lease holds taken items and is
 * renewed during the work. When a node dies, its leases expire and other nodes continue.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Storage } from '../../storage/storage.ts'
import { StatementTimeout, StorageError } from '../../storage/engine/store.ts'
import type { SharedWorkItem, WorkClaim, WorkHold, WorkItem, WorkKind } from '../../storage/engine/work.ts'

/** `ended`: the storage act that did the work also ended the item. `failed`: the reason; the attempt then counts. */
export type Next = 'done' | 'ended' | { dueAt: number; failed?: string }

interface Handler {
  kind: WorkKind
  batch: number
  giveUp(item: WorkItem, reason: string, hold: WorkHold): Promise<Next>
}

export interface ItemHandler extends Handler {
  /** Items run in slots that the workspaces share; `batch` is their number. */
  inTurn?: boolean
  /** If it rejects, the item is retried. The signal aborts when this process stops: then another node retries it. */
  perform(item: WorkItem, hold: WorkHold, signal: AbortSignal): Promise<Next>
}

export interface BatchHandler extends Handler {
  /** Removes the items from the queue, if possible in one transaction. If it rejects, items still queued are retried. */
  performAll(items: WorkItem[]): Promise<unknown>
}

export type WorkHandler = ItemHandler | BatchHandler

export interface HandlerOptions<Acts extends keyof Storage> {
  storage: Pick<Storage, Acts>
  now: () => number
}

export interface WorkRunnerOptions {
  storage: Pick<Storage, 'dueWork' | 'claimWork' | 'claimWorkInTurn' | 'extendWork' | 'postponeWork' | 'finishWork'>
  handlers: readonly WorkHandler[]
  owner: string
  now: () => number
  onError: (error: unknown, kind: WorkKind) => void
  random?: () => number
  pollMs?: number
  leaseMs?: number
  maxAttempts?: number
  firstDelayMs?: number
}

/** Waits this long, so that a burst of items shares transactions. */
const GATHER_MS = 20
const LONGEST_DELAY_MS = 5 * 60_000
const REASON_CHARS = 500

export function createWorkRunner(options: WorkRunnerOptions) {
  const { storage, handlers, owner, now, onError, random = Math.random } = options
  const { pollMs = 1_000, leaseMs = 6_000, maxAttempts = 8, firstDelayMs = 1_000 } = options
  const stopping = new AbortController()
  const alarms = new Map(handlers.map(({ kind }) => [kind, createAlarm()]))
  let loops: Promise<void>[] = []

  async function loop(handler: WorkHandler, alarm: Alarm): Promise<void> {
    while (!stopping.signal.aborted) {
      const items = await claim(handler, handler.batch, (asked) => storage.claimWork(asked))
      if (items.length > 0) await work(handler, items)
      if (items.length < handler.batch) await waitForAlarm(alarm)
    }
  }

  async function loopInTurn(handler: WorkHandler, alarm: Alarm): Promise<void> {
    const running = new Map<SharedWorkItem, Promise<void>>()
    while (!stopping.signal.aborted) {
      const free = handler.batch - running.size
      const held = Map.groupBy(running.keys(), ({ workspaceId }) => workspaceId)
      const counts = [...held].map(([workspaceId, own]): [string, number] => [workspaceId, own.length])
      const items = free === 0 ? [] : await claim(handler, free, (asked) => storage.claimWorkInTurn(asked, counts))
      for (const item of items) {
        const end = () => {
          running.delete(item)
          alarm.ring()
        }
        running.set(item, work(handler, [item]).then(end, end))
      }
      // Wait, so that items that end at the same time share one claim.
      await waitForAlarm(alarm)
    }
    await Promise.all(running.values())
  }

  async function claim<Item>(
    { kind }: WorkHandler,
    limit: number,
    take: (asked: WorkClaim) => Promise<Item[]>,
  ): Promise<Item[]> {
    const at = now()
    return take({ kind, owner, now: at, leaseUntil: at + leaseMs, limit }).catch((error: unknown) => {
      onError(error, kind)
      return []
    })
  }

  async function waitForAlarm(alarm: Alarm): Promise<void> {
    await alarm.rung()
    if (!stopping.signal.aborted) await wait(GATHER_MS)
  }

  async function poll(): Promise<void> {
    while (!stopping.signal.aborted) {
      await wait(pollMs * (0.9 + 0.2 * random()), undefined, { signal: stopping.signal }).catch(() => undefined)
      // If this query fails, each kind asks by itself and reports its own error.
      const due = await storage.dueWork(now()).catch(() => alarms.keys())
      for (const kind of due) alarms.get(kind)?.ring()
    }
  }

  async function work(handler: WorkHandler, items: WorkItem[]): Promise<void> {
    const workHold = holdOf(handler, items)
    const renew = () =>
      storage.extendWork(workHold, now() + leaseMs).catch((error: unknown) => onError(error, handler.kind))
    const renewal = setInterval(() => void renew(), leaseMs / 3)
    try {
      await perform(handler, items)
    } finally {
      clearInterval(renewal)
    }
  }

  async function perform(handler: WorkHandler, all: WorkItem[]): Promise<void> {
    // Every worker that took these items died. The items may be the cause.
    for (const item of all.filter(({ attempts }) => attempts > maxAttempts)) {
      await giveUp(handler, item, item.lastError ?? `No worker finished it in ${maxAttempts} attempts`)
    }
    const items = all.filter(({ attempts }) => attempts <= maxAttempts)
    if (items.length === 0) return
    const groups = 'performAll' in handler ? [items] : items.map((item) => [item])
    for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
      try {
        await performGroup(handler, group)
      } catch (error) {
        onError(error, handler.kind)
        // If the store fails or this process stops, the other items would fail too.
        const isOver = isStoresFault(error) || stopping.signal.aborted
        if (group.length > 1 && !isOver) groups.push(...group.map((item) => [item]))
        else for (const item of isOver ? [group, ...groups.splice(0)].flat() : group) await failed(handler, item, error)
      }
    }
  }

  async function performGroup(handler: WorkHandler, items: WorkItem[]): Promise<void> {
    if ('performAll' in handler) return void (await handler.performAll(items))
    for (const item of items) {
      const workHold = holdOf(handler, [item])
      await settle(workHold, await handler.perform(item, workHold, stopping.signal), null)
    }
  }

  async function settle(workHold: WorkHold, next: Next, reason: string | null): Promise<void> {
    if (next === 'done') await storage.finishWork(workHold)
    else if (next !== 'ended') {
      const { dueAt, failed: error = reason } = next
      await storage.postponeWork(workHold, { dueAt, error, counts: next.failed !== undefined })
    }
  }

  const holdOf = ({ kind }: WorkHandler, items: WorkItem[]): WorkHold => ({ kind, owner, items })

  async function failed(handler: WorkHandler, item: WorkItem, error: unknown): Promise<void> {
    const reason = reasonOf(error)
    const counts = !isStoresFault(error) && !stopping.signal.aborted
    if (counts && item.attempts >= maxAttempts) return giveUp(handler, item, reason)
    const workHold = holdOf(handler, [item])
    const dueAt = now() + (stopping.signal.aborted ? 0 : delayMs(item.attempts))
    await reportFailure(handler, storage.postponeWork(workHold, { dueAt, error: reason, counts }))
  }

  function giveUp(handler: WorkHandler, item: WorkItem, reason: string): Promise<void> {
    const workHold = holdOf(handler, [item])
    const settled = async () => settle(workHold, await handler.giveUp(item, reason, workHold), reason)
    return reportFailure(handler, settled())
  }

  /** If writing the failure fails too, the item stays leased until its lease ends. */
  async function reportFailure(handler: WorkHandler, act: Promise<unknown>): Promise<void> {
    await act.catch((error: unknown) => onError(error, handler.kind))
  }

  function delayMs(attempts: number): number {
    return Math.round(Math.min(LONGEST_DELAY_MS, firstDelayMs * 2 ** (attempts - 1)) * (0.5 + random() / 2))
  }

  return {
    start(): void {
      loops = [poll()]
      for (const handler of handlers) {
        const alarm = alarms.get(handler.kind) ?? createAlarm()
        const inTurn = 'inTurn' in handler && handler.inTurn
        loops.push(inTurn ? loopInTurn(handler, alarm) : loop(handler, alarm))
      }
    },
    wake: (kind: WorkKind) => alarms.get(kind)?.ring(),
    async stop(): Promise<void> {
      stopping.abort()
      for (const alarm of alarms.values()) alarm.ring()
      await Promise.all(loops)
    },
  }
}

/** A store failure is temporary. But a statement timeout counts, because the item may cause it every time. */
function isStoresFault(error: unknown): boolean {
  return error instanceof StorageError && !(error instanceof StatementTimeout)
}

function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.replaceAll('\0', '').slice(0, REASON_CHARS).toWellFormed()
}

interface Alarm {
  ring(): void
  /** Resolves at once if it has rung since the last call. */
  rung(): Promise<void>
}

function createAlarm(): Alarm {
  let next = Promise.withResolvers<void>()
  return {
    ring: () => next.resolve(),
    async rung() {
      await next.promise
      next = Promise.withResolvers<void>()
    },
  }
}
