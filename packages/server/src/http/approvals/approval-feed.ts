/**
 * Delivers approval changes to the long polls and streams of this process. One loop asks the store for new revisions
 * while there are followers. Revisions of an environment commit in order (storage/sql/approvals/approvals.ts), so the
 * feed misses none. A change from this process is read at once.
 */
import type { ApprovalRow, ChangePlace } from '../../storage/approvals/approvals.ts'
import type { Storage } from '../../storage/storage.ts'

export interface Follower {
  changed(rows: ApprovalRow[]): void
  /** Approvals were removed, perhaps some that this follower has: read again. */
  removed(): void
  ended(): void
}

export type ApprovalFeed = ReturnType<typeof createApprovalFeed>

export interface FeedOptions {
  storage: Pick<Storage, 'approvalRevisions' | 'listChangedApprovals'>
  onError: (error: unknown) => void
  intervalMs?: number
}

interface Topic {
  removedRevision: number
  place: ChangePlace | null
  opened: Promise<void>
  all: Set<Follower>
  byId: Map<string, Set<Follower>>
}

const ROWS_AT_ONCE = 200
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

export function createApprovalFeed({ storage, onError, intervalMs = 500 }: FeedOptions) {
  const topics = new Map<string, Topic>()
  let timer: NodeJS.Timeout | undefined
  let looking = false
  let lookAgain = false
  let closed = false
  let followers = 0

  /** After the promise resolves, a read together with the changes sent since is complete. Call the result to stop. */
  async function follow(environmentId: string, follower: Follower, id?: string): Promise<() => void> {
    if (closed) {
      follower.ended()
      return () => undefined
    }
    const topic = topics.get(environmentId) ?? open(environmentId)
    const unfollow = add(environmentId, topic, follower, id)
    try {
      await topic.opened
    } catch (error) {
      unfollow()
      throw error
    }
    schedule()
    return unfollow
  }

  function open(environmentId: string): Topic {
    const topic: Topic = { removedRevision: 0, place: null, opened: Promise.resolve(), all: new Set(), byId: new Map() }
    topic.opened = storage.approvalRevisions([environmentId]).then(([read]) => {
      topic.place = { revision: read?.revision ?? 0, id: LAST_ID }
      topic.removedRevision = read?.removedRevision ?? 0
    })
    topics.set(environmentId, topic)
    return topic
  }

  function add(environmentId: string, topic: Topic, follower: Follower, id?: string): () => void {
    const group = id === undefined ? topic.all : (topic.byId.get(id) ?? new Set())
    if (id !== undefined) topic.byId.set(id, group)
    group.add(follower)
    followers += 1
    return () => {
      if (!group.delete(follower)) return
      followers -= 1
      if (id !== undefined && group.size === 0) topic.byId.delete(id)
      if (topic.all.size === 0 && topic.byId.size === 0 && topics.get(environmentId) === topic) {
        topics.delete(environmentId)
      }
    }
  }

  function schedule(): void {
    if (closed || looking || timer !== undefined || topics.size === 0) return
    timer = setTimeout(() => void readFeed(), intervalMs)
    timer.unref()
  }

  async function readFeed(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    lookAgain = true
    if (looking) return
    looking = true
    try {
      while (lookAgain && !closed) {
        lookAgain = false
        await lookOnce()
      }
    } catch (error) {
      onError(error)
    } finally {
      looking = false
      schedule()
    }
  }

  async function lookOnce(): Promise<void> {
    if (topics.size === 0) return
    const revisions = await storage.approvalRevisions([...topics.keys()])
    for (const { environmentId, revision, removedRevision } of revisions) {
      const topic = topics.get(environmentId)
      if (!topic?.place) continue
      // Compare revisions of removals, not places: a read may have moved the place past a removal.
      if (topic.removedRevision < removedRevision) for (const follower of followersOf(topic)) follower.removed()
      topic.removedRevision = removedRevision
      if (topic.place.revision < revision) await read(environmentId, topic, topic.place, revision)
    }
  }

  async function read(environmentId: string, topic: Topic, start: ChangePlace, revision: number): Promise<void> {
    let place = start
    for (;;) {
      const { rows, more } = await storage.listChangedApprovals(environmentId, place, ROWS_AT_ONCE)
      const last = rows.at(-1)
      place = more && last ? last : { revision: Math.max(revision, last?.revision ?? 0), id: LAST_ID }
      topic.place = { revision: place.revision, id: place.id }
      if (rows.length > 0) deliver(topic, rows)
      if (!more || closed) return
    }
  }

  function deliver(topic: Topic, rows: ApprovalRow[]): void {
    for (const follower of topic.all) follower.changed(rows)
    for (const row of rows) for (const follower of topic.byId.get(row.id) ?? []) follower.changed([row])
  }

  return {
    follow,
    look(): void {
      if (topics.size > 0) void readFeed()
    },
    close(): void {
      closed = true
      clearTimeout(timer)
      for (const topic of topics.values()) for (const follower of followersOf(topic)) follower.ended()
    },
    size: () => followers,
  }
}

function followersOf({ all, byId }: Topic): Follower[] {
  return [...all, ...[...byId.values()].flatMap((group) => [...group])]
}
