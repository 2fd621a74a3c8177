import Type, { type Static, type TUnsafe } from 'typebox'
import { nullableTime, time, uuid, damaged } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams, WorkspaceParams } from '../tenants/workspace.ts'
import { OperatorRunParams } from '../runs/operator-run.ts'

function days(description: string, minimum = 1): TUnsafe<number | null> {
  const text = `${description}; null: forever`
  return Type.Unsafe<number | null>({
    type: ['integer', 'null'],
    minimum,
    maximum: LIMITS.retentionDays,
    description: text,
  })
}

const settings = {
  runDays: days('How many days runs are kept after their last event'),
  payloadDays: days('How many days payloads are kept after the last event of their run; at most runDays'),
  issueDays: days('How many days resolved and ignored issues are kept after they were last seen or changed'),
  approvalDays: days(
    'How many days requests for approval are kept after they were created; pending ones are always kept',
  ),
  auditDays: days('How many days entries of the audit log are kept', LIMITS.retentionAuditDaysMin),
  keepOpenIssueRuns: Type.Boolean({
    description: `Whether the newest ${LIMITS.keptRunsOfIssue} runs of each of the ${LIMITS.issuesWithKeptRuns} open issues that were seen last are kept with their payloads`,
  }),
}

export const RetentionSettings = Type.Object(settings, {
  $id: 'RetentionSettings',
  description: 'How long things are kept. Pinned runs are always kept whole',
})
export type RetentionSettings = Static<typeof RetentionSettings>

export const RetentionChange = Type.Partial(Type.Object(settings), {
  $id: 'RetentionChange',
  description: 'Absent fields stay as they are now',
  examples: [{ runDays: 90, payloadDays: 30 }],
})
export type RetentionChange = Static<typeof RetentionChange>

const counted = (description: string) => Type.Integer({ minimum: 0, description })

export const RetentionCounts = Type.Object(
  {
    runs: counted('Runs removed'),
    events: counted('Events removed'),
    payloads: counted('Payloads removed from events that stay'),
    issues: counted('Issues removed, with their records'),
    approvals: counted('Requests for approval removed'),
    auditEntries: counted('Entries of the audit log removed'),
  },
  { $id: 'RetentionCounts', description: 'What retention removed' },
)
export type RetentionCounts = Static<typeof RetentionCounts>

export const RetentionProgress = Type.Object(
  {
    passStartedAt: time('When the latest pass over the environment started'),
    passEndedAt: nullableTime('When it ended; null while it runs'),
    lastSliceAt: nullableTime('When something was last removed'),
    reachedAt: nullableTime('Runs that started before this time were examined by this pass'),
    pass: RetentionCounts,
    total: RetentionCounts,
  },
  { $id: 'RetentionProgress', description: 'What retention did in one environment' },
)
export type RetentionProgress = Static<typeof RetentionProgress>

const damagedSettings = damaged(
  'The stored settings do not match their checksum: nothing is removed until they are set again',
)

export const Retention = Type.Object(
  {
    settings: RetentionSettings,
    source: Type.Enum(['environment', 'workspace', 'none'], {
      description: 'Where the settings come from. none: nothing was set, so everything is kept forever',
    }),
    progress: Type.Union([RetentionProgress, Type.Null()], { description: 'Null before the first pass' }),
    damaged: damagedSettings,
  },
  { $id: 'Retention', description: 'How long an environment keeps things, and what was removed' },
)
export type Retention = Static<typeof Retention>

export const WorkspaceRetention = Type.Object(
  {
    settings: RetentionSettings,
    source: Type.Enum(['workspace', 'none'], { description: 'none: nothing was set, so everything is kept forever' }),
    damaged: damagedSettings,
  },
  { $id: 'WorkspaceRetention', description: 'The settings of environments that have none' },
)
export type WorkspaceRetention = Static<typeof WorkspaceRetention>

const dayOf = (description: string, minimum = 1) =>
  Type.Optional(Type.Integer({ minimum, maximum: LIMITS.retentionDays, description }))

/** A query cannot express null. So if it has any of these numbers, an absent one means "forever". */
export const RetentionPreviewQuery = Type.Object({
  runDays: dayOf('As in the settings. Without any of these five, the current settings are previewed'),
  payloadDays: dayOf('As in the settings'),
  issueDays: dayOf('As in the settings'),
  approvalDays: dayOf('As in the settings'),
  auditDays: dayOf('As in the settings', LIMITS.retentionAuditDaysMin),
  keepOpenIssueRuns: Type.Optional(Type.Enum(['true', 'false'], { description: 'As in the settings; default: true' })),
})
export type RetentionPreviewQuery = Static<typeof RetentionPreviewQuery>

