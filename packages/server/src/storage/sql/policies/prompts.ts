import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { read, write, selectList, type Sql } from '../engine/sql.ts'
import type { AuditEntry } from '../../people/operators.ts'
import {
  measureContent,
  type NewPromptRow,
  type NewPromptVersionRow,
  type PromptRow,
  type PromptVersionInfo,
  type PromptVersionRow,
  type SavedVersion,
  type VersionPage,
} from '../../policies/policies.ts'
import { mapPage, type Page, type PageById } from '../../engine/page.ts'
import { insertAudit } from '../people/audit.ts'
import type { TenantChange } from '../../tenants/tenants.ts'
import { insertRows } from '../engine/rows.ts'
import { nameOf, takeSum } from '../engine/row-sums.ts'
import { findWorkspace } from '../tenants/workspaces.ts'
import { deployedIn } from './deployments.ts'
import { addVersion } from './policies.ts'

export const promptsActs = {
  ...read({ listPrompts, findPrompt, listPromptVersions, findPromptVersion }),
  ...write({ createPrompt, createPromptVersion, changePrompt }),
}

const INFO = selectList('id prompt_id number content_hash content_bytes author note created_at imported_at', 'v.')

/** Also selects the columns that reveal damage, which `toInfo` removes. */
const CHECKED = `${INFO}, v.row_sum AS "rowSum", v.content`
const LISTED = `${INFO}, v.row_sum AS "rowSum",
  CASE WHEN v.content_bytes <= ${LIMITS.promptListedBytes} THEN v.content END AS content`

const selectPrompt = (
  version: string,
) => `SELECT p.workspace_id AS "workspaceId", p.name, p.created_at AS "promptCreatedAt",
  p.archived_at AS "archivedAt", ${version}
  FROM prompts p JOIN prompt_versions v ON v.workspace_id = p.workspace_id AND v.prompt_id = p.id
    AND v.number = p.newest`

type ReadInfo = PromptVersionInfo & { content: string | null }

type JoinedPrompt = ReadInfo & {
  workspaceId: string
  name: string
  promptCreatedAt: number
  archivedAt: number | null
}

function toInfo(sql: Sql, workspaceId: string, row: ReadInfo): PromptVersionInfo {
  const isIntact = isPromptIntact(sql, row, workspaceId)
  const { content: _, ...info } = row
  return isIntact ? info : { ...info, damaged: true }
}

function toPrompt(sql: Sql, { workspaceId, name, promptCreatedAt, archivedAt, ...row }: JoinedPrompt): PromptRow {
  const newest = toInfo(sql, workspaceId, row)
  return { id: newest.promptId, workspaceId, name, createdAt: promptCreatedAt, archivedAt, newest }
}

async function createPrompt(
  sql: Sql,
  prompt: NewPromptRow,
  first: NewPromptVersionRow,
  audit: AuditEntry[],
): Promise<'created' | 'name_taken' | 'no_workspace'> {
  const { id, workspaceId, name, createdAt } = prompt
  if ((await findWorkspace(sql, workspaceId)) === null) return 'no_workspace'
  const unlessTaken = 'ON CONFLICT (workspace_id, name) DO NOTHING'
  const row = { id, workspaceId, name, createdAt, newest: 1 }
  if ((await insertRows(sql, 'prompts', [row], unlessTaken)) === 0) return 'name_taken'
  await insertVersion(sql, workspaceId, id, 1, first)
  await insertAudit(sql, audit)
  return 'created'
}

function createPromptVersion(
  sql: Sql,
  workspaceId: string,
  promptId: string,
  version: NewPromptVersionRow,
  follows: number | null,
  audit: AuditEntry[],
): Promise<SavedVersion<PromptVersionInfo> | null> {
  const { contentHash } = measureContent(version.content)
  return addVersion(sql, 'prompts', { workspaceId, id: promptId, follows, audit }, findPrompt, {
    isSame: (newest) => !newest.damaged && newest.contentHash === contentHash,
    insert: (number) => insertVersion(sql, workspaceId, promptId, number, version),
  })
}

async function insertVersion(
  sql: Sql,
  workspaceId: string,
  promptId: string,
  number: number,
  { id, content, author, note, createdAt }: NewPromptVersionRow,
): Promise<PromptVersionInfo> {
  const info = { id, promptId, number, ...measureContent(content), author, note, createdAt, importedAt: null }
  await insertRows(sql, 'prompt_versions', [{ workspaceId, ...info, content }])
  return info
}

