/** Read shapes of prompts. */
import type { Prompt, PromptVersion, PromptVersionRow as Row } from '@tacho/contract/operator/prompt.ts'
import type { PromptRow, PromptVersionInfo, PromptVersionRow } from '../storage/prompts.ts'
import { isoTime } from './run.ts'

export function toPrompt({ id, workspaceId, name, createdAt, newest }: PromptRow): Prompt {
  return { promptId: id, workspaceId, name, createdAt: isoTime(createdAt), newest: toPromptVersionRow(newest) }
}

export function toPromptVersionRow(row: PromptVersionInfo): Row {
  const { id, promptId, number, contentHash, contentBytes, author, note, createdAt } = row
  const written = { version: String(number), author, note, createdAt: isoTime(createdAt) }
  return { promptId, versionId: id, ...written, contentBytes, contentHash }
}

export function toPromptVersion(row: PromptVersionRow): PromptVersion {
  return { ...toPromptVersionRow(row), content: row.content }
}
