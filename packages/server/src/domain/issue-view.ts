/** Read shapes of issues and their records. */
import type { IssueRecord } from '@tacho/contract/operator/issue-record.ts'
import type {
  AffectedAgent,
  AffectedRun,
  Facts,
  Issue,
  IssueActivity,
  IssueGroup,
  IssueSummary,
} from '@tacho/contract/operator/issue.ts'
import type { RunStatus } from '@tacho/contract/run.ts'
import type { IssueRecordRow, IssueRecordWhole } from '../storage/issue-records.ts'
import type {
  AffectedAgentRow,
  AffectedRunRow,
  IssueActivityRow,
  IssueGroupRow,
  IssueRow,
  IssueWhole,
} from '../storage/issues.ts'
import { isoTime, nullableIsoTime } from './run.ts'
import { releaseIn } from './release.ts'
import { uuidv5 } from '../storage/uuid.ts'

export function toIssueSummary(row: IssueRow): IssueSummary {
  return {
    id: row.id,
    title: row.title,
    detectionType: row.detectionType,
    state: row.state,
    stateChangedAt: isoTime(row.stateAt),
    stateChangedBy: row.stateBy,
    ignoredUntil: row.ignoredUntil === null ? null : isoTime(row.ignoredUntil),
    firstSeenAt: isoTime(row.firstSeen),
    lastSeenAt: isoTime(row.lastSeen),
    openedAt: isoTime(row.openedAt),
    occurrences: row.occurrences,
    recoveries: row.recoveries,
    affectedRuns: row.runs,
    affectedAgents: row.agents,
    regressions: row.regressions,
    lastRegressionAt: row.lastRegressionAt === null ? null : isoTime(row.lastRegressionAt),
    assignee: row.assignee,
    mergedInto: row.mergedInto,
  }
}

export function toIssue(row: IssueWhole): Issue {
  const groups = row.groups.map((group) => toGroup(row, group))
  const release = (payload: string | null) => (payload === null ? null : releaseIn(payload))
  return {
    ...toIssueSummary(row),
    groups,
    mergedFrom: row.mergedFrom,
    firstRelease: release(row.firstPayload),
    lastRelease: release(row.lastPayload),
  }
}

function toGroup(issue: IssueRow, row: IssueGroupRow): IssueGroup {
  return {
    fingerprint: row.fingerprint,
    facts: JSON.parse(row.facts) as Facts,
    occurrences: row.occurrences,
    recoveries: row.recoveries,
    affectedRuns: row.runs,
    affectedAgents: row.agents,
    firstSeenAt: isoTime(row.firstSeen),
    lastSeenAt: isoTime(row.lastSeen),
    mergedFrom: row.homeIssueId === issue.id ? null : row.homeIssueId,
  }
}

export function toIssueRecord(row: IssueRecordRow): IssueRecord {
  return {
    id: row.id,
    origin: row.origin,
    sdkInstanceId: row.sdkInstanceId,
    clientRecordId: row.clientRecordId,
    recordKind: row.recordKind,
    detectionType: row.detectionType,
    runId: row.runId,
    sessionId: row.sessionId,
    eventId: row.eventId,
    agentId: row.agentId,
    policyId: row.policyId,
    promptVersionId: row.promptVersionId,
    detectedAt: isoTime(row.detectedAt),
    receivedAt: isoTime(row.receivedAt),
    status: row.status,
    statusChangedAt: isoTime(row.statusAt),
    failure: row.failure,
    fingerprint: row.fingerprint,
    sameAs: row.sameAs,
    issueId: row.issueId,
    internalRunId: row.run,
    internalEventId: row.eventIsStored && row.run && row.eventId !== null ? uuidv5(row.run, row.eventId) : null,
  }
}

/** JSON text of a record. Splices in the original texts, because encoding them again would change them. */
export function issueRecordJson(row: IssueRecordWhole): string {
  const head = JSON.stringify(toIssueRecord(row)).slice(0, -1)
  return `${head},"payload":${row.payload},"evidence":${row.evidence}}`
}

export function toAffectedRun(row: AffectedRunRow): AffectedRun {
  return {
    runId: row.runId,
    internalRunId: row.run,
    status: row.status as RunStatus | null,
    occurrences: row.occurrences,
    firstSeenAt: isoTime(row.firstSeen),
    lastSeenAt: isoTime(row.lastSeen),
  }
}

export function toAffectedAgent(row: AffectedAgentRow): AffectedAgent {
  return {
    agentId: row.agentId,
    internalAgentId: row.agent,
    name: row.name,
    occurrences: row.occurrences,
    firstSeenAt: isoTime(row.firstSeen),
    lastSeenAt: isoTime(row.lastSeen),
  }
}

export function toActivity(row: IssueActivityRow): IssueActivity {
  return {
    id: row.id,
    at: isoTime(row.at),
    kind: row.kind,
    actor: row.actor,
    importedAt: nullableIsoTime(row.importedAt),
    text: row.text,
    detail: JSON.parse(row.detail) as Record<string, unknown>,
  }
}
