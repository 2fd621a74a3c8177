/**
 * Group commit: parts of batches that wait in the same lanes share one transaction.
 *
 *   together --stored--> done
 *      |--lost a race--> together, a few times
 *      |--trouble of the store--> all fail
 *      `--data error--> each part alone --data error--> event by event: what fails then is 'unstorable'
 */
import type { EventVerdict, RejectionRow } from '../events.ts'
import { trimRejections } from '../sql/rejections.ts'
import { appendGroup, type Group, type KnownRows, type Part } from './append-events.ts'
import type { Connections } from './connections.ts'
import { isDataError, isRace, storageError } from './errors.ts'
import { knownAgents } from './known-agents.ts'
import { knownModels } from './known-models.ts'
import { postgresSql } from './sql.ts'

export type Committed = { verdicts: EventVerdict[] } | { error: unknown }

const TRIES = 5
const REJECTIONS_BETWEEN_TRIMS = 1_000

export function partCommitter(connections: Connections) {
  const known: KnownRows = { agents: knownAgents(), models: knownModels() }
  const untrimmed = new Map<string, number>()

  function append(group: Group): Promise<EventVerdict[][]> {
    return connections.use(async (client) => {
      for (let tries = 1; ; tries++) {
        try {
          return await appendGroup(client, group, known)
        } catch (error) {
          if (tries === TRIES || !isRace(error)) throw error
        }
      }
    })
  }

  async function together(group: Group): Promise<Committed[]> {
    try {
      return (await append(group)).map((verdicts) => ({ verdicts }))
    } catch (error) {
      if (!isDataError(error)) return group.parts.map(() => ({ error: storageError(error) }))
      const [part] = group.parts
      if (part && group.parts.length === 1) return [await eventByEvent(group, part)]
      const committed: Committed[] = []
      for (const alone of group.parts) committed.push(...(await together({ ...group, parts: [alone] })))
      return committed
    }
  }

  async function eventByEvent(group: Group, part: Part): Promise<Committed> {
    const verdicts: EventVerdict[] = []
    const rejections: RejectionRow[] = [...part.rejections]
    try {
      for (const event of part.events) {
        const verdict = await alone(group, { ...part, events: [event], rejections: [] })
        verdicts.push(verdict)
        const { runId, eventId } = event
        if (verdict === 'unstorable') rejections.push({ runId, eventId, code: verdict, rejectedAt: part.receivedAt })
      }
      await append({ ...group, parts: [{ ...part, events: [], rejections }] }).catch((error: unknown) => {
        // Refusals are for people to read; none of them may fail an event.
        if (!isDataError(error)) throw error
      })
      return { verdicts }
    } catch (error) {
      // What was stored is a duplicate when the batch comes again.
      return { error: storageError(error) }
    }
  }

  async function alone(group: Group, part: Part): Promise<EventVerdict> {
    try {
      return (await append({ ...group, parts: [part] }))[0]?.[0] ?? 'unstorable'
    } catch (error) {
      if (!isDataError(error)) throw error
      return 'unstorable'
    }
  }

  /** Now and then, in a transaction of its own: what it fails to take away, the next one does. */
  async function trim(environmentId: string, added: number): Promise<void> {
    const count = (untrimmed.get(environmentId) ?? 0) + added
    untrimmed.set(environmentId, count % REJECTIONS_BETWEEN_TRIMS)
    if (count < REJECTIONS_BETWEEN_TRIMS) return
    const work = connections.transaction((client) => trimRejections(postgresSql(client), environmentId))
    await work.catch(() => undefined)
  }

  /** Commits all parts and answers for each, in order. */
  return async function commitParts(group: Group): Promise<Committed[]> {
    const committed = await together(group)
    const added = group.parts.reduce((sum, { rejections }) => sum + rejections.length, 0)
    if (added > 0) await trim(group.environmentId, added)
    return committed
  }
}
