import { LIMITS } from '@tacho/contract/limits.ts'
import type { Deployment, DeploymentChange, PublicationResult } from '@tacho/contract/operator/deployment.ts'
import type { FastifyRequest } from 'fastify'
import { isoTime } from '../../storage/iso-time.ts'
import { isStorableText } from '../../domain/text.ts'
import type { Change, DeploymentChangeRow, DeploymentRow, Intent, Item, Published } from '../../storage/deployments.ts'
import { isRefusal, refuse, type Refusal } from '../reply-error.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'
import { refuseField, checkTexts } from '../field.ts'
import { listPage, NOTHING } from '../paging.ts'
import type { OperatorDeps } from './serve.ts'

export function deploymentsRoutes({ serve, storage, cursors, configurations, now }: OperatorDeps): void {
  serve('listDeployments', async ({ query, environment: { id } }) => {
    // Read first: a publication in between then shows in the rows or not at all.
    const { revision } = await storage.readConfiguration(id, null)
    const page = await listPage(cursors, query, {
      of: ['deployments', id],
      read: (place) => storage.listDeployments(id, place),
      toItem: toDeployment,
      placeOf: ({ kind, id: of }: DeploymentRow) => ({ kind, id: of }),
    })
    return { revision, ...page }
  })

  serve('deploy', ({ body: { items, note }, request }) => {
    const versions = items.map(({ kind, id, version }) => ({
      ...toItem({ kind, id }),
      version: version === null ? null : Number(version),
    }))
    return publish(request, { action: 'DEPLOY', items: versions }, note)
  })

  serve('promote', ({ body: { from, items, note }, request, environment }) => {
    const sourceEnvironmentId = from.toLowerCase()
    if (sourceEnvironmentId === environment.id) return refuseField('from', 'must be another environment')
    const chosen = items?.map(toItem) ?? null
    return publish(request, { action: 'PROMOTE', sourceEnvironmentId, items: chosen }, note)
  })

  serve('rollBack', ({ body: { items, note }, request }) =>
    publish(request, { action: 'ROLL_BACK', items: items.map(toItem) }, note),
  )

  serve('listDeploymentChanges', async ({ query, environment: { id: environmentId } }) => {
    const { kind, id } = query
    if (id !== undefined && kind === undefined) return refuseField('id', 'requires kind')
    if (id !== undefined && !isStorableText(id)) return NOTHING
    const filter = kind !== undefined && id !== undefined ? toItem({ kind, id }) : { kind }
    return listPage(cursors, query, {
      of: ['deployment changes', environmentId, filter],
      read: (page) => storage.listDeploymentChanges(environmentId, filter, page),
      toItem: toDeploymentChange,
      placeOf: (row: DeploymentChangeRow) => ({ publication: row.publication, kind: row.kind, id: row.id }),
    })
  })

  async function publish(
    request: FastifyRequest,
    intent: Intent,
    note: string | null | undefined,
  ): Promise<PublicationResult | Refusal> {
    checkItems(intent)
    checkTexts({ note })
    const environment = environmentOf(request)
    const action = `configuration.${intent.action.toLowerCase()}`
    const target = { kind: 'environment', id: environment.id }
    const source = intent.action === 'PROMOTE' ? intent.sourceEnvironmentId : undefined
    const audit = auditOf(request, now(), action, target)
    const by = { by: audit.actorName, now: audit.at, note: note ?? null }
    const published = await storage.publish({ environmentId: environment.id, intent, ...by }, [audit])
    if (published.outcome === 'published') configurations.published(environment.id)
    const result = resultOf(published)
    if (isRefusal(result)) {
      const detail = { reason: result.detail, source }
      await storage.appendAudit([auditOf(request, audit.at, `${action}.refused`, target, detail)])
    }
    return result
  }
}

/** Some clients write UUIDs in capitals. */
function toItem({ kind, id }: Item): Item {
  return { kind, id: kind === 'prompt' ? id.toLowerCase() : id }
}

function checkItems({ items }: Intent): void {
  const seen = new Set<string>()
  for (const [index, { kind, id }] of (items ?? []).entries()) {
    checkTexts({ [`items/${index}/id`]: id })
    if (seen.has(`${kind} ${id}`)) throw refuseField(`items/${index}`, 'must not appear twice')
    seen.add(`${kind} ${id}`)
  }
}

function resultOf(published: Published): PublicationResult | Refusal {
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
      const what = `${published.item.kind} ${published.item.id}`
      return refuse('not_found', `The workspace has no ${what}${version === null ? '' : ` with version ${version}`}`)
    }
    case 'archived':
      return refuse('conflict', `${itemName(published.item)} is archived; restore it first`)
    case 'not_in_force':
      return refuse('not_found', `${itemName(published.item)} is not deployed in the environment to promote from`)
    case 'no_earlier':
      return refuse('conflict', `There is no earlier version of ${itemName(published.item)} in this environment`)
    case 'too_large':
      return refuse('conflict', TOO_LARGE[published.limit])
  }
}

const TOO_LARGE = {
  prompts: `An environment can have at most ${LIMITS.deployedPrompts} deployed prompts`,
  policies: `An environment can have at most ${LIMITS.deployedPolicies} deployed policies`,
  bytes: `The deployed prompts of an environment can have at most ${LIMITS.deployedPromptBytes} bytes in total`,
}

function itemName({ kind, id }: Item): string {
  return `${kind} ${id}`
}

function toChange({ kind, id, name, from, to }: Change): PublicationResult['changes'][number] {
  return { kind, id, name, from: toVersion(from), to: toVersion(to) }
}

function toVersion(number: number | null): string | null {
  return number === null ? null : String(number)
}

function toDeployment({ version, earlierVersion, deployedAt, importedAt, ...row }: DeploymentRow): Deployment {
  const times = { deployedAt: isoTime(deployedAt), importedAt: isoTime(importedAt) }
  return { ...row, version: String(version), earlierVersion: toVersion(earlierVersion), ...times }
}

function toDeploymentChange(row: DeploymentChangeRow): DeploymentChange {
  const times = { at: isoTime(row.at), importedAt: isoTime(row.importedAt) }
  return { ...row, from: toVersion(row.from), to: toVersion(row.to), ...times }
}
