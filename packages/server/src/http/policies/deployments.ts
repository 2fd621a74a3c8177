import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type {
  Deployment,
  DeploymentChange,
  PublicationResult,
  ConfigurationClient,
} from '@tacho/contract/policies/deployment.ts'
import { CLIENT_STANDINGS } from '@tacho/contract/engine/words.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { isUuid } from '../../storage/engine/uuid.ts'
import { isStorableText } from '../../domain/web/text.ts'
import type {
  Change,
  DeploymentChangeRow,
  DeploymentRow,
  Intent,
  Item,
  Published,
  ConfigurationClientRow,
} from '../../storage/policies/deployments.ts'
import { isRefusal, refuse, type Refusal } from '../web/reply-error.ts'
import { optionalTimeOf, refuseField } from '../web/field.ts'
import { listPage, NOTHING, readPage } from '../web/paging.ts'
import type { OperatorDeps, OperatorRequestOf } from '../web/operator-serve.ts'

export function deploymentsRoutes({ serve, storage, configurations }: OperatorDeps): void {
  serve('listDeployments', async ({ environment: { id }, paging }) => {
    // Read this first: a publication in between is then shown in the rows, or not at all.
    const inForce = await storage.checkConfiguration(id)
    const placeOf = (row: DeploymentRow) => ({ kind: row.kind, id: row.id })
    const page = await listPage(paging, (asked) => storage.listDeployments(id, asked), toDeployment, placeOf)
    return { ...inForce, ...page }
  })

  serve('deploy', ({ body: { items, note }, ...asked }) => {
    const versions = items.map(({ kind, id, version, share, replaces }, index) => {
      if (share !== undefined && (kind === 'policy' || version === null)) {
        throw refuseField(`items/${index}/share`, 'is for a version of a prompt')
      }
      return { ...toItem({ kind, id }), version: toNumber(version), share, replaces: toSeen(replaces) }
    })
    return publish(asked, { action: 'DEPLOY', items: versions }, note)
  })

  serve('promote', ({ body: { from, items, note }, ...asked }) => {
    const sourceEnvironmentId = from.toLowerCase()
    if (sourceEnvironmentId === asked.environment.id) return refuseField('from', 'must be another environment')
    const chosen = items?.map(toItem) ?? null
    return publish(asked, { action: 'PROMOTE', sourceEnvironmentId, items: chosen }, note)
  })

  serve('rollBack', ({ body: { items, note }, ...asked }) => {
    const seen = items.map(({ replaces, restores, ...item }) => ({
      ...toItem(item),
      replaces: toSeen(replaces),
      restores: restores === undefined ? undefined : Number(restores),
    }))
    return publish(asked, { action: 'ROLL_BACK', items: seen }, note)
  })

  serve('listDeploymentChanges', async ({ query: { kind, id, ...query }, environment, paging }) => {
    if (id !== undefined && kind === undefined) return refuseField('id', 'requires kind')
    if (id !== undefined && !isStorableText(id)) return NOTHING
    const times = { from: optionalTimeOf('from', query.from), to: optionalTimeOf('to', query.to) }
    const item = kind !== undefined && id !== undefined ? toItem({ kind, id }) : { kind }
    return listPage(
      paging,
      (page) => storage.listDeploymentChanges(environment.id, { ...item, ...times }, page),
      toDeploymentChange,
      (row: DeploymentChangeRow) => ({ publication: row.publication, kind: row.kind, id: row.id }),
    )
  })

  async function publish(
    { environment: { id: environmentId, workspaceId }, actor, at, audit, auditRefused }: Asked,
    intent: Intent,
    note: string | null = null,
  ): Promise<PublicationResult | Refusal> {
    checkItems(intent)
    const publication = { environmentId, intent, by: actor.name, now: at, note }
    const published = await storage.publish(publication, audit(environmentId))
    if (published.outcome === 'published') configurations.published(environmentId)
    const result = resultOf(published, 'item' in published ? await itemName(workspaceId, published.item) : '')
    if (isRefusal(result)) {
      const source = intent.action === 'PROMOTE' ? intent.sourceEnvironmentId : undefined
      await storage.appendAudit(auditRefused(environmentId, { reason: result.detail, source }))
    }
    return result
  }

  /** Shows a prompt by its name, if the workspace has it: people do not know its id. */
  async function itemName(workspaceId: string, { kind, id }: Item): Promise<string> {
    const prompt = kind === 'prompt' && isUuid(id) ? await storage.findPrompt(workspaceId, id) : null
    return `${kind} ${prompt?.name ?? id}`
  }
}

type Asked = Pick<OperatorRequestOf<'deploy'>, 'environment' | 'actor' | 'at' | 'audit' | 'auditRefused'>

/** Some clients write UUIDs in capitals. */
function toItem({ kind, id }: Item): Item {
  return { kind, id: kind === 'prompt' ? id.toLowerCase() : id }
}

const toNumber = (version: string | null): number | null => (version === null ? null : Number(version))

