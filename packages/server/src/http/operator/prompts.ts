import { randomBytes, randomUUID } from 'node:crypto'
import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { diffFields } from '../../domain/diff.ts'
import { toPrompt, toPromptResult, toPromptVersion, toPromptVersionRow } from '../../domain/prompt.ts'
import { isStorableText, UNSTORABLE } from '../../domain/text.ts'
import { pricingOf } from '../../prices/pricing.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import type { AuditEntry } from '../../storage/audit.ts'
import type { PageById } from '../../storage/page.ts'
import type { NewPromptVersionRow, VersionPage } from '../../storage/prompts.ts'
import type { Deps } from '../deps.ts'
import { isRefusal, refuse, type Refusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf, workspaceOf } from './access.ts'
import { auditOf } from './audit.ts'
import { nameRefusal, refuseField, textsRefusal } from '../field.ts'
import { listById } from './list-by-id.ts'
import { listVersions, newerVersion } from './versions.ts'

const NO_PROMPT = refuse('not_found', 'The workspace does not have this prompt')
const NO_VERSION = refuse('not_found', 'The prompt does not have this version')

export function promptsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors, now } = deps

  serveRoute(app, OPERATOR_ROUTES.listPrompts, deps, ({ query, request }) => {
    const { id } = workspaceOf(request)
    const { name } = query
    // A text that no store can keep matches no prompt name.
    if (name !== undefined && !isStorableText(name)) return { items: [], nextCursor: null }
    const withArchived = query.archived === 'true'
    const walk = ['prompts', id, name ?? null, withArchived]
    const read = (page: PageById) => storage.listPrompts(id, name ?? null, page, withArchived)
    return listById(cursors, walk, query, read, toPrompt)
  })

  serveRoute(app, OPERATOR_ROUTES.createPrompt, deps, async ({ body, request }) => {
    const workspace = workspaceOf(request)
    const refusal = nameRefusal(body.name) ?? contentRefusal(body.content) ?? textsRefusal({ note: body.note })
    if (refusal) return refusal
    const createdAt = now()
    const prompt = { id: uuidv7(createdAt, randomBytes), workspaceId: workspace.id, name: body.name, createdAt }
    const audit = auditOf(request, createdAt, 'prompt.create', target(prompt.id), { name: body.name })
    const outcome = await storage.createPrompt(prompt, newVersion(body, audit), [audit])
    if (outcome === 'no_workspace') return refuse('not_found', 'The workspace does not exist')
    if (outcome === 'name_taken') return refuse('conflict', 'The workspace already has a prompt with this name')
    return reread(workspace.id, prompt.id)
  })

  serveRoute(app, OPERATOR_ROUTES.readPrompt, deps, ({ params, request }) =>
    reread(workspaceOf(request).id, params.promptId.toLowerCase()),
  )

  serveRoute(app, OPERATOR_ROUTES.listPromptVersions, deps, async ({ params, query, request }) => {
    const prompt = await storage.findPrompt(workspaceOf(request).id, params.promptId.toLowerCase())
    if (!prompt) return NO_PROMPT
    const read = (page: VersionPage) => storage.listPromptVersions(prompt.workspaceId, prompt.id, page)
    return listVersions(cursors, ['prompt versions', prompt.id], query, read, toPromptVersionRow)
  })

  serveRoute(app, OPERATOR_ROUTES.createPromptVersion, deps, async ({ params, body, request }) => {
    const refusal = contentRefusal(body.content) ?? textsRefusal({ note: body.note })
    if (refusal) return refusal
    const id = params.promptId.toLowerCase()
    const audit = auditOf(request, now(), 'prompt.write_version', target(id))
    const version = newVersion(body, audit)
    const follows = body.follows === undefined ? null : Number(body.follows)
    const saved = await storage.createPromptVersion(workspaceOf(request).id, id, version, follows, [audit])
    if (saved === null) return NO_PROMPT
    if (saved.outcome === 'conflict') return newerVersion(toPromptVersionRow(saved.version))
    return { ...toPromptVersionRow(saved.version), isNew: saved.outcome === 'created' }
  })

  serveRoute(app, OPERATOR_ROUTES.readPromptVersion, deps, async ({ params, request }) => {
    const version = await findVersion(request, params.promptId, params.version)
    return isRefusal(version) ? version : toPromptVersion(version)
  })

  serveRoute(app, OPERATOR_ROUTES.diffPromptVersions, deps, async ({ params, query, request }) => {
    const from = await findVersion(request, params.promptId, query.from)
    if (isRefusal(from)) return from
    const to = await findVersion(request, params.promptId, query.to)
    if (isRefusal(to)) return to
    return { ...query, fields: await diffFields({ content: from.content }, { content: to.content }) }
  })

  serveRoute(app, OPERATOR_ROUTES.readPromptResults, deps, async ({ params, request }) => {
    const { id: environmentId, workspaceId } = environmentOf(request)
    const prompt = await storage.findPrompt(workspaceId, params.promptId.toLowerCase())
    if (!prompt) return NO_PROMPT
    const newest = { limit: LIMITS.promptResultVersions, before: null }
    const { rows } = await storage.listPromptVersions(workspaceId, prompt.id, newest)
    const ids = rows.map(({ id }) => id)
    const results = await storage.readVersionResults(environmentId, ids, LIMITS.promptResultRuns)
    const calls = results.flatMap((result) => result?.uncosted ?? [])
    const pricing = await pricingOf(deps, workspaceId, calls)
    const items = rows.map((version, index) => toPromptResult(version, results[index] ?? null, pricing))
    return { promptId: prompt.id, name: prompt.name, items }
  })

  async function reread(workspaceId: string, promptId: string) {
    const prompt = await storage.findPrompt(workspaceId, promptId)
    return prompt ? toPrompt(prompt) : NO_PROMPT
  }

  async function findVersion(request: FastifyRequest, promptId: string, version: string) {
    const workspace = workspaceOf(request)
    return (await storage.findPromptVersion(workspace.id, promptId.toLowerCase(), Number(version))) ?? NO_VERSION
  }
}

function target(id: string) {
  return { kind: 'prompt', id }
}

function newVersion(
  { content, note }: { content: string; note?: string | null },
  { actorName, at }: AuditEntry,
): NewPromptVersionRow {
  return { id: randomUUID(), content, author: actorName, note: note ?? null, createdAt: at }
}

function contentRefusal(content: string): Refusal | null {
  if (!isStorableText(content)) return refuseField('content', UNSTORABLE)
  if (Buffer.byteLength(content) <= LIMITS.promptContentBytes) return null
  return refuseField('content', `must have at most ${LIMITS.promptContentBytes} bytes of UTF-8`)
}
