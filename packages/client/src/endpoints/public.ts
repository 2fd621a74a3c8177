// Made from the routes tables of the contract by scripts/endpoints.ts.
import type { Endpoint } from '../endpoint.ts'

export const PUBLIC_ENDPOINTS = {
  recordEvents: {"method":"POST","path":"/events/batch"},
  listRuns: {"path":"/runs"},
  readRun: {"path":"/runs/{runId}"},
  listRunEvents: {"path":"/runs/{runId}/events"},
  submitIssueRecord: {"method":"POST","path":"/issue-records","status":202},
  createApproval: {"method":"POST","path":"/firewall-approvals","status":201},
  readApproval: {"path":"/firewall-approvals/{approvalId}"},
  loadRuntimeConfig: {"path":"/runtime-config"},
} as const satisfies Record<string, Endpoint>
