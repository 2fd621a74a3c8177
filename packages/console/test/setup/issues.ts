/** Issues for the tests of the console: reports of a detector, and the issues that the service opens for them. */
import type { Issue } from '@tacho/contract/issues/issue.ts'
import { issueRecord } from '../../../server/test/setup/issue-service.ts'
import type { TestConsole } from './console.ts'

/** A detection of this type by the agent `refunder`. */
export const detection = (type: string, change: Record<string, unknown> = {}) =>
  issueRecord({
    detectionType: type,
    agentId: 'refunder',
    runId: 'run-1',
    payload: { toolName: 'refund', reasonCode: 'over_limit' },
    evidence: { decision: 'BLOCK' },
    ...change,
  })

export async function readIssue({ service }: TestConsole, { id }: Issue): Promise<Issue> {
  return (await service.operator<Issue>(`/environments/${service.environmentId}/issues/${id}`)).body
}
