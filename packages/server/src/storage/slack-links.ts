import type { PersonRoles } from './operators.ts'

export interface SlackUser {
  teamId: string
  teamName: string
  userId: string
  userName: string
}

export interface SlackLinkRow extends SlackUser {
  id: string
  environmentId: string
  webhookId: string
  operatorId: string
  email: string
  /** When the person confirmed it. */
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
