import type { Route } from '../route.ts'

/**
 * What an operator or token can do in a workspace. Each role includes the roles before it. A viewer reads everything in
 * the workspace. An approver also decides approvals and triages issues. An admin also changes environments, keys,
 * prompts, policies, deployments and webhooks. An owner also manages operators and tokens.
 */
export const ROLES = ['viewer', 'approver', 'admin', 'owner'] as const
export type Role = (typeof ROLES)[number]

/**
 * Who can call an endpoint: anyone; anyone signed in; anyone with the role in the workspace that the path's workspaceId
 * or environmentId names; or an owner of the whole installation.
 */
export type Access = 'anyone' | 'signed-in' | Role | 'installation'

/** One endpoint of the operator API. */
export interface OperatorRoute extends Route {
  readonly access: Access
}

/** Whether a role includes another role. */
export function includesRole(role: Role, wanted: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(wanted)
}
