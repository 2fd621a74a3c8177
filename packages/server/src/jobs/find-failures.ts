/**
 * Looks at runs in which something failed, and makes an issue record of each failure. A run is queued by the append that
 * stored the failure, or by the stalled rule. The records are decided at once.
 */
import { failureGrouping, failureTitle } from '../domain/failure-issue.ts'
import { canonicalFacts } from '../domain/issue.ts'
import { seenFailures, type FailedEvent } from '../domain/seen-failures.ts'
import { readFailureSubject, type FailureStore, type NewFailure, type RunInReview } from '../storage/failures.ts'
import { uuidv7, type Random } from '../storage/uuid.ts'
import type { WorkItem, WorkStore } from '../storage/work.ts'
import type { WorkHandler } from './work.ts'

export interface FindFailuresOptions {
  storage: FailureStore & Pick<WorkStore, 'finishWork'>
  owner: string
  now: () => number
  random: Random
}

/** Runs at once; the workspaces take turns. */
const SLOTS = 4

export function findFailures({ storage, owner, now, random }: FindFailuresOptions): WorkHandler {
  const finish = (item: WorkItem) => storage.finishWork({ kind: 'find_failures', owner, items: [item] })

  async function find({ environmentId, subjectId }: WorkItem): Promise<void> {
    const subject = readFailureSubject(subjectId)
    if (subject === null) return
    const run = await storage.readFailures(environmentId, subject.run, subject.span)
    if (run === null) return
    const found = subject.span === null ? stalled(run) : seenFailures(run.events).map(ofEvent)
    const newId = () => uuidv7(now(), random)
    const failures = found.map((one): NewFailure => {
      return { ...one, id: newId(), decision: { ...one.decision, newIssueId: newId() } }
    })
    if (failures.length > 0) await storage.recordFailures(environmentId, run.runId, failures, now())
  }

  return {
    kind: 'find_failures',
    batch: SLOTS,
    inTurn: true,
    async perform(items) {
      for (const item of items) {
        await find(item)
        // Queued again meanwhile, it is no longer held and stays.
        await finish(item)
      }
    },
    giveUp: finish,
  }
}

type Found = Omit<NewFailure, 'id' | 'decision'> & { decision: Omit<NewFailure['decision'], 'newIssueId'> }

function ofEvent({ event, failure, release, promptVersionId }: FailedEvent): Found {
  return {
    eventId: event.eventId,
    clientId: event.clientId,
    sessionId: event.sessionId,
    agentId: event.agentId ?? event.agentName,
    promptVersionId,
    time: event.time,
    ...grouped(failure, event.agentName, release),
  }
}

/** The run went silent. If an outcome arrived meanwhile, it did not. */
function stalled({ ruleClosedAt, agentName, agentId, sessionId, lastEventAt, events }: RunInReview): Found[] {
  if (ruleClosedAt === null) return []
  const error = { type: null, message: null, stack: null, causes: [] }
  const agent = agentId ?? agentName
  const failure = { kind: 'RUN_STALLED', agent, toolName: null, model: null, error } as const
  const clientId = events.at(-1)?.clientId ?? agentName
  const of = { clientId, sessionId, agentId: agent, promptVersionId: null, time: lastEventAt }
  return [{ ...of, eventId: null, ...grouped(failure, agentName, null) }]
}

/** The payload repeats the facts and not the message itself: that is in the event, and goes with it. */
function grouped(failure: FailedEvent['failure'], agentName: string, release: string | null) {
  const { facts, fingerprint } = failureGrouping(failure)
  const { detectionType = '', ...told } = facts
  return {
    detectionType: failure.kind,
    payload: JSON.stringify({ ...told, ...(release !== null && { release }) }),
    decision: { fingerprint, facts: canonicalFacts(facts), detectionType, title: failureTitle(facts, agentName) },
  }
}
