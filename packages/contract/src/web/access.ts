import type { Route } from './route.ts'
import { ROLES } from '../engine/words.ts'

export type Role = (typeof ROLES)[number]

/**
 * Callers of an endpoint: anyone; anyone signed in; anyone with the role in the workspace that the path's workspaceId
 * or environmentId names; or an owner of the whole installation.
 */
export type Access = 'anyone' | 'signed-in' | Role | 'installation'

/** One endpoint of the operator API. */
export interface OperatorRoute extends Route {
  readonly access: Access
  /** What it writes to the audit log: `<noun>.<verb>`, and the kind of the target. */
  readonly audit?: { readonly action: string; readonly target: string }
}

/** Whether a role includes another role. */
export function includesRole(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}
