/**
 * Finds the failures of runs that an append or the stalled rule has queued. The message to webhooks is stored in the
 * transaction that ends the work.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { failedRunNews } from '../../domain/messages/notification.ts'
import {
  failureGrouping,
  failureTitle,
  kindTitle,
  placeTitle,
  isCounted,
  toldFailure,
  type FailedEvent,
  type ToldFailure,
} from '../../domain/issues/failure-issue.ts'
import { canonicalFacts, type Grouping, groupingOf, issueTitle, releaseIn } from '../../domain/issues/issue.ts'
import {
  readFailureSubject,
  type NamedFailure,
  type NewFailure,
  type RunInReview,
  type IssueDecision,
  type RecordInReview,
  type NewLoop,
} from '../../storage/issues/issues.ts'
import { readTraits } from '../../storage/runs/runs.ts'
import { uuidv7, type Random } from '../../storage/engine/uuid.ts'
import type { WorkItem } from '../../storage/engine/work.ts'
import type { RunPages } from '../messages/deliver-webhooks.ts'
import type { HandlerOptions, ItemHandler, Next, BatchHandler } from '../engine/work.ts'

type FailureActs = 'readFailures' | 'recordFailures' | 'recordLoops' | 'nameReported' | 'tellOfRun'
type Options = HandlerOptions<FailureActs> & { pages: Pick<RunPages, 'urlOf'>; random: Random }

const SLOTS = 4
/**
 * Failures stored in one transaction. Few, so that a batch of events waits for them no longer than for another batch.
 */
const FAILURES_AT_ONCE = 20

export function findFailures({ storage, pages, now, random }: Options): ItemHandler {
  /** Null: there is nothing to send to webhooks, or not yet. */
  async function find({ environmentId, subjectId }: WorkItem): Promise<{ run: string; data: object } | null> {
    const subject = readFailureSubject(subjectId)
    if (subject === null) return null
    const review = await storage.readFailures(environmentId, subject.run, subject.span)
    if (review === null) return null
    const { run, events } = review
    const runFailures = subject.span === null ? stalled(review) : await failuresIn(events)
    const newId = () => uuidv7(now(), random)
    const failures = runFailures.map((one): NewFailure => {
      return { ...one, id: newId(), decision: { ...one.decision, newIssueId: newId() } }
    })
    for (let at = 0; at < failures.length; at += FAILURES_AT_ONCE) {
      const some = failures.slice(at, at + FAILURES_AT_ONCE)
      const stored = await storage.recordFailures(environmentId, run.runId, some, now())
      // The others are already stored, perhaps from a client's report.
      const named = stored === some.length ? [] : some.flatMap(namedByMessage)
      if (named.length > 0) await storage.nameReported(environmentId, run.runId, named)
    }
    const loops = loopsOf(review).map((loop) => ({ ...loop, id: newId() }))
    if (loops.length > 0) await storage.recordLoops(environmentId, run.runId, loops, now())
    const news = subject.span === null || subject.span.ends ? failedRunNews(environmentId, run) : null
    return news && { run: run.id, data: { ...news, url: await pages.urlOf(environmentId, run.id) } }
  }

  return {
    kind: 'find_failures',
    batch: SLOTS,
    inTurn: true,
    async perform(item, workHold) {
      const ended = await find(item)
      // If the item was queued again meanwhile, this worker no longer holds it, and it stays.
      if (ended === null) return 'done'
      const news = { type: 'run.failed', at: now(), data: ended.data } as const
      await storage.tellOfRun(workHold, item.environmentId, ended.run, news)
      return 'ended'
    },
    giveUp: async () => 'done',
  }
}

/** Works in turns of the event loop: reading a payload takes milliseconds, and so does comparing a run's messages. */
async function failuresIn(events: RunInReview['events']): Promise<Found[]> {
  const toldFailures: ToldFailure[] = []
  for (const event of events) {
    const one = toldFailure(event)
    if (one !== null) toldFailures.push(one)
    await turn()
  }
  const foundFailures: Found[] = []
  for (const one of toldFailures) {
    if (isCounted(one, toldFailures)) foundFailures.push(ofEvent(one))
    await turn()
  }
  return foundFailures
}

type Found = Omit<NewFailure, 'id' | 'decision'> & { decision: Omit<NewFailure['decision'], 'newIssueId'> }

