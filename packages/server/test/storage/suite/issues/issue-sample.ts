/** Issue records for tests, reviewed the way the job does it. */
import { randomBytes } from 'node:crypto'
import { issueTitle, canonicalFacts, groupingOf } from '../../../../src/domain/issues/issue.ts'
import { uuidv7 } from '../../../../src/storage/engine/uuid.ts'
import type { AuditEntry } from '../../../../src/storage/people/operators.ts'
import type {
  NewFailure,
  DecidedIssues,
  IssueDecision,
  NewIssueRecord,
  RecordInReview,
  IssueChange,
  IssueRow,
  IssueWhole,
} from '../../../../src/storage/issues/issues.ts'
import type { Storage } from '../../../../src/storage/storage.ts'
import { newId, NOON } from '../sample.ts'

export const newRecordId = (): string => uuidv7(NOON, randomBytes)

export function issueRecord(environmentId: string, given: Partial<NewIssueRecord> = {}): NewIssueRecord {
  return {
    id: newRecordId(),
    environmentId,
    sdkInstanceId: 'client',
    clientRecordId: newId(),
    recordKind: 'DETECTION',
    detectionType: 'TOOL_BLOCKED',
    runId: 'run',
    sessionId: null,
    eventId: null,
    agentId: 'agent',
    policyId: null,
    promptVersionId: null,
    detectedAt: NOON,
    receivedAt: NOON + 1_000,
    payload: '{}',
    evidence: '{}',
    ...given,
  }
}

export function decisionOf(record: RecordInReview): IssueDecision {
  const { facts, fingerprint } = groupingOf(record)
  return {
    recordId: record.id,
    reports: reportOf(record),
    fingerprint,
    facts: canonicalFacts(facts),
    detectionType: facts.detectionType ?? '',
    title: issueTitle(record),
    newIssueId: newRecordId(),
  }
}

function reportOf({ recordKind, runId, eventId }: RecordInReview): IssueDecision['reports'] {
  return recordKind === 'DETECTION' && runId !== null && eventId !== null ? { runId, eventId } : null
}

/** Stores records, then decides them together. */
export async function reviewed(storage: Storage, ...records: NewIssueRecord[]): Promise<DecidedIssues> {
  for (const record of records) await storage.receiveIssueRecord(record)
  const environmentId = records[0]?.environmentId ?? ''
  return decideAll(
    storage,
    environmentId,
    records.map(({ id }) => id),
  )
}

export async function decideAll(storage: Storage, environmentId: string, ids: string[]): Promise<DecidedIssues> {
  const started = await storage.startReview(environmentId, ids, NOON + 2_000)
  return storage.decideIssueRecords(environmentId, started.map(decisionOf), NOON + 3_000)
}

export async function listAll(storage: Storage, environmentId: string): Promise<IssueRow[]> {
  return (await storage.listIssues(environmentId, {}, { limit: 1000, after: null })).rows
}

export async function onlyIssue(storage: Storage, environmentId: string): Promise<IssueWhole> {
  const [row, ...others] = await listAll(storage, environmentId)
  if (row === undefined || others.length > 0) throw new Error(`There are ${others.length + (row ? 1 : 0)} issues`)
  return issueOf(storage, environmentId, row.id)
}

export async function issueOf(storage: Storage, environmentId: string, id: string): Promise<IssueWhole> {
  const issue = await storage.findIssue(environmentId, id)
  if (issue === null) throw new Error(`There is no issue ${id}`)
  return issue
}

export function change(at = NOON + 10_000): IssueChange {
  return { id: newRecordId(), at, actor: { kind: 'token', id: 'token-1', name: 'script' } }
}

/** The arguments of an audited act. */
export function auditEntry(environmentId: string, action: string): AuditEntry {
  return {
    id: newRecordId(),
    workspaceId: null,
    environmentId,
    at: NOON,
    actorKind: 'token',
    actorId: 'token-1',
    actorName: 'script',
    action,
    targetKind: 'issue',
    targetId: newId(),
    detail: '{}',
    requestId: newId(),
    address: null,
  }
}

/** A failure that the service saw in an event. */
export function newFailure(given: Partial<NewFailure> = {}): NewFailure {
  const decision = {
    fingerprint: 'v3:one:all',
    facts: '{"detectionType":"tool_failed"}',
    detectionType: 'tool_failed',
    title: 'Error in get_order',
    newIssueId: newRecordId(),
  }
  return {
    id: newRecordId(),
    eventId: 'e',
    clientId: 'client',
    sessionId: null,
    agentId: 'agent',
    promptVersionId: null,
    time: NOON,
    detectionType: 'TOOL_FAILED',
    payload: '{"toolName":"get_order"}',
    decision,
    broader: {
      family: 'v3:one:',
      place: { fingerprint: 'v3:one:place', facts: '{"message":"…"}', title: 'Error in get_order: many messages' },
      kind: { fingerprint: 'v3:kind:', facts: '{}', title: 'Many failures' },
    },
    ...given,
  }
}
