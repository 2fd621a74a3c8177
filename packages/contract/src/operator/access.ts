import type { Route } from '../route.ts'

/**
 * What an operator or token may do in a workspace; each role includes those before it. viewer reads everything of the
 * workspace; approver also decides approvals and triages issues; admin also changes environments, keys, prompts, policies,
 * deployments and webhooks; owner also operators and tokens.
 */
export const ROLES = ['viewer', 'approver', 'admin', 'owner'] as const
export type Role = (typeof ROLES)[number]

/**
 * Who may call an endpoint: anyone at all, anyone signed in, whoever has the role in the workspace that the path's workspaceId or
 * environmentId names, or whoever runs the whole installation.
 */
export type Access = 'anyone' | 'signed-in' | Role | 'installation'

/** One endpoint of the operator API. */
export interface OperatorRoute extends Route {
  readonly access: Access
}

/** Whether a role includes another. */
export function includesRole(role: Role, wanted: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(wanted)
}
