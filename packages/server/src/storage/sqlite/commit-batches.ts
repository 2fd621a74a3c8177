/**
 * Group commit: waiting batches share one transaction.
 *
 *   together -> stored, or rolled back and then each batch alone
 *   alone    -> stored, or trouble of the store: that batch's StorageError, or a data error: event by event
 *   event by event -> one transaction with a savepoint for each; what fails in it is 'unstorable'
 */
import { keepRejections, refusedByStore, trimRejections } from '../sql/rejections.ts'
import type { Sql } from '../sql/sql.ts'
import type { EventBatchRows, EventVerdict } from '../events.ts'
import { createAppender } from './append-events.ts'
import type { Database } from './database.ts'
import { isDataError, storageError } from './errors.ts'
import { transaction } from './transaction.ts'

export type Committed = { verdicts: EventVerdict[] } | { error: unknown }

const REJECTIONS_BETWEEN_TRIMS = 1_000

export function batchCommitter(db: Database, sql: Sql) {
  const appender = createAppender(db)
  const untrimmed = new Map<string, number>()

  async function whole<Result>(work: () => Result | Promise<Result>): Promise<Result> {
    try {
      return await transaction(db, 'write', work)
    } catch (error) {
      appender.forget()
      throw error
    }
  }

  function together(batches: EventBatchRows[]): Promise<EventVerdict[][]> {
    return whole(async () => {
      const verdicts = appender.append(batches)
      for (const [index, batch] of batches.entries()) await remember(batch, verdicts[index] ?? [])
      return verdicts
    })
  }

  async function alone(batch: EventBatchRows): Promise<Committed> {
    try {
      return { verdicts: (await together([batch]))[0] ?? [] }
    } catch (error) {
      if (!isDataError(error)) return { error: storageError(error) }
    }
    try {
      return { verdicts: await whole(() => eventByEvent(batch)) }
    } catch (error) {
      return { error: storageError(error) }
    }
  }

  async function eventByEvent(batch: EventBatchRows): Promise<EventVerdict[]> {
    const verdicts = batch.events.map((event) => {
      db.exec('SAVEPOINT event')
      try {
        const verdict = appender.append([{ ...batch, events: [event] }])[0]?.[0] ?? 'unstorable'
        db.exec('RELEASE event')
        return verdict
      } catch (error) {
        if (!isDataError(error)) throw error
        db.exec('ROLLBACK TO event; RELEASE event')
        appender.forget()
        return 'unstorable'
      }
    })
    await remember(batch, verdicts)
    return verdicts
  }

  async function remember({ environmentId, events, receivedAt, ...batch }: EventBatchRows, verdicts: EventVerdict[]) {
    const rejections = [...batch.rejections, ...refusedByStore(events, verdicts, receivedAt)]
    if (rejections.length === 0) return
    await keepRejections(sql, environmentId, rejections)
    const count = (untrimmed.get(environmentId) ?? 0) + rejections.length
    if (count >= REJECTIONS_BETWEEN_TRIMS) await trimRejections(sql, environmentId)
    untrimmed.set(environmentId, count % REJECTIONS_BETWEEN_TRIMS)
  }

  /** Commits all batches and answers for each, in order. */
  return async function commit(batches: EventBatchRows[]): Promise<Committed[]> {
    if (batches.length > 1) {
      try {
        return (await together(batches)).map((verdicts) => ({ verdicts }))
      } catch {
        // Each batch is tried on its own below and told its own error.
      }
    }
    const committed: Committed[] = []
    for (const batch of batches) committed.push(await alone(batch))
    return committed
  }
}