const exact = Type.Boolean({
  description:
    `Whether everything was counted. If not, more than ${LIMITS.retentionCounted} runs are concerned, ` +
    'and the numbers are estimated from the hourly usage and a sample',
})

const RetentionRuns = Type.Object(
  {
    exact,
    runs: counted('Runs'),
    events: counted('Their events'),
    bytes: counted('Bytes of their payloads; always estimated from a sample'),
    oldest: nullableTime('Start time of the oldest run; null if there are no runs'),
    newest: nullableTime('Start of the newest of these runs, or an upper limit of it if not exact'),
  },
  { $id: 'RetentionRuns', description: 'Runs that retention would remove, or whose payloads it would remove' },
)
export type RetentionRuns = Static<typeof RetentionRuns>

const RetentionRows = Type.Object(
  {
    exact: Type.Boolean({ description: `Whether everything was counted; if not, there are at least that many` }),
    count: counted('How many'),
    oldest: nullableTime('Time of the oldest one; null if there are none'),
  },
  { $id: 'RetentionRows', description: 'Things that retention would remove' },
)
export type RetentionRows = Static<typeof RetentionRows>

export const RetentionPreview = Type.Object(
  {
    settings: RetentionSettings,
    runs: RetentionRuns,
    payloads: RetentionRuns,
    issues: RetentionRows,
    approvals: RetentionRows,
    auditEntries: RetentionRows,
  },
  { $id: 'RetentionPreview', description: 'What retention would remove now. This request removes nothing' },
)
export type RetentionPreview = Static<typeof RetentionPreview>

export const PinnedRun = Type.Object(
  { id: uuid('Internal run id'), runId: Type.String(), pinnedAt: nullableTime('When it was pinned; null: it is not') },
  { $id: 'PinnedRun', description: 'Whether retention keeps a run forever' },
)
export type PinnedRun = Static<typeof PinnedRun>

const common = { tag: 'Retention', scopes: [], status: 200 } as const
const read = { ...common, method: 'GET', access: 'viewer' } as const
const change = { ...common, method: 'POST', access: 'admin' } as const
const body = { bodyBytes: LIMITS.operatorBodyBytes } as const

const OF_ENVIRONMENT = '/environments/{environmentId}/retention'
const OF_WORKSPACE = '/workspaces/{workspaceId}/retention'
const RUN = '/environments/{environmentId}/runs/{runId}'

export const retentionRoutes = {
  readRetention: {
    ...read,
    path: OF_ENVIRONMENT,
    summary: 'Read how long an environment keeps things, and what was removed',
    params: EnvironmentParams,
    reply: Retention,
    errors: ['not_found'],
  },
  changeRetention: {
    ...change,
    ...body,
    path: `${OF_ENVIRONMENT}/change`,
    audit: { action: 'retention.change', target: 'environment' },
    summary: 'Give an environment settings of its own; older things are removed in the background',
    params: EnvironmentParams,
    body: RetentionChange,
    reply: Retention,
    errors: ['not_found'],
  },
  inheritRetention: {
    ...change,
    path: `${OF_ENVIRONMENT}/inherit`,
    audit: { action: 'retention.inherit', target: 'environment' },
    summary: 'Remove the settings of an environment; it follows its workspace again',
    params: EnvironmentParams,
    reply: Retention,
    errors: ['not_found'],
  },
  previewRetention: {
    ...read,
    path: `${OF_ENVIRONMENT}/preview`,
    summary: 'Count what given settings would remove now; nothing is removed',
    params: EnvironmentParams,
    query: RetentionPreviewQuery,
    reply: RetentionPreview,
    errors: ['not_found'],
  },
  readWorkspaceRetention: {
    ...read,
    path: OF_WORKSPACE,
    summary: 'Read the settings of a workspace, for its environments that have none',
    params: WorkspaceParams,
    reply: WorkspaceRetention,
    errors: ['not_found'],
  },
  changeWorkspaceRetention: {
    ...change,
    ...body,
    path: `${OF_WORKSPACE}/change`,
    audit: { action: 'retention.change', target: 'workspace' },
    summary: 'Change the settings of a workspace, for its environments that have none',
    params: WorkspaceParams,
    body: RetentionChange,
    reply: WorkspaceRetention,
    errors: ['not_found'],
  },
  pinRun: {
    ...change,
    access: 'approver',
    path: `${RUN}/pin`,
    audit: { action: 'run.pin', target: 'run' },
    summary: 'Keep a run whatever the retention settings are',
    params: OperatorRunParams,
    reply: PinnedRun,
    errors: ['not_found'],
  },
  unpinRun: {
    ...change,
    access: 'approver',
    path: `${RUN}/unpin`,
    audit: { action: 'run.unpin', target: 'run' },
    summary: 'Let retention remove a run again',
    params: OperatorRunParams,
    reply: PinnedRun,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