const toSeen = (version: string | null | undefined) => (version === undefined ? undefined : toNumber(version))

function checkItems({ items }: Intent): void {
  const seen = new Set<string>()
  for (const [index, { kind, id }] of (items ?? []).entries()) {
    if (seen.has(`${kind} ${id}`)) throw refuseField(`items/${index}`, 'must not appear twice')
    seen.add(`${kind} ${id}`)
  }
}

/** @param itemName name of the item in the outcome */
function resultOf(published: Published, itemName: string): PublicationResult | Refusal {
  switch (published.outcome) {
    case 'published':
      return { ...published, changes: published.changes.map(toChange) } satisfies PublicationResult & object
    case 'unchanged':
      return { revision: published.revision, publication: null, changes: [] }
    case 'no_environment':
      return refuse('not_found', 'The environment does not exist')
    case 'no_source_environment':
      return refuse('not_found', 'The environment to promote from does not exist in the workspace')
    case 'no_item': {
      const { version } = published.item
      return refuse(
        'not_found',
        `The workspace has no ${itemName}${version === null ? '' : ` with version ${version}`}`,
      )
    }
    case 'archived':
      return refuse('conflict', `The ${itemName} is archived; restore it first`)
    case 'not_in_force':
      return refuse('not_found', `The ${itemName} is not deployed in the environment to promote from`)
    case 'no_earlier':
      return refuse('conflict', `There is no earlier version of the ${itemName} in this environment`)
    case 'overtaken': {
      const { inForce, seen } = published
      return refuse(
        'conflict',
        `Expected ${versionText(seen)} of the ${itemName} in force, but ${versionText(inForce)} is. Nothing was changed`,
      )
    }
    case 'other_earlier': {
      const { restores, seen } = published
      return refuse(
        'conflict',
        `Expected a rollback of the ${itemName} to restore ${versionText(seen)}, but it would restore ${versionText(restores)}. Nothing was changed`,
      )
    }
    case 'no_share':
      return refuse('conflict', `The ${itemName} ${NO_SHARE[published.why]}`)
    case 'too_large':
      return refuse('conflict', TOO_LARGE[published.limit])
  }
}

const versionText = (version: number | null): string => (version === null ? 'no version' : `version ${version}`)

const NO_SHARE = {
  no_other: 'has no version in force for the other sessions; deploy one first',
  in_force: 'has this version in force already, for all sessions',
}

const TOO_LARGE = {
  prompts: `An environment can have at most ${LIMITS.deployedPrompts} deployed prompts`,
  policies: `An environment can have at most ${LIMITS.deployedPolicies} deployed policies`,
  shares: `An environment can have at most ${LIMITS.promptShares} prompts with a share`,
  bytes: `The deployed prompts of an environment can have at most ${LIMITS.deployedPromptBytes} bytes in total`,
}

function toChange({ kind, id, name, from, to, share }: Change): PublicationResult['changes'][number] {
  return { kind, id, name, from: toVersion(from), to: toVersion(to), share: share && toShare(share) }
}

const toShare = ({ version, percent }: { version: number; percent: number }) => ({ version: String(version), percent })

function toVersion(number: number | null): string | null {
  return number === null ? null : String(number)
}

function toDeployment({ version, earlierVersion, share, deployedAt, importedAt, ...row }: DeploymentRow): Deployment {
  const times = { deployedAt: isoTime(deployedAt), importedAt: isoTime(importedAt) }
  return {
    ...row,
    version: String(version),
    earlierVersion: toVersion(earlierVersion),
    share: share && {
      ...toShare(share),
      startedBy: share.startedBy,
      startedAt: isoTime(share.startedAt),
      ...(share.damaged && { damaged: true as const }),
    },
    ...times,
  }
}

function toDeploymentChange({ shareVersion, sharePercent, ...row }: DeploymentChangeRow): DeploymentChange {
  const times = { at: isoTime(row.at), importedAt: isoTime(row.importedAt) }
  const share = shareVersion === null ? null : toShare({ version: shareVersion, percent: sharePercent ?? 0 })
  return { ...row, from: toVersion(row.from), to: toVersion(row.to), share, ...times }
}

export function configurationClientsRoutes({ serve, storage }: OperatorDeps): void {
  serve('listConfigurationClients', async ({ query: { standing }, environment: { id }, paging }) => {
    const { revision, counts, rows, nextCursor } = await readPage(
      paging,
      (page) => storage.listConfigurationClients(id, standing, page),
      ({ identifiedBy, clientId }: ConfigurationClientRow) => ({ identifiedBy, clientId }),
    )
    const [current = 0, updating = 0, behind = 0, silent = 0] = CLIENT_STANDINGS.map(
      (one) => counts.find((row) => row.standing === one)?.clients,
    )
    return { revision, counts: { current, updating, behind, silent }, items: rows.map(toClient), nextCursor }
  })
}

function toClient({ seenAt, ...row }: ConfigurationClientRow): ConfigurationClient {
  return { ...row, lastSeenAt: isoTime(seenAt) }
}