function ofEvent({ event, failure, release, promptVersionId }: FailedEvent): Found {
  const { eventId, clientId, sessionId, agentName, agentId, time } = event
  const of = { eventId, clientId, sessionId, agentId: agentId ?? agentName, promptVersionId, time }
  return { ...of, ...groupedFailure(failure, agentName, release) }
}

function namedByMessage({ eventId, payload, decision: { title } }: NewFailure): NamedFailure[] {
  const { message } = JSON.parse(payload) as { message?: string }
  return eventId === null || message === undefined ? [] : [{ eventId, title }]
}

/** The store records each loop only once. */
function loopsOf({ run, events }: RunInReview): Omit<NewLoop, 'id'>[] {
  const { agentName, agentExternalId, sessionId, lastEventAt: time } = run
  const clientId = events.at(-1)?.clientId ?? agentName
  const of = { clientId, sessionId, agentId: agentExternalId ?? agentName, time }
  return readTraits(run.traits).loop.map((toolName) => ({ ...of, toolName }))
}

/** An outcome may have arrived since the rule closed the run. */
function stalled({ run, events }: RunInReview): Found[] {
  const { ruleClosedAt, agentName, agentExternalId: agentId, sessionId, lastEventAt } = run
  if (ruleClosedAt === null) return []
  const error = { type: null, message: null, stack: null, causes: [] }
  const agent = agentId ?? agentName
  const failure = { kind: 'RUN_STALLED', agent, toolName: null, model: null, error } as const
  const clientId = events.at(-1)?.clientId ?? agentName
  const of = { clientId, sessionId, agentId: agent, promptVersionId: null, time: lastEventAt }
  const release = releaseIn(events.at(-1)?.payload ?? '')
  return [{ ...of, eventId: null, ...groupedFailure(failure, agentName, release) }]
}

/** The message itself stays only in the event, and is deleted with it. */
export function groupedFailure(failure: FailedEvent['failure'], agentName: string, release: string | null) {
  const grouping = failureGrouping(failure)
  const { facts, family, place, kind } = grouping
  const { detectionType = '', ...otherFacts } = facts
  const group = ({ fingerprint, facts: hashed }: Grouping, title: string) => ({
    fingerprint,
    facts: canonicalFacts(hashed),
    title,
  })
  return {
    detectionType: failure.kind,
    payload: JSON.stringify({ ...otherFacts, ...(release !== null && { release }) }),
    decision: { ...group(grouping, failureTitle(facts, agentName)), detectionType },
    broader: {
      family,
      place: group(place, placeTitle(grouping, agentName)),
      kind: group(kind, kindTitle(failure.kind)),
    },
  }
}

export function reopenIssues({
  storage,
  now,
  random,
}: HandlerOptions<'endIgnoring'> & { random: Random }): ItemHandler {
  async function end({ environmentId, subjectId: id }: WorkItem): Promise<Next> {
    await storage.endIgnoring({ environmentId, id }, uuidv7(now(), random), now())
    return 'ended'
  }
  return { kind: 'reopen_issue', batch: 50, perform: end, giveUp: end }
}

type ReviewActs = 'startReview' | 'decideIssueRecords' | 'failIssueRecord'

export function reviewIssueRecords({
  storage,
  now,
  random,
}: HandlerOptions<ReviewActs> & { random: Random }): BatchHandler {
  function decisionOf(record: RecordInReview): IssueDecision {
    const { facts, fingerprint } = groupingOf(record)
    return {
      recordId: record.id,
      reports: reportedEvent(record),
      fingerprint,
      facts: canonicalFacts(facts),
      detectionType: facts.detectionType ?? '',
      title: issueTitle(record),
      newIssueId: uuidv7(now(), random),
    }
  }

  return {
    kind: 'review_issue_record',
    batch: 50,
    async performAll(items) {
      // One tenant per transaction.
      for (const [environmentId, some] of Map.groupBy(items, (item) => item.environmentId)) {
        const ids = some.map(({ subjectId }) => subjectId)
        const records = await storage.startReview(environmentId, ids, now())
        await storage.decideIssueRecords(environmentId, records.map(decisionOf), now())
      }
    },
    async giveUp({ environmentId, subjectId }, reason) {
      await storage.failIssueRecord(environmentId, subjectId, reason, now())
      return 'ended'
    },
  }
}

function reportedEvent({ recordKind, runId, eventId }: RecordInReview): IssueDecision['reports'] {
  return recordKind === 'DETECTION' && runId !== null && eventId !== null ? { runId, eventId } : null
}
