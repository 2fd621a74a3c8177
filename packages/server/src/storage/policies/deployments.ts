import type { DeployableKind, Deployment, DeploymentChange } from '@tacho/contract/policies/deployment.ts'
import type { PageAfter } from '../engine/page.ts'
import type { RowFor } from '../engine/row-for.ts'

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

export interface DeploymentRow extends Omit<RowFor<Deployment>, 'version' | 'earlierVersion'> {
  version: number
  earlierVersion: number | null
}

export type DeploymentPage = PageAfter<Item>

export interface DeploymentChangeRow
  extends Change, Omit<RowFor<DeploymentChange, 'at' | 'importedAt'>, keyof Change> {}

export interface DeploymentFilter {
  kind?: DeployableKind | undefined
  id?: string | undefined
}

export type DeploymentChangePage = PageAfter<Item & { publication: number }>

export interface Configuration {
  revision: string
  text: string | null
}
