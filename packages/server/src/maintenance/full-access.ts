import { SCOPES } from '@tacho/contract/web/route.ts'
import type { Credential } from '../domain/people/credential.ts'

const unused = (createdAt: number) => ({
  createdAt,
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: null,
  allowedAddresses: null,
})

const MADE_HERE = { creatorKind: null, creatorId: null, creatorName: null }

export function ownerToken({ id, hash }: Credential, name: string, now: number) {
  return { id, name, hash, workspaceId: null, role: 'owner', ...MADE_HERE, ...unused(now) } as const
}

export function fullKey({ id, hash }: Credential, name: string, environmentId: string, now: number) {
  return { id, environmentId, name, hash, scopes: [...SCOPES], requestsPerSecond: null, ...unused(now) }
}
