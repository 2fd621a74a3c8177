import type {
  DeployableKind,
  Deployment,
  DeploymentChange,
  ClientStanding,
} from '@tacho/contract/policies/deployment.ts'
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import type { PageAfter, RowFor } from '../engine/page.ts'
import type { RowOf } from '../engine/tables.ts'

export interface Item {
  kind: DeployableKind
  id: string
}

/** `version` null: no longer deployed. */
export type ItemVersion = Item & { version: number | null }

/**
 * The deployment that the operator saw. Nothing is published if another version is in force by now, or if a rollback
 * would restore another one.
 */
export interface Seen {
  replaces?: number | null | undefined
  restores?: number | undefined
}

/**
 * `share`: the percentage of sessions that get the version of a prompt; 0 ends the share of this version. Absent: all
 * sessions get the version, and any share ends.
 */
export type DeployedItem = ItemVersion & Pick<Seen, 'replaces'> & { share?: number | undefined }

/** A version of a prompt that some of the sessions get, besides the version in force. */
export type PromptShareRow = Omit<RowOf<'prompt_shares'>, 'importedAt'> & { damaged?: true }

/** Outcomes of a version's runs. */
export interface VersionOutcomes {
  completed: number
  failed: number
  cancelled: number
}

/** Outcomes since the share began. */
export interface ShareOutcomes extends Pick<PromptShareRow, 'promptId' | 'version' | 'percent'> {
  /** Name of the prompt. */
  name: string
  inForce: number
  shared: VersionOutcomes
  /** Outcomes of runs with the version in force. */
  others: VersionOutcomes
}

export type Intent =
  | { action: 'DEPLOY'; items: DeployedItem[] }
  /** `items` null: everything that is deployed there. What only this environment has stays deployed. */
  | { action: 'PROMOTE'; sourceEnvironmentId: string; items: Item[] | null }
  | { action: 'ROLL_BACK'; items: (Item & Seen)[] }

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
  /**
   * The share that changed, with its new percentage; `from` and `to` are then the same. Null: the version in force
   * changed.
   */
  share: { version: number; percent: number } | null
}

export type Published =
  | { outcome: 'published'; revision: string; publication: number; changes: Change[] }
  | { outcome: 'unchanged'; revision: string }
  | { outcome: 'no_environment' | 'no_source_environment' }
  | { outcome: 'no_item'; item: ItemVersion }
  | { outcome: 'archived'; item: Item }
  | { outcome: 'not_in_force'; item: Item }
  | { outcome: 'no_earlier'; item: Item }
  /** The version in force is not the one that the operator saw; null: none. */
  | { outcome: 'overtaken'; item: Item; inForce: number | null; seen: number | null }
  | { outcome: 'other_earlier'; item: Item; restores: number | null; seen: number }
  /**
   * Why the prompt can have no share. `no_other`: sessions outside the share would get no version. `in_force`: they
   * would get the same version.
   */
  | { outcome: 'no_share'; item: Item; why: 'no_other' | 'in_force' }
  | { outcome: 'too_large'; limit: 'prompts' | 'policies' | 'shares' | 'bytes' }

export interface DeploymentRow extends Omit<RowFor<Deployment>, 'version' | 'earlierVersion' | 'share'> {
  version: number
  earlierVersion: number | null
  share: PromptShareRow | null
}

export type DeploymentPage = PageAfter<Item>

export interface DeploymentChangeRow
  extends Omit<Change, 'share'>, Omit<RowFor<DeploymentChange, 'at' | 'importedAt'>, keyof Change> {
  shareVersion: number | null
  sharePercent: number | null
}

export interface DeploymentFilter {
  kind?: DeployableKind | undefined
  id?: string | undefined
  from?: number | undefined
  to?: number | undefined
}

export type DeploymentChangePage = PageAfter<Item & { publication: number }>

export interface Configuration {
  revision: string
  text: string | null
}

/** Labels of the tools of an environment. */
export interface ToolLabelsRow {
  rules: ToolLabel[]
  changedAt: number
  changedBy: string
}

/** A client is BEHIND when it asks with another revision this long after the revision changed. */
export const TAKES_UP_MS = 2 * 60_000
/**
 * A client is SILENT when another client asked this much later: it missed several refreshes. Most SILENT clients are
 * short processes that ended, which must not count as late.
 */
export const SILENT_AFTER_MS = 3 * 60_000
/** A client is deleted this long after its last request, because many clients get a new id at each start. */
export const CLIENTS_KEPT_MS = 24 * 60 * 60_000
/**
 * Stands for the revision of a client that reported its end. Its row stays, so that an earlier poll at another node
 * cannot restore it.
 */
export const ENDED = 'ended'

interface ClientPlace {
  identifiedBy: 'client' | 'key'
  clientId: string
}

export interface ConfigurationClientSeen extends ClientPlace {
  keyId: string
  revision: string
  seenAt: number
}

export interface ConfigurationClientRow extends ConfigurationClientSeen {
  standing: ClientStanding
}

export type ConfigurationClientsPage = PageAfter<ClientPlace>
