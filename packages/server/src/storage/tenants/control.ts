import type { NewApiKeyRow } from './api-keys.ts'
import type { NewEnvironmentRow } from './environments.ts'
import type { OperatorTokenRow } from '../people/operator-tokens.ts'
import type { InvitationRow } from '../people/operators.ts'
import type { NewWorkspaceRow } from './workspaces.ts'

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
