/** What makes an empty store usable: one workspace, one environment, one key and one operator token. */
import { randomBytes } from 'node:crypto'
import { SCOPES } from '@tacho/contract/route.ts'
import { PUBLIC_PREFIX, ROUTES } from '@tacho/contract/routes.ts'
import type { Config } from './config.ts'
import {
  newApiKey,
  newOperatorToken,
  parseApiKey,
  parseOperatorToken,
  type Credential,
  type NewCredential,
} from './domain/credential.ts'
import { uuidv7 } from './domain/uuid.ts'
import type { Storage } from './storage/storage.ts'

/** What was made, for people to see once. Null: it was given, and its owner knows it. */
export interface FirstTenant {
  workspace: string
  environment: string
  apiKey: string | null
  operatorToken: string | null
}

/** A text that was given is not shown. */
type MaybeShown = Credential & Partial<NewCredential>
type First = Pick<Config, 'initWorkspace' | 'initEnvironment' | 'initApiKey' | 'initOperatorToken'>

/** Null: the store is not empty, and nothing was done. */
export async function createFirstTenant(storage: Storage, config: First, now: number): Promise<FirstTenant | null> {
  const key: MaybeShown = given(config.initApiKey, parseApiKey) ?? newApiKey(randomBytes)
  const token: MaybeShown = given(config.initOperatorToken, parseOperatorToken) ?? newOperatorToken(randomBytes)
  const [workspaceId, environmentId] = [uuidv7(now, randomBytes), uuidv7(now, randomBytes)]
  const never = { createdAt: now, expiresAt: null, revokedAt: null, lastUsedAt: null }
  const outcome = await storage.initialise({
    workspace: { id: workspaceId, name: config.initWorkspace, createdAt: now },
    environment: { id: environmentId, workspaceId, name: config.initEnvironment, createdAt: now },
    apiKey: {
      id: key.id,
      environmentId,
      name: 'first key',
      hash: key.hash,
      scopes: [...SCOPES],
      requestsPerSecond: null,
      ...never,
    },
    operatorToken: { id: token.id, name: 'first token', hash: token.hash, workspaceId: null, role: 'owner', ...never },
  })
  if (outcome === 'not_empty') return null
  return {
    workspace: config.initWorkspace,
    environment: config.initEnvironment,
    apiKey: key.text ?? null,
    operatorToken: token.text ?? null,
  }
}

/** What a person reads once. `url` is where the server listens; null when it could not. */
export function firstTenantText(
  { workspace, environment, apiKey, operatorToken }: FirstTenant,
  url: string | null,
): string {
  const lines = [`The store is new: it has the workspace "${workspace}" with the environment "${environment}".`]
  if (apiKey !== null || operatorToken !== null) lines.push('Keep these, they are not shown again:', '')
  if (apiKey !== null) lines.push(`  API key         ${apiKey}`)
  if (operatorToken !== null) lines.push(`  Operator token  ${operatorToken}`)
  if (apiKey !== null && url !== null) lines.push('', 'Record a first event:', '', curlLine(url, apiKey))
  return `${lines.join('\n')}\n`
}

/** One line for a POSIX shell, which puts the time in. */
function curlLine(url: string, apiKey: string): string {
  const event = `{"eventId":"hello-'$(date +%s)'","clientId":"curl","runId":"hello","agentName":"curl",\
"eventType":"USER_INPUT","label":"Hello","timestamp":'$(date +%s)000'}`
  const headers = `-H 'Content-Type: application/json' -H 'X-API-Key: ${apiKey}'`
  return `curl -sS ${url}${PUBLIC_PREFIX}${ROUTES.recordEvents.path} ${headers} -d '[${event}]'`
}

function given(text: string | null, parse: (text: string) => Credential | null): Credential | null {
  return text === null ? null : parse(text)
}
