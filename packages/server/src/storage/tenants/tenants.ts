import type { SpoolTrouble } from '@tacho/contract/engine/words.ts'
import type { Workspace, Environment } from '@tacho/contract/tenants/workspace.ts'
import type { ApiKey } from '@tacho/contract/tenants/api-key.ts'
import type { RowFor, PatchOf } from '../engine/page.ts'
import type { OperatorTokenRow, InvitationRow } from '../people/operators.ts'

export type WorkspaceRow = RowFor<Workspace>
export type NewWorkspaceRow = Omit<WorkspaceRow, 'archivedAt'>

export type TenantChange = { name: string } | { archivedAt: number | null }

export type EnvironmentRow = RowFor<Environment>
export type NewEnvironmentRow = Omit<EnvironmentRow, 'archivedAt' | 'deleteAt'>

export interface DeletionSlice {
  /** Table with which the slice starts: its place in the order of deletion, from 0. */
  table: number
  /** Maximum number of rows in the slice; for runs, a fixed number applies instead. */
  most: number
}

export interface ApiKeyRow extends RowFor<ApiKey> {
  /** SHA-256 of the whole key text, hex. */
  hash: string
  /** Id of the first key of its chain of rotations; null: this one is the first. */
  family: string | null
  /** Null: the service created it, or a version that did not record the creator. */
  creatorKind: 'operator' | 'token' | null
  creatorId: string | null
}

export const keyFamilyOf = ({ family, id }: Pick<ApiKeyRow, 'family' | 'id'>): string => family ?? id

export type NewApiKeyRow = Omit<ApiKeyRow, 'replacedBy' | 'family' | keyof typeof NONE_LOST>

/** Losses of a new key. */
export const NONE_LOST = { lostRequests: 0, lastLostAt: null, lastLostReason: null }

/** Requests of a key that were refused since the last report, and the reason for the latest. */
export interface LostRequests {
  environmentId: string
  keyId: string
  requests: number
  at: number
  reason: string
}

export interface SpoolTroubleRow {
  environmentId: string
  keyId: string
  trouble: SpoolTrouble
  at: number
}

/** The keys of the installation whose clients reported trouble with their spool, and the latest report. */
export interface SpoolTroubleSum {
  keys: number
  latest:
    | (Pick<SpoolTroubleRow, 'trouble' | 'at'> & { keyName: string; workspaceName: string; environmentName: string })
    | null
}

/** The keys of the installation with lost requests, and the key with the latest. */
export interface LostRequestsSum {
  keys: number
  requests: number
  latest: { keyName: string; workspaceName: string; environmentName: string; at: number; reason: string } | null
}

export type ApiKeyChange = PatchOf<
  ApiKeyRow,
  'name' | 'scopes' | 'expiresAt' | 'requestsPerSecond' | 'allowedAddresses'
>

export interface ApiKeyRotation extends Pick<ApiKeyRow, 'id' | 'hash' | 'creatorKind' | 'creatorId'> {
  now: number
  oldValidUntil: number
  expiresAt: number | null | undefined
}

export interface FirstTenant {
  workspace: NewWorkspaceRow
  environment: NewEnvironmentRow
  apiKey: NewApiKeyRow
  operatorToken: OperatorTokenRow
  invitation?: InvitationRow
}

export interface CredentialUse {
  kind: 'api_key' | 'operator_token' | 'session'
  id: string
  at: number
}
