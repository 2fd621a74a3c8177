/** Which versions of prompts and policies are in force in an environment, and the configuration that follows from it. */
import type { DeployableKind, PublicationAction } from '@tacho/contract/operator/deployment.ts'
import type { AuditEntry } from './audit.ts'

export interface DeploymentStore {
  /**
   * Changes what is in force: all of it or nothing. The configuration of the environment is computed and kept in the
   * same transaction and the control revision grows. Of each audit entry one is kept for every change, with an id,
   * action, target and detail of its own. Publications of one environment take turns. When there is nothing to change,
   * nothing is written.
   */
  publish(publication: NewPublication, audit: AuditEntry[]): Promise<Published>
  listDeployments(environmentId: string, page: DeploymentPage): Promise<DeploymentRow[]>
  /** The newest publication first, its changes by kind and id. */
  listDeploymentChanges(
    environmentId: string,
    filter: DeploymentFilter,
    page: DeploymentChangePage,
  ): Promise<DeploymentChangeRow[]>
  /** The configuration in force. Its text is left out (null) when the revision is the one that is known. */
  readConfiguration(environmentId: string, knownRevision: string | null): Promise<Configuration>
}

export interface Item {
  kind: DeployableKind
  /** Prompt id or policy id. */
  id: string
}

/** `version` null: not in force any more. */
export type ItemVersion = Item & { version: number | null }

/** What is to change. No item is named twice. */
export type Intent =
  | { action: 'DEPLOY'; items: ItemVersion[] }
  /** `items` null: all that is in force there. What only this environment has stays. */
  | { action: 'PROMOTE'; sourceEnvironmentId: string; items: Item[] | null }
  | { action: 'ROLL_BACK'; items: Item[] }

export interface NewPublication {
  environmentId: string
  intent: Intent
  note: string | null
  by: string
  now: number
}

export interface Change extends Item {
  /** Name of the prompt; id of the policy. */
  name: string
  from: number | null
  to: number | null
}

export type Published =
  | { outcome: 'published'; revision: string; publication: number; changes: Change[] }
  | { outcome: 'unchanged'; revision: string }
  | { outcome: 'no_environment' | 'no_source_environment' }
  /** The workspace has no such item or version. */
  | { outcome: 'no_item'; item: ItemVersion }
  /** To be promoted, but not in force in the source. */
  | { outcome: 'not_in_force'; item: Item }
  /** To be rolled back, but no other version was in force before. */
  | { outcome: 'no_earlier'; item: Item }
  | { outcome: 'too_large'; limit: 'prompts' | 'policies' | 'bytes' }

export interface DeploymentRow extends Item {
  name: string
  version: number
  publication: number
  deployedAt: number
  deployedBy: string
}

export interface DeploymentPage {
  limit: number
  after: Item | null
}

export interface DeploymentChangeRow extends Change {
  publication: number
  action: PublicationAction
  at: number
  by: string
  note: string | null
  sourceEnvironmentId: string | null
  revision: string
}

export interface DeploymentFilter {
  kind?: DeployableKind | undefined
  id?: string | undefined
}

export interface DeploymentChangePage {
  limit: number
  after: (Item & { publication: number }) | null
}

export interface Configuration {
  /** SHA-256 over the canonical configuration, lower-case hex. */
  revision: string
  /** The reply of GET /runtime-config. */
  text: string | null
}
