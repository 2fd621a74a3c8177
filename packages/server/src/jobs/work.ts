/**
 * Takes work from the queue and has it done, on as many nodes as there are.
 *
 *   looking --found--> working --done--> looking
 *      |                  +--failed: each item alone, then postponed with backoff, in the end given up
 *      +--found less than a batch--> resting --woken, or the poll is due--> looking
 *
 * What is taken is held by a lease that is renewed while it is worked on. A node that dies leaves it to the others.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { StorageError } from '../storage/storage.ts'
import type { WorkHold, WorkItem, WorkKind, WorkStore } from '../storage/work.ts'

/** How one kind of work is done. */
export interface WorkHandler {
  kind: WorkKind
  /** Most items that are taken at once. */
  batch: number
  /**
   * Does the items and takes them off the queue, best in one transaction. When it rejects, whatever is still queued is
   * tried again. The signal tells that the process ends: a long task may reject then, and goes on elsewhere.
   */
  perform(items: WorkItem[], signal: AbortSignal): Promise<unknown>
  /** The act that ends what keeps failing, and takes it off the queue. */
  giveUp(item: WorkItem, reason: string): Promise<unknown>
}

export interface WorkRunnerOptions {
  storage: WorkStore
  handlers: readonly WorkHandler[]
  /** Names this runner among those of all nodes. */
  owner: string
  /** Milliseconds since 1970. */
  now: () => number
  onError: (error: unknown, kind: WorkKind) => void
  /** From 0 to 1. */
  random?: () => number
  pollMs?: number
  leaseMs?: number
  maxAttempts?: number
  /** Delay before the second attempt; it doubles with each further one. */
  firstDelayMs?: number
}

export interface WorkRunner {
  start(): void
  /** Something was just queued on this node: no need to wait for the poll. */
  wake(kind: WorkKind): void
  /** Takes nothing new, and waits for what is under way. */
  stop(): Promise<void>
}

/** Bursts are gathered for so long, so that they share their transactions. */
const GATHER_MS = 20
const LONGEST_DELAY_MS = 5 * 60_000
const REASON_CHARS = 500

export function createWorkRunner(options: WorkRunnerOptions): WorkRunner {
  const { storage, handlers, owner, now, onError, random = Math.random } = options
  const { pollMs = 1_000, leaseMs = 6_000, maxAttempts = 8, firstDelayMs = 1_000 } = options
  const stopping = new AbortController()
  const alarms = new Map(handlers.map(({ kind }) => [kind, createAlarm()]))
  let loops: Promise<void>[] = []

  async function loop(handler: WorkHandler, alarm: Alarm): Promise<void> {
    while (!stopping.signal.aborted) {
      const items = await claim(handler).catch((error: unknown) => {
        onError(error, handler.kind)
        return []
      })
      if (items.length > 0) await work(handler, items)
      if (items.length < handler.batch) await rest(alarm)
    }
  }

  async function rest(alarm: Alarm): Promise<void> {
    if (await alarm.within(pollMs * (0.9 + 0.2 * random()))) await wait(stopping.signal.aborted ? 0 : GATHER_MS)
  }

  function claim({ kind, batch }: WorkHandler): Promise<WorkItem[]> {
    const at = now()
    return storage.claimWork({ kind, owner, now: at, leaseUntil: at + leaseMs, limit: batch })
  }

  async function work(handler: WorkHandler, items: WorkItem[]): Promise<void> {
    const hold: WorkHold = { kind: handler.kind, owner, subjectIds: items.map(({ subjectId }) => subjectId) }
    const renew = () =>
      storage.extendWork(hold, now() + leaseMs).catch((error: unknown) => onError(error, handler.kind))
    const renewal = setInterval(() => void renew(), leaseMs / 3)
    try {
      await perform(handler, items)
    } finally {
      clearInterval(renewal)
    }
  }

  async function perform(handler: WorkHandler, all: WorkItem[]): Promise<void> {
    // Whoever worked on these died every time: perhaps of them.
    for (const item of all.filter(({ attempts }) => attempts > maxAttempts)) {
      await giveUp(handler, item, item.lastError ?? `Nobody came to an end with it in ${maxAttempts} attempts`)
    }
    const items = all.filter(({ attempts }) => attempts <= maxAttempts)
    if (items.length === 0) return
    try {
      await handler.perform(items, stopping.signal)
    } catch (error) {
      onError(error, handler.kind)
      if (items.length === 1 || error instanceof StorageError || stopping.signal.aborted) {
        for (const item of items) await failed(handler, item, error)
      } else {
        for (const item of items) await perform(handler, [item])
      }
    }
  }

  async function failed(handler: WorkHandler, item: WorkItem, error: unknown): Promise<void> {
    const reason = reasonOf(error)
    // Trouble of the store is nobody's fault, and passes.
    const counts = !(error instanceof StorageError) && !stopping.signal.aborted
    if (counts && item.attempts >= maxAttempts) return giveUp(handler, item, reason)
    const hold = { kind: handler.kind, owner, subjectIds: [item.subjectId] }
    const dueAt = now() + (stopping.signal.aborted ? 0 : delayMs(item.attempts))
    await told(handler, storage.postponeWork(hold, { dueAt, error: reason, counts }))
  }

  function giveUp(handler: WorkHandler, item: WorkItem, reason: string): Promise<void> {
    return told(handler, handler.giveUp(item, reason))
  }

  /** What cannot be written now stays held until its lease ends. */
  async function told(handler: WorkHandler, act: Promise<unknown>): Promise<void> {
    await act.catch((error: unknown) => onError(error, handler.kind))
  }

  function delayMs(attempts: number): number {
    return Math.round(Math.min(LONGEST_DELAY_MS, firstDelayMs * 2 ** (attempts - 1)) * (0.5 + random() / 2))
  }

  return {
    start() {
      loops = handlers.map((handler) => loop(handler, alarms.get(handler.kind) ?? createAlarm()))
    },
    wake: (kind) => alarms.get(kind)?.ring(),
    async stop() {
      stopping.abort()
      for (const alarm of alarms.values()) alarm.ring()
      await Promise.all(loops)
    },
  }
}

function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.replaceAll('\0', '').slice(0, REASON_CHARS).toWellFormed()
}

interface Alarm {
  ring(): void
  /** Resolves when it rings, or has rung since the last time, with true; or after so many milliseconds, with false. */
  within(ms: number): Promise<boolean>
}

function createAlarm(): Alarm {
  let rung = false
  let wakeUp: (() => void) | null = null
  return {
    ring() {
      rung = true
      wakeUp?.()
    },
    async within(ms) {
      if (!rung) {
        const { promise, resolve } = Promise.withResolvers<void>()
        const timer = setTimeout(resolve, ms)
        wakeUp = resolve
        await promise
        wakeUp = null
        clearTimeout(timer)
      }
      const was = rung
      rung = false
      return was
    },
  }
}
