import { randomBytes } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { PUBLIC_PREFIX, ROUTES } from '@tacho/contract/web/routes.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { SCOPES } from '@tacho/contract/web/route.ts'
import type { Config } from '../config/config.ts'
import {
  invitationLink,
  newApiKey,
  newInvitation,
  newOperatorToken,
  parseApiKey,
  parseOperatorToken,
  type Credential,
  type NewCredential,
} from '../domain/people/credential.ts'
import { uuidv7 } from '../storage/engine/uuid.ts'
import { ROOT } from '../program/program.ts'
import { ANY_EMAIL } from '../storage/people/operators.ts'
import type { Storage } from '../storage/storage.ts'

/** Credentials to show once; null if the settings provided them. */
interface FirstCredentials {
  workspace: string
  environment: string
  apiKey: string | null
  operatorToken: string | null
  invitation: { email: string | null; text: string } | null
}

type MaybeShown = Credential & Partial<NewCredential>
type First = Pick<
  Config,
  'initWorkspace' | 'initEnvironment' | 'initApiKey' | 'initOperatorToken' | 'initOperatorEmail'
>

/** Null if the store was not empty, so nothing changed. */
export async function createFirstTenant(
  storage: Storage,
  config: First,
  now: number,
): Promise<FirstCredentials | null> {
  const key: MaybeShown = givenCredential(config.initApiKey, parseApiKey) ?? newApiKey(randomBytes)
  const token: MaybeShown =
    givenCredential(config.initOperatorToken, parseOperatorToken) ?? newOperatorToken(randomBytes)
  const [workspaceId, environmentId] = [uuidv7(now, randomBytes), uuidv7(now, randomBytes)]
  const email = config.initOperatorEmail
  // The owner of a supplied token can invite people. A link that creates an owner would then only be a risk in the log.
  const link = email === null && config.initOperatorToken !== null ? null : newInvitation(randomBytes)
  const outcome = await storage.initialise({
    workspace: { id: workspaceId, name: config.initWorkspace, createdAt: now },
    environment: { id: environmentId, workspaceId, name: config.initEnvironment, createdAt: now },
    apiKey: fullKey(key, 'first key', environmentId, now),
    operatorToken: ownerToken(token, 'first token', now),
    ...(link === null
      ? {}
      : {
          invitation: {
            id: link.id,
            hash: link.hash,
            email: email ?? ANY_EMAIL,
            workspaceId: null,
            role: 'owner',
            invitedBy: 'first start',
            inviter: null,
            createdAt: now,
            expiresAt: now + LIMITS.invitationMs,
            endedAt: null,
          },
        }),
  })
  if (outcome === 'not_empty') return null
  return {
    workspace: config.initWorkspace,
    environment: config.initEnvironment,
    apiKey: key.text ?? null,
    operatorToken: token.text ?? null,
    invitation: link === null ? null : { email, text: link.text },
  }
}

/**
 * `url`: null if the server could not listen. `base`: the public address. Without a console, the link cannot be opened
 * yet.
 */
export function firstTenantText(
  { workspace, environment, apiKey, operatorToken, invitation }: FirstCredentials,
  url: string | null,
  base: string | null = url,
  console: 'served' | 'off' | 'not built' = 'served',
): string {
  const lines = [`Created a new store with the workspace "${workspace}" and the environment "${environment}".`]
  if (url === null) lines.push('The server could not start, but the store stays: the next start uses it.')
  if (apiKey !== null || operatorToken !== null) lines.push('Save these credentials. They are not shown again:')
  if (apiKey !== null) lines.push(`  API key         ${apiKey}`)
  if (operatorToken !== null) lines.push(`  Operator token  ${operatorToken}`)
  if (apiKey !== null && url !== null) {
    lines.push('Record a first event, and look at it:', `  ${curlLine(url, apiKey)}`)
    const token = operatorToken === null ? '' : `TACHO_OPERATOR_TOKEN=${operatorToken} `
    lines.push(`  ${token}${commandAt(ROOT)} runs show hello --url ${url}`)
  }
  // Printed last and set apart, because most people continue with it.
  if (invitation !== null) {
    const { email, text } = invitation
    lines.push('')
    if (console !== 'served')
      lines.push(`The next link needs the console, which is ${WITHOUT_CONSOLE[console]}, and start again.`)
    const open = 'To create the first account, open this link in a browser (works once, expires in a week):'
    lines.push(email === null ? open : `Invitation for ${email}, works once, expires in a week:`)
    lines.push(`  ${invitationLink(base ?? 'http://<address of the server>', text)}`)
  }
  return `${lines.join('\n')}\n`
}

const WITHOUT_CONSOLE = {
  off: 'off: remove TACHO_CONSOLE or --console',
  'not built': 'not built: run `npm run build`',
}

/**
 * Returns the text to print. If a file is set, the credentials are written there instead: output often ends in a
 * journal that many people read.
 */
export function keepCredentials(
  { initCredentialsFile: file }: Pick<Config, 'initCredentialsFile'>,
  text: string,
): string {
  if (file === null) return text
  try {
    // Refuses an existing file, because it may be a link that another user created.
    writeFileSync(file, text, { mode: 0o600, flag: 'wx' })
    return `Created a new store. Its first credentials are in ${file}: save them elsewhere, and delete the file.\n`
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const recover = 'tacho recover --operator-token, and --api-key-for <workspace/environment>'
    return `Created a new store. Its first credentials could not be written to ${file} (${code}). Create others: ${recover}.\n`
  }
}

/**
 * The command as a person types it: in a clone, in a folder where the package is installed, or from the cache of npx,
 * where no name leads to it.
 */
export function commandAt(root: string, cwd = process.cwd()): string {
  if (existsSync(path.join(root, 'packages/cli/src'))) return './tacho'
  if (path.dirname(root) === path.join(cwd, 'node_modules')) return './node_modules/.bin/tacho'
  return root.includes(`${path.sep}_npx${path.sep}`) ? `'${path.join(root, 'packages/cli/bin/tacho')}'` : 'tacho'
}

function curlLine(url: string, apiKey: string): string {
  const event = `{"eventId":"hello-'$(date +%s)'","clientId":"curl","runId":"hello","agentName":"curl",\
"eventType":"USER_INPUT","label":"Hello","timestamp":'$(date +%s)000'}`
  const headers = `-H 'Content-Type: application/json' -H 'X-API-Key: ${apiKey}'`
  return `curl -sS ${url}${PUBLIC_PREFIX}${ROUTES.recordEvents.path} ${headers} -d '[${event}]'`
}

function givenCredential(text: string | null, parse: (text: string) => Credential | null): Credential | null {
  return text === null ? null : parse(text)
}

const unused = (createdAt: number) => ({
  createdAt,
  expiresAt: null,
  revokedAt: null,
  replacedBy: null,
  lastUsedAt: null,
  allowedAddresses: null,
  creatorKind: null,
  creatorId: null,
})

export function ownerToken({ id, hash }: Credential, name: string, now: number) {
  return { id, name, hash, workspaceId: null, role: 'owner', creatorName: null, ...unused(now) } as const
}

export function fullKey({ id, hash }: Credential, name: string, environmentId: string, now: number) {
  return { id, environmentId, name, hash, scopes: [...SCOPES], requestsPerSecond: null, ...unused(now) }
}
