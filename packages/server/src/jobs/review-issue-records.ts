/** Computes the facts of a record and adds it to the issue with its fingerprint, or opens one. */
import { issueTitle } from '../domain/issue-title.ts'
import { canonicalFacts, groupingOf } from '../domain/issue.ts'
import { uuidv7, type Random } from '../storage/uuid.ts'
import type { IssueDecision, RecordInReview } from '../storage/issue-records.ts'
import type { Storage } from '../storage/storage.ts'
import type { WorkItem } from '../storage/work.ts'
import type { WorkHandler } from './work.ts'

export interface ReviewOptions {
  storage: Pick<Storage, 'startReview' | 'decideIssueRecords' | 'failIssueRecord'>
  now: () => number
  random: Random
}

const BATCH = 50

export function reviewIssueRecords({ storage, now, random }: ReviewOptions): WorkHandler {
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
    batch: BATCH,
    async perform(items) {
      for (const [environmentId, ids] of byEnvironment(items)) {
        const records = await storage.startReview(environmentId, ids, now())
        await storage.decideIssueRecords(environmentId, records.map(decisionOf), now())
      }
    },
    giveUp: ({ environmentId, subjectId }, reason) => storage.failIssueRecord(environmentId, subjectId, reason, now()),
  }
}

function reportedEvent({ recordKind, runId, eventId }: RecordInReview): IssueDecision['reports'] {
  return recordKind === 'DETECTION' && runId !== null && eventId !== null ? { runId, eventId } : null
}

/** One tenant per transaction. */
function byEnvironment(items: WorkItem[]): Map<string, string[]> {
  const ids = new Map<string, string[]>()
  for (const { environmentId, subjectId } of items) {
    ids.set(environmentId, [...(ids.get(environmentId) ?? []), subjectId])
  }
  return ids
}
