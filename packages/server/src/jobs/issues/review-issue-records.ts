import { issueTitle } from '../../domain/issues/issue-title.ts'
import { canonicalFacts, groupingOf } from '../../domain/issues/issue.ts'
import { uuidv7, type Random } from '../../storage/engine/uuid.ts'
import type { IssueDecision, RecordInReview } from '../../storage/issues/issue-records.ts'
import type { BatchHandler, HandlerOptions } from '../engine/work.ts'

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
