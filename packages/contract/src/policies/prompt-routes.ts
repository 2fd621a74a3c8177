import { LIMITS } from '../engine/limits.ts'
import { CreationHeaders } from '../web/idempotency.ts'
import {
  NewPrompt,
  NewPromptVersion,
  Prompt,
  PromptPage,
  PromptParams,
  PromptResults,
  PromptResultsParams,
  PromptsQuery,
  PromptVersion,
  PromptVersionPage,
  PromptVersionParams,
  SavedPromptVersion,
} from './prompt.ts'
import { DiffQuery, VersionDiff } from './version.ts'
import { ListQuery, WorkspaceParams } from '../tenants/workspace.ts'
import type { OperatorRoute } from '../web/access.ts'

const read = { tag: 'Prompts', scopes: [], access: 'viewer', method: 'GET', status: 200 } as const
const write = {
  tag: 'Prompts',
  scopes: [],
  access: 'admin',
  method: 'POST',
  headers: CreationHeaders,
  status: 201,
  bodyBytes: LIMITS.promptBodyBytes,
} as const

export const promptRoutes = {
  listPrompts: {
    ...read,
    path: '/workspaces/{workspaceId}/prompts',
    summary: 'List prompts, oldest first',
    params: WorkspaceParams,
    query: PromptsQuery,
    reply: PromptPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createPrompt: {
    ...write,
    path: '/workspaces/{workspaceId}/prompts',
    audit: { action: 'prompt.create', target: 'prompt' },
    summary: 'Create a prompt with its first version',
    params: WorkspaceParams,
    body: NewPrompt,
    reply: Prompt,
    errors: ['not_found', 'conflict'],
  },
  readPrompt: {
    ...read,
    path: '/workspaces/{workspaceId}/prompts/{promptId}',
    summary: 'Read a prompt and its newest version, without content',
    params: PromptParams,
    reply: Prompt,
    errors: ['not_found'],
  },
  listPromptVersions: {
    ...read,
    path: '/workspaces/{workspaceId}/prompts/{promptId}/versions',
    summary: 'List the versions of a prompt, newest first',
    params: PromptParams,
    query: ListQuery,
    reply: PromptVersionPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createPromptVersion: {
    ...write,
    path: '/workspaces/{workspaceId}/prompts/{promptId}/versions',
    audit: { action: 'prompt.write_version', target: 'prompt' },
    summary: 'Create a new version of a prompt. Deploy it to put it into effect',
    params: PromptParams,
    body: NewPromptVersion,
    reply: SavedPromptVersion,
    errors: ['not_found', 'conflict'],
  },
  readPromptVersion: {
    ...read,
    path: '/workspaces/{workspaceId}/prompts/{promptId}/versions/{version}',
    summary: 'Read a version of a prompt',
    params: PromptVersionParams,
    reply: PromptVersion,
    errors: ['not_found'],
  },
  diffPromptVersions: {
    ...read,
    path: '/workspaces/{workspaceId}/prompts/{promptId}/diff',
    summary: 'Compare two versions of a prompt',
    params: PromptParams,
    query: DiffQuery,
    reply: VersionDiff,
    errors: ['not_found'],
  },
  readPromptResults: {
    ...read,
    path: '/environments/{environmentId}/prompts/{promptId}/results',
    summary: 'What the runs of each version of a prompt did in an environment',
    params: PromptResultsParams,
    reply: PromptResults,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
