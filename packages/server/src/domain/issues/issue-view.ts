import type { IssueRecord } from '@tacho/contract/issues/operator-issue-record.ts'
import type {
  AffectedAgent,
  AffectedRun,
  Facts,
  Issue,
  IssueActivity,
  IssueGroup,
  IssueSummary,
} from '@tacho/contract/issues/issue.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isObject, textAt } from '@tacho/contract/record/payload-reader.ts'
import type {
  IssueRecordRow,
  IssueRecordWhole,
  AffectedAgentRow,
  AffectedRunRow,
  IssueActivityRow,
  IssueGroupRow,
  IssueRow,
  IssueWhole,
} from '../../storage/issues/issues.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { isoOf, pick } from '../web/shown.ts'
import { uuidv5 } from '../../storage/engine/uuid.ts'
import type { Payload } from '../../storage/record/events.ts'

export function toIssueSummary(row: IssueRow): IssueSummary {
  return {
    ...pick(row, 'id', 'title', 'detectionType', 'state', 'occurrences', 'recoveries', 'regressions'),
    ...pick(row, 'assignee', 'mergedInto'),
    ...isoOf(row, 'ignoredUntil', 'openedAt', 'lastRegressionAt'),
    stateChangedAt: isoTime(row.stateAt),
    stateChangedBy: row.stateBy,
    ...seenOf(row),
    ...affectedOf(row),
  }
}

export function toIssue(row: IssueWhole): Issue {
  const release = (payload: string | null) => (payload === null ? null : releaseIn(payload))
  return {
    ...toIssueSummary(row),
    groups: row.groups.map((group) => toGroup(row, group)),
    mergedFrom: row.mergedFrom,
    firstRelease: release(row.firstPayload),
    lastRelease: release(row.lastPayload),
  }
}

function toGroup(issue: IssueRow, row: IssueGroupRow): IssueGroup {
  return {
    ...pick(row, 'fingerprint', 'occurrences', 'recoveries'),
    facts: JSON.parse(row.facts) as Facts,
    ...seenOf(row),
    ...affectedOf(row),
    mergedFrom: row.homeIssueId === issue.id ? null : row.homeIssueId,
  }
}

export function toIssueRecord(row: IssueRecordRow): IssueRecord {
  return {
    ...pick(row, 'id', 'origin', 'sdkInstanceId', 'clientRecordId', 'recordKind', 'detectionType', 'runId'),
    ...pick(row, 'sessionId', 'eventId', 'agentId', 'policyId', 'promptVersionId'),
    ...pick(row, 'status', 'failure', 'fingerprint', 'sameAs', 'issueId'),
    ...isoOf(row, 'detectedAt', 'receivedAt'),
    statusChangedAt: isoTime(row.statusAt),
    internalRunId: row.run,
    internalEventId: row.run && row.storedEventId !== null ? uuidv5(row.run, row.storedEventId) : null,
  }
}

/** Splices in the original texts, because encoding them again would change them. */
export function issueRecordJson(row: IssueRecordWhole): string {
  const head = JSON.stringify(toIssueRecord(row)).slice(0, -1)
  return `${head},"payload":${row.payload},"evidence":${row.evidence}}`
}

export function toAffectedRun(row: AffectedRunRow): AffectedRun {
  return { ...pick(row, 'runId', 'internalRunId', 'status', 'occurrences'), ...seenOf(row) }
}

export function toAffectedAgent(row: AffectedAgentRow): AffectedAgent {
  return { ...pick(row, 'agentId', 'internalAgentId', 'name', 'occurrences'), ...seenOf(row) }
}

const seenOf = (row: { firstSeen: number; lastSeen: number }) => ({
  firstSeenAt: isoTime(row.firstSeen),
  lastSeenAt: isoTime(row.lastSeen),
})

const affectedOf = ({ runs, agents }: { runs: number; agents: number }) => ({
  affectedRuns: runs,
  affectedAgents: agents,
})

export function toActivity(row: IssueActivityRow): IssueActivity {
  const detail = JSON.parse(row.detail) as Record<string, unknown>
  return { ...pick(row, 'id', 'kind', 'actor', 'text'), ...isoOf(row, 'at', 'importedAt'), detail }
}

const RELEASES = ['release', 'agentVersion', 'appVersion', 'serviceVersion']

/** Empty: retention removed the payload. */
export function releaseIn(payload: string): string | null {
  return payload === '' ? null : releaseOf(JSON.parse(payload) as Payload)
}

export function releaseOf(payload: Payload): string | null {
  const resource = payload['resource']
  const ofService = isObject(resource) ? textAt(resource, 'service.version') : null
  const found = [...RELEASES.map((name) => textAt(payload, name)), ofService].find((text) => text?.trim())
  return found ? found.trim().slice(0, LIMITS.releaseChars).toWellFormed() : null
}
