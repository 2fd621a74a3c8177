import type { AskedSlackLink } from '@tacho/contract/messages/slack-link.ts'
import type { PersonRoles } from '../people/operators.ts'

export type SlackUser = Omit<AskedSlackLink, 'expiresAt'>

export interface SlackLinkRow extends SlackUser {
  id: string
  environmentId: string
  webhookId: string
  operatorId: string
  email: string
  changedAt: number
}

export interface NewSlackCode extends SlackUser {
  id: string
  environmentId: string
  webhookId: string
  codeHash: string
  codeExpiresAt: number
  changedAt: number
}

export interface LinkedPerson extends PersonRoles {
  id: string
  email: string
}
