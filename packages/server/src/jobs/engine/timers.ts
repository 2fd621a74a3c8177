import { setTimeout as wait } from 'node:timers/promises'
import type { CredentialUse, LostRequests, SpoolTroubleRow } from '../../storage/tenants/tenants.ts'
import { CLIENTS_KEPT_MS, type ConfigurationClientSeen } from '../../storage/policies/deployments.ts'
import { IDEMPOTENCY_KEPT_MS } from '../../storage/engine/work.ts'
import { expireOverdue } from '../../domain/approvals/approval.ts'
import type { HandlerOptions } from './work.ts'
import type { Storage } from '../../storage/storage.ts'

type UsesOptions = Omit<JobOptions<'touchCredentials'>, 'now'> & {
  sources: readonly { kind: CredentialUse['kind']; credentials: { takeUses(): Map<string, number> } }[]
}

export function flushCredentialUses({ storage, sources, onError, intervalMs = 60_000 }: UsesOptions): Job {
  return every({ intervalMs, run: flush, onError, runsAtEnd: true })

  // A failed write loses these times of use. They only inform people, and the next use is recorded again.
  async function flush(): Promise<void> {
    const uses = sources.flatMap(({ kind, credentials }) => {
      return [...credentials.takeUses()].map(([id, at]) => ({ kind, id, at }))
    })
    if (uses.length > 0) await storage.touchCredentials(uses)
  }
}

type ClientsOptions = JobOptions<'writeConfigurationClients'> & {
  clients: Record<'take' | 'takeChanging', () => ReadonlyMap<string, ConfigurationClientSeen[]>>
}

const CHANGING_MS = 1_000

export function flushConfigurationClients({
  storage,
  clients,
  now,
  onError,
  intervalMs = 60_000,
}: ClientsOptions): Job {
  let wholeAt = 0
  return every({ intervalMs: Math.min(intervalMs, CHANGING_MS), run: flush, onError, runsAtEnd: true })

  // A failed write loses this minute. The next polls of the same clients are recorded again.
  async function flush(signal?: AbortSignal): Promise<void> {
    const isWhole = signal?.aborted === true || performance.now() >= wholeAt
    if (isWhole) wholeAt = performance.now() + intervalMs
    for (const [environmentId, seen] of isWhole ? clients.take() : clients.takeChanging()) {
      await storage.writeConfigurationClients(environmentId, seen, now() - CLIENTS_KEPT_MS).catch(onError)
    }
  }
}

type LostRequestsOptions = Omit<JobOptions<'addLostRequests' | 'noteSpoolTrouble'>, 'now'> & {
  lostRequests: { take(): { requests: LostRequests[]; spools: SpoolTroubleRow[] } }
}

/** Runs often, because a person who sets up an exporter checks at once. */
export function flushLostRequests({ storage, lostRequests, onError, intervalMs = 2_000 }: LostRequestsOptions): Job {
  return every({ intervalMs, run: flush, onError, runsAtEnd: true })

  async function flush(): Promise<void> {
    const { requests, spools } = lostRequests.take()
    if (requests.length > 0) await storage.addLostRequests(requests)
    if (spools.length > 0) await storage.noteSpoolTrouble(spools)
  }
}

type RevisionOptions = Omit<JobOptions<'controlRevision'>, 'now'> & {
  listeners: readonly { observeRevision(revision: number, askedAt: number): void }[]
}

/** Sends no query while the store does not answer. */
export function followControlRevision({ storage, listeners, onError, intervalMs = 500 }: RevisionOptions): Job {
  return every({
    intervalMs,
    onError,
    async run() {
      const askedAt = performance.now()
      const revision = await storage.controlRevision()
      for (const listener of listeners) listener.observeRevision(revision, askedAt)
    },
  })
}

type DeletingActs = 'deleteExpiredSignIns' | 'deleteOldIdempotencyKeys'
const SLICE = 500

export function deleteExpired({ storage, now, onError, intervalMs = 3_600_000 }: JobOptions<DeletingActs>): Job {
  return every({
    intervalMs,
    onError,
    async run() {
      await storage.deleteExpiredSignIns(now())
      const before = now() - IDEMPOTENCY_KEPT_MS
      while ((await storage.deleteOldIdempotencyKeys(before, SLICE)) === SLICE);
    },
  })
}

interface ExpiringOptions extends JobOptions<'listOverdueEnvironments' | 'expireApprovals'> {
  /** Applies grants to the environment's held requests, of which people have not been notified yet. */
  applyHeld: (environmentId: string) => Promise<void>
}

const ENVIRONMENTS_AT_ONCE = 100
const MOST_ROUNDS = 20

/** Lists and streams must show EXPIRED even if no request has read the approval since its deadline. */
export function expireOverdueApprovals({ storage, applyHeld, now, onError, intervalMs = 1_000 }: ExpiringOptions): Job {
  return every({
    intervalMs,
    onError,
    async run() {
      for (const environmentId of await storage.listOverdueEnvironments(now(), ENVIRONMENTS_AT_ONCE)) {
        await applyHeld(environmentId)
        await expireOverdue(storage, environmentId, now(), { mostRounds: MOST_ROUNDS })
      }
    },
  })
}

export interface Job {
  stop(): Promise<void>
}

export interface JobOptions<Acts extends keyof Storage> extends HandlerOptions<Acts> {
  onError: (error: unknown) => void
  intervalMs?: number
}

interface Repetition {
  intervalMs: number
  run: (signal: AbortSignal) => Promise<void>
  onError: (error: unknown) => void
  runsAtEnd?: boolean
}

/** Never runs twice at once. The pause varies by a tenth, so that nodes of an installation spread out. */
export function every({ intervalMs, run, onError, runsAtEnd = false }: Repetition): Job {
  const stopped = new AbortController()
  const ended = loop()

  async function loop(): Promise<void> {
    while (!stopped.signal.aborted) {
      await tryToRun()
      const pause = intervalMs * (0.9 + 0.2 * Math.random())
      await wait(pause, undefined, { signal: stopped.signal }).catch(() => undefined)
    }
  }

  async function tryToRun(): Promise<void> {
    try {
      await run(stopped.signal)
    } catch (error) {
      onError(error)
    }
  }

  return {
    async stop() {
      stopped.abort()
      await ended
      if (runsAtEnd) await tryToRun()
    },
  }
}