async function listPrompts(
  sql: Sql,
  workspaceId: string,
  name: string | null,
  { limit, after }: PageById,
  withArchived = false,
): Promise<Page<PromptRow>> {
  const named = name === null ? '' : ' AND p.name = :name'
  const used = withArchived ? '' : ' AND p.archived_at IS NULL'
  const text = `${selectPrompt(LISTED)} WHERE p.workspace_id = :workspaceId AND p.id > :after${named}${used} ORDER BY p.id`
  const params = { workspaceId, after: after ?? '', name }
  return mapPage(await sql.page<JoinedPrompt>(text, params, limit), (row) => toPrompt(sql, row))
}

async function findPrompt(sql: Sql, workspaceId: string, promptId: string): Promise<PromptRow | null> {
  const text = `${selectPrompt(CHECKED)} WHERE p.workspace_id = :workspaceId AND p.id = :promptId`
  const row = await sql.get<JoinedPrompt>(text, { workspaceId, promptId })
  return row && toPrompt(sql, row)
}

async function listPromptVersions(sql: Sql, workspaceId: string, promptId: string, { limit, after }: VersionPage) {
  const earlier = after === null ? '' : ' AND v.number < :after'
  const text = `SELECT ${LISTED} FROM prompt_versions v
    WHERE v.workspace_id = :workspaceId AND v.prompt_id = :promptId${earlier} ORDER BY v.number DESC`
  const page = await sql.page<ReadInfo>(text, { workspaceId, promptId, after }, limit)
  return mapPage(page, (row) => toInfo(sql, workspaceId, row))
}

async function findPromptVersion(sql: Sql, workspaceId: string, promptId: string, number: number) {
  const text = `SELECT ${CHECKED} FROM prompt_versions v
    WHERE v.workspace_id = :workspaceId AND v.prompt_id = :promptId AND v.number = :number`
  const row = await sql.get<PromptVersionRow>(text, { workspaceId, promptId, number })
  if (row === null || isPromptIntact(sql, row, workspaceId)) return row
  return { ...row, content: '', damaged: true as const }
}

/** Whether a version is intact. Its row has a checksum, and its content, if it was read, a separate hash. */
export function isPromptIntact(
  sql: Sql,
  row: Pick<PromptVersionRow, 'contentHash' | 'promptId' | 'number'> & { content: string | null },
  workspaceId: string,
): boolean {
  const hasSum = takeSum(sql, 'prompt_versions', row, workspaceId)
  if (!hasSum || row.content === null || measureContent(row.content).contentHash === row.contentHash) return hasSum
  const name = `content of ${nameOf('prompt_versions', row)}`
  sql.onDamage({ table: 'prompt_versions', name, tenantId: workspaceId })
  return false
}

async function changePrompt(
  sql: Sql,
  workspaceId: string,
  promptId: string,
  change: TenantChange,
  audit: AuditEntry[],
): Promise<PromptRow | 'name_taken' | { deployedIn: string } | null> {
  // The lock makes renames in a workspace run one after another.
  await sql.run('UPDATE workspaces SET name = name WHERE id = :workspaceId', { workspaceId })
  const prompt = await findPrompt(sql, workspaceId, promptId)
  if (prompt === null) return null
  const isSame =
    'name' in change ? change.name === prompt.name : (change.archivedAt === null) === (prompt.archivedAt === null)
  if (isSame) return prompt
  const deployed = await deployedIn(sql, workspaceId, 'prompt', promptId)
  if (deployed !== null) return deployed
  if ('name' in change) {
    const named = 'SELECT id FROM prompts WHERE workspace_id = :workspaceId AND name = :name'
    if ((await sql.get(named, { workspaceId, name: change.name })) !== null) return 'name_taken'
  }
  const [column, value] = 'name' in change ? ['name', change.name] : ['archived_at', change.archivedAt]
  const text = `UPDATE prompts SET ${column} = :value WHERE workspace_id = :workspaceId AND id = :promptId`
  await sql.run(text, { value, workspaceId, promptId })
  await insertAudit(sql, audit)
  return { ...prompt, ...change }
}
