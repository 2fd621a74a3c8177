/** The hot path: stores the events of batches, and what they change, within the caller's transaction. */
import { countDifferingRetry, countForHour, countForRun, newTally } from '../sql/issues/tally.ts'
import type { EventBatchRows, EventVerdict, NewEvent } from '../events.ts'
import { changedRows, type Changes } from './changed-rows.ts'
import type { Database } from './database.ts'
import { eventRows } from './event-rows.ts'
import { knownRows, type KnownRun } from './known-rows.ts'

export interface Appender {
  /** Stores all batches or throws; then the transaction must be rolled back and `forget` called. */
  append(batches: EventBatchRows[]): EventVerdict[][]
  forget(): void
}

export function createAppender(db: Database): Appender {
  const rows = eventRows(db)
  const writeChanges = changedRows(db)
  let known = knownRows(db)

  function append(batches: EventBatchRows[]): EventVerdict[][] {
    known.trim()
    const changed = new Map<string, Changes>()
    const verdicts = batches.map((batch) => {
      let changes = changed.get(batch.environmentId)
      if (changes === undefined) {
        changes = { tally: newTally(), runs: new Map(), agents: new Set() }
        changed.set(batch.environmentId, changes)
      }
      return storeBatch(batch, changes)
    })
    for (const [environmentId, changes] of changed) writeChanges(environmentId, changes, known)
    return verdicts
  }

  function storeBatch({ environmentId, receivedAt, events }: EventBatchRows, changes: Changes): EventVerdict[] {
    const verdicts: EventVerdict[] = []
    // Those that may only be looked up come last: what the batch itself stores is stored.
    for (const isLookedUp of [false, true]) {
      events.forEach((event, place) => {
        if (event.onlyIfStored !== isLookedUp) return
        verdicts[place] = storeEvent(environmentId, receivedAt, event, changes)
      })
    }
    return verdicts
  }

  function storeEvent(environmentId: string, receivedAt: number, event: NewEvent, changes: Changes): EventVerdict {
    let run = known.run(environmentId, event.runId)
    if (event.onlyIfStored) {
      return run === null ? 'absent' : (compare(environmentId, run, event, changes) ?? 'absent')
    }
    const agent = known.agent(environmentId, event)
    run ??= known.addRun(environmentId, event.runId, agent.id, receivedAt)
    const seq = rows.insert(environmentId, run.id, receivedAt, event)
    if (seq === null) return compare(environmentId, run, event, changes) ?? 'unstorable'
    changes.runs.set(run.id, run)
    countForRun(changes.tally, run.id, seq, event)
    countForHour(changes.tally, run.agentId, event)
    if (event.time >= agent.nameTime) {
      agent.name = event.agentName
      agent.nameTime = event.time
      changes.agents.add(agent)
    }
    return 'stored'
  }

  /** The first write wins; a retry that differs from it is counted. Null where there is no such event. */
  function compare(environmentId: string, run: KnownRun, event: NewEvent, changes: Changes): 'duplicate' | null {
    const same = rows.isSame(environmentId, run.id, event)
    if (same === null) return null
    if (!same) {
      changes.runs.set(run.id, run)
      countDifferingRetry(changes.tally, run.id)
    }
    return 'duplicate'
  }

  return {
    append,
    forget: () => {
      known = knownRows(db)
    },
  }
}
