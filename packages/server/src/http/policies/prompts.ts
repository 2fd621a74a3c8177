import { randomUUID } from 'node:crypto'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { diffFields } from '../../domain/policies/diff.ts'
import { toPrompt, toPromptResult, toPromptVersion, toPromptVersionRow } from '../../domain/policies/prompt.ts'
import { isStorableText } from '../../domain/web/text.ts'
import { estimatorOf } from '../../prices/price-table.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import type { NewPromptVersionRow } from '../../storage/policies/policies.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import { refuseField } from '../web/field.ts'
import { intactOr, newerVersion } from './policies.ts'
import { listById, listPage, byNumber, NOTHING } from '../web/paging.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

export const NO_PROMPT = refuse('not_found', 'The workspace does not have this prompt')
const NO_VERSION = refuse('not_found', 'The prompt does not have this version')

export function promptsRoutes(deps: OperatorDeps): void {
  const { serve, storage } = deps

  serve('listPrompts', ({ query, workspace: { id }, paging }) => {
    const name = query.name ?? null
    if (name !== null && !isStorableText(name)) return NOTHING
    return listById(paging, (page) => storage.listPrompts(id, name, page, query.archived === 'true'), toPrompt)
  })

  serve('createPrompt', async ({ body, workspace, actor, at, audit }) => {
    const { name } = body
    const prompt = { id: uuidv7(at), workspaceId: workspace.id, name, createdAt: at }
    const version = newVersion(body, actor.name, at)
    const outcome = await storage.createPrompt(prompt, version, audit(prompt.id, { name }))
    if (outcome === 'no_workspace') return refuse('not_found', 'The workspace does not exist')
    if (outcome === 'name_taken') return refuse('conflict', 'The workspace already has a prompt with this name')
    return toPrompt(await find(workspace.id, prompt.id))
  })

  serve('readPrompt', async ({ params, workspace }) => toPrompt(await find(workspace.id, params.promptId)))

  serve('listPromptVersions', async ({ params, workspace, paging }) => {
    const { workspaceId, id } = await find(workspace.id, params.promptId)
    return listPage(paging, (page) => storage.listPromptVersions(workspaceId, id, page), toPromptVersionRow, byNumber)
  })

  serve('createPromptVersion', async ({ params: { promptId: id }, body, workspace, actor, at, audit }) => {
    const version = newVersion(body, actor.name, at)
    const follows = body.follows === undefined ? null : Number(body.follows)
    const saved = foundOr(await storage.createPromptVersion(workspace.id, id, version, follows, audit(id)), NO_PROMPT)
    if (saved.outcome === 'conflict') return newerVersion(toPromptVersionRow(saved.version))
    return { ...toPromptVersionRow(saved.version), isNew: saved.outcome === 'created' }
  })

  serve('readPromptVersion', async ({ params, workspace }) => {
    return toPromptVersion(await findVersion(workspace.id, params.promptId, params.version))
  })

  serve('diffPromptVersions', async ({ params, query, workspace }) => {
    const from = await findVersion(workspace.id, params.promptId, query.from)
    const to = await findVersion(workspace.id, params.promptId, query.to)
    return { ...query, fields: await diffFields({ content: from.content }, { content: to.content }) }
  })

  serve('readPromptResults', async ({ params, environment: { id: environmentId, workspaceId } }) => {
    const prompt = await find(workspaceId, params.promptId)
    const newest = { limit: LIMITS.promptResultVersions, after: null }
    const { rows } = await storage.listPromptVersions(workspaceId, prompt.id, newest)
    const ids = rows.map(({ id }) => id)
    const results = await storage.readVersionResults(environmentId, ids, LIMITS.promptResultRuns)
    const calls = results.flatMap((result) => result?.uncosted ?? [])
    const estimator = await estimatorOf(deps, workspaceId, calls)
    const items = rows.map((version, index) => toPromptResult(version, results[index] ?? null, estimator))
    return { promptId: prompt.id, name: prompt.name, items }
  })

  async function find(workspaceId: string, promptId: string) {
    return foundOr(await storage.findPrompt(workspaceId, promptId), NO_PROMPT)
  }

  async function findVersion(workspaceId: string, promptId: string, version: string) {
    return intactOr(await storage.findPromptVersion(workspaceId, promptId, Number(version)), NO_VERSION)
  }
}

function newVersion(
  { content, note = null }: { content: string; note?: string | null },
  author: string,
  createdAt: number,
): NewPromptVersionRow {
  if (Buffer.byteLength(content) > LIMITS.promptContentBytes) {
    throw refuseField('content', `must have at most ${LIMITS.promptContentBytes} bytes of UTF-8`)
  }
  return { id: randomUUID(), content, author, note, createdAt }
}
