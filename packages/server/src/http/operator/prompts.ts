import { randomUUID } from 'node:crypto'
import { LIMITS } from '@tacho/contract/limits.ts'
import { diffFields } from '../../domain/diff.ts'
import { toPrompt, toPromptResult, toPromptVersion, toPromptVersionRow } from '../../domain/prompt.ts'
import { isStorableText } from '../../domain/text.ts'
import { estimatorOf } from '../../prices/estimator.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import type { AuditEntry } from '../../storage/audit.ts'
import type { NewPromptVersionRow } from '../../storage/prompts.ts'
import { refuse } from '../reply-error.ts'
import { auditOf } from './audit.ts'
import { refuseField, checkTexts } from '../field.ts'
import { newerVersion } from './versions.ts'
import { listPage, byId, byNumber, NOTHING } from '../paging.ts'
import type { OperatorDeps } from './serve.ts'

const NO_PROMPT = refuse('not_found', 'The workspace does not have this prompt')
const NO_VERSION = refuse('not_found', 'The prompt does not have this version')

export function promptsRoutes(deps: OperatorDeps): void {
  const { serve, storage, cursors, now } = deps

  serve('listPrompts', ({ query, workspace: { id } }) => {
    const name = query.name ?? null
    if (name !== null && !isStorableText(name)) return NOTHING
    const withArchived = query.archived === 'true'
    return listPage(cursors, query, {
      of: ['prompts', id, name, withArchived],
      read: (page) => storage.listPrompts(id, name, page, withArchived),
      toItem: toPrompt,
      placeOf: byId,
    })
  })

  serve('createPrompt', async ({ body, request, workspace }) => {
    checkTexts({ name: body.name })
    checkVersion(body)
    const createdAt = now()
    const prompt = { id: uuidv7(createdAt), workspaceId: workspace.id, name: body.name, createdAt }
    const audit = auditOf(request, createdAt, 'prompt.create', target(prompt.id), { name: body.name })
    const outcome = await storage.createPrompt(prompt, newVersion(body, audit), [audit])
    if (outcome === 'no_workspace') return refuse('not_found', 'The workspace does not exist')
    if (outcome === 'name_taken') return refuse('conflict', 'The workspace already has a prompt with this name')
    return toPrompt(await find(workspace.id, prompt.id))
  })

  serve('readPrompt', async ({ params, workspace }) => toPrompt(await find(workspace.id, params.promptId)))

  serve('listPromptVersions', async ({ params, query, workspace }) => {
    const prompt = await find(workspace.id, params.promptId)
    return listPage(cursors, query, {
      of: ['prompt versions', prompt.id],
      read: (page) => storage.listPromptVersions(prompt.workspaceId, prompt.id, page),
      toItem: toPromptVersionRow,
      placeOf: byNumber,
    })
  })

  serve('createPromptVersion', async ({ params, body, request, workspace }) => {
    checkVersion(body)
    const id = params.promptId.toLowerCase()
    const audit = auditOf(request, now(), 'prompt.write_version', target(id))
    const version = newVersion(body, audit)
    const follows = body.follows === undefined ? null : Number(body.follows)
    const saved = await storage.createPromptVersion(workspace.id, id, version, follows, [audit])
    if (saved === null) return NO_PROMPT
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
    const found = await storage.findPrompt(workspaceId, promptId.toLowerCase())
    if (found === null) throw NO_PROMPT
    return found
  }

  async function findVersion(workspaceId: string, promptId: string, version: string) {
    const found = await storage.findPromptVersion(workspaceId, promptId.toLowerCase(), Number(version))
    if (found === null) throw NO_VERSION
    return found
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

function checkVersion({ content, note }: { content: string; note?: string | null }): void {
  checkTexts({ content, note })
  if (Buffer.byteLength(content) <= LIMITS.promptContentBytes) return
  throw refuseField('content', `must have at most ${LIMITS.promptContentBytes} bytes of UTF-8`)
}
