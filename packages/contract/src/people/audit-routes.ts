import type { OperatorRoute } from '../web/access.ts'
import { AuditPage, AuditQuery } from './audit.ts'
import { WorkspaceParams } from '../tenants/workspace.ts'

const common = {
  method: 'GET',
  tag: 'Audit log',
  scopes: [],
  query: AuditQuery,
  status: 200,
  reply: AuditPage,
} as const

/** Audit log routes. Entries never change. */
export const auditRoutes = {
  listAudit: {
    ...common,
    access: 'viewer',
    path: '/workspaces/{workspaceId}/audit',
    summary: 'List what operators did in a workspace, newest first',
    params: WorkspaceParams,
    errors: ['not_found', 'invalid_cursor'],
  },
  listInstallationAudit: {
    ...common,
    access: 'installation',
    path: '/audit',
    summary: 'List what operators did in the installation, newest first',
    errors: ['invalid_cursor'],
  },
} as const satisfies Record<string, OperatorRoute>
