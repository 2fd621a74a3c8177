import type { DeployableKind, PublicationAction } from '@tacho/contract/operator/deployment.ts'
import type { PageAfter } from './page.ts'

export interface Item {
  kind: DeployableKind
  id: string
}

/** `version` null: no longer deployed. */
export type ItemVersion = Item & { version: number | null }

export type Intent =
  | { action: 'DEPLOY'; items: ItemVersion[] }
  /** `items` null: everything deployed there. What only this environment has stays. */
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
  name: string
  from: number | null
  to: number | null
}

export type Published =
  | { outcome: 'published'; revision: string; publication: number; changes: Change[] }
  | { outcome: 'unchanged'; revision: string }
  | { outcome: 'no_environment' | 'no_source_environment' }
  | { outcome: 'no_item'; item: ItemVersion }
  | { outcome: 'archived'; item: Item }
  | { outcome: 'not_in_force'; item: Item }
  | { outcome: 'no_earlier'; item: Item }
  | { outcome: 'too_large'; limit: 'prompts' | 'policies' | 'bytes' }

export interface DeploymentRow extends Item {
  name: string
  version: number
  /** The version that a rollback restores. */
  earlierVersion: number | null
  publication: number
  deployedAt: number
  deployedBy: string
  importedAt: number | null
}

export type DeploymentPage = PageAfter<Item>

export interface DeploymentChangeRow extends Change {
  publication: number
  action: PublicationAction
  at: number
  by: string
  importedAt: number | null
  note: string | null
  sourceEnvironmentId: string | null
  revision: string
}

export interface DeploymentFilter {
  kind?: DeployableKind | undefined
  id?: string | undefined
}

export type DeploymentChangePage = PageAfter<Item & { publication: number }>

export interface Configuration {
  revision: string
  /** The reply of GET /runtime-config. */
  text: string | null
}
