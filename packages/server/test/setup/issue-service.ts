/** Issue records of a running server, for tests. */
import assert from 'node:assert/strict'
import type { IssueRecordReceipt } from '@tacho/contract/issues/issue-record.ts'
import type { IssueRecordPage } from '@tacho/contract/issues/operator-issue-record.ts'
import type { Issue, IssuePage } from '@tacho/contract/issues/issue.ts'
import type { Answer, Service } from './service.ts'
import { eventually } from './eventually.ts'

let count = 0

/** A valid detection with the current time and a new id. */
export function issueRecord(change: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    sdkInstanceId: 'client',
    clientRecordId: `record-${++count}`,
    recordKind: 'DETECTION',
    detectionType: 'TOOL_BLOCKED',
    agentId: 'agent',
    detectedAt: Date.now(),
    ...change,
  }
}

export function submit(service: Service, record: unknown, key?: string): Promise<Answer<IssueRecordReceipt>> {
  return service.api('/issue-records', {
    body: record,
    ...(key === undefined ? {} : { headers: { 'x-api-key': key } }),
  })
}

/** Waits until every record of an environment is decided or has failed. */
export async function reviewed(service: Service, environmentId = service.environmentId): Promise<void> {
  // Wait for RECEIVED first, because records change from RECEIVED to EVALUATING.
  for (const status of ['RECEIVED', 'EVALUATING']) {
    const path = `/environments/${environmentId}/issue-records?limit=1&status=${status}`
    await eventually(
      async () => (await service.operator<IssueRecordPage>(path)).body.items.length === 0,
      'every record to be decided',
    )
  }
}

/** Submits records of one kind of failure and returns the issue that they open. */
export async function openedIssue(service: Service, ...records: Record<string, unknown>[]): Promise<Issue> {
  for (const record of records) assert.equal((await submit(service, record)).status, 202)
  await reviewed(service)
  const type = encodeURIComponent(String(records[0]?.['detectionType']))
  const { body } = await service.operator<IssuePage>(
    `/environments/${service.environmentId}/issues?detectionType=${type}`,
  )
  const [issue] = body.items
  assert.ok(issue)
  return (await service.operator<Issue>(`/environments/${service.environmentId}/issues/${issue.id}`)).body
}
