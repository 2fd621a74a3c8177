import Type, { type Static } from 'typebox'
import {
  cursor,
  id,
  nextCursor,
  nullableText,
  nullableTime,
  pageLimit,
  time,
  uuid,
  CreationHeaders,
  damaged,
} from '../web/fields.ts'
import { sizeLimit } from '../engine/format.ts'
import { LIMITS } from '../engine/limits.ts'
import { Usage } from '../runs/run.ts'
import { ESTIMATE, Latency } from '../runs/usage.ts'
import { ScoreSum } from '../runs/score.ts'
import { ArchivableQuery, ListQuery, WorkspaceParams } from '../tenants/workspace.ts'
import { followsField, isNew, newVersionFields, Version, versionFields, DiffQuery, VersionDiff } from './version.ts'
import type { OperatorRoute } from '../web/route.ts'

const promptVersionFields = {
  promptId: uuid('Prompt id'),
  versionId: uuid('Id of this version, as clients receive it'),
  ...versionFields,
  contentBytes: Type.Integer({ minimum: 1, description: 'Size of the content in UTF-8 bytes' }),
  contentHash: Type.String({ description: 'SHA-256 of the content, in lower-case hex' }),
  damaged: damaged(
    `The stored version does not match its checksums. In lists, contents above ${sizeLimit(LIMITS.promptListedBytes)} are not compared`,
  ),
}

export const PromptVersionRow = Type.Object(promptVersionFields, {
  $id: 'PromptVersionRow',
  description: 'A version of a prompt, without its content',
})
export type PromptVersionRow = Static<typeof PromptVersionRow>

export const PromptVersion = Type.Object(
  { ...promptVersionFields, content: Type.String({ description: 'Prompt text, unchanged' }) },
  { $id: 'PromptVersion', description: 'A version of a prompt' },
)
export type PromptVersion = Static<typeof PromptVersion>

export const Prompt = Type.Object(
  {
    promptId: uuid('Prompt id'),
    workspaceId: uuid('Its workspace'),
    name: Type.String({ description: 'Unique in the workspace' }),
    createdAt: time('When it was created'),
    archivedAt: nullableTime('When it was archived; null: it can be deployed'),
    newest: PromptVersionRow,
  },
  { $id: 'Prompt', description: 'A prompt and its newest version' },
)
export type Prompt = Static<typeof Prompt>

const PromptPage = Type.Object({ items: Type.Array(Prompt), nextCursor }, { $id: 'PromptPage' })

const PromptVersionPage = Type.Object({ items: Type.Array(PromptVersionRow), nextCursor }, { $id: 'PromptVersionPage' })

const SavedPromptVersion = Type.Object({ ...promptVersionFields, isNew }, { $id: 'SavedPromptVersion' })
type SavedPromptVersion = Static<typeof SavedPromptVersion>

const content = Type.String({
  minLength: 1,
  description: `Text of the prompt, up to ${sizeLimit(LIMITS.promptContentBytes)} of UTF-8. Stored and served unchanged`,
})

export const NewPrompt = Type.Object(
  {
    name: id(LIMITS.nameChars, 'Unique in the workspace; clients use it to find the prompt'),
    content,
    ...newVersionFields,
  },
  { $id: 'NewPrompt', examples: [{ name: 'greeting', content: 'You are a polite assistant.', note: 'First version' }] },
)
export type NewPrompt = Static<typeof NewPrompt>

const NewPromptVersion = Type.Object(
  { content, ...newVersionFields, ...followsField },
  {
    $id: 'NewPromptVersion',
    examples: [{ content: 'You are a polite and brief assistant.', note: 'Shorter answers', follows: '1' }],
  },
)
type NewPromptVersion = Static<typeof NewPromptVersion>

const PromptsQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  name: Type.Optional(Type.String({ minLength: 1, description: 'Only the prompt with this name' })),
  archived: ArchivableQuery.properties.archived,
})

export const PromptParams = Type.Object({ workspaceId: uuid('Workspace id'), promptId: uuid('Prompt id') })

const PromptVersionParams = Type.Object({ ...PromptParams.properties, version: Version })

const PromptResultsParams = Type.Object({
  environmentId: uuid('Environment id'),
  promptId: uuid('Prompt id'),
})

const count = (description: string) => Type.Integer({ minimum: 0, description })
const length = (description: string) =>
  Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum: 0, description })

const perRun = (what: string, of: string) =>
  Type.Object(
    {
      mean: Type.Unsafe<number | null>({ type: ['number', 'null'], description: 'null: of no run are they known' }),
      runs: count(`Runs whose ${of} are known; the others are left out`),
    },
    { description: `${what} of these events in a run, as a mean` },
  )

export const PromptResult = Type.Object(
  {
    versionId: uuid('Id of the version, as clients receive it'),
    version: Version,
    note: nullableText('What changed, and why'),
    runs: count(`Runs with an event that names the version, at most the newest ${LIMITS.promptResultRuns}`),
    completed: count('Runs that completed'),
    failed: count('Runs that failed'),
    cancelled: count('Runs that were cancelled'),
    lengthP50Ms: length('Median length of the runs that ended, in milliseconds; null if none did'),
    lengthP95Ms: length('95th percentile of that length'),
    llmLatency: Latency,
    toolLatency: Latency,
    events: count('Events that name the version'),
    errors: count('ERROR events and failed tool calls among them'),
    blocked: count('Tool calls among them that a policy blocked'),
    approvals: count('Tool calls among them that waited for a person'),
    usage: Usage,
    ...ESTIMATE,
    tokensPerRun: perRun('Tokens', 'tokens'),
    costPerRun: perRun('Cost, with estimates,', 'cost'),
    firstAt: nullableTime('When the first of these runs used the version; null if none did'),
    lastAt: nullableTime('When the last one began to'),
    scores: Type.Array(ScoreSum, { description: 'What scores say of these runs, by name' }),
  },
  {
    $id: 'PromptResult',
    description: 'What the runs of one prompt version did',
  },
)
export type PromptResult = Static<typeof PromptResult>

const PromptResults = Type.Object(
  {
    promptId: uuid('Prompt id'),
    name: Type.String(),
    items: Type.Array(PromptResult, {
      description: `The newest ${LIMITS.promptResultVersions} versions, newest first`,
    }),
  },
  { $id: 'PromptResults' },
)
type PromptResults = Static<typeof PromptResults>

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
