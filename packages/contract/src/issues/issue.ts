import Type, { type Static } from 'typebox'
import {
  cursor,
  filterSchemas,
  id,
  importedAt,
  nextCursor,
  nullableText,
  nullableTime,
  pageLimit,
  time,
  uuid,
} from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { RunStatus } from '../runs/run.ts'
import { ISSUE_STATES } from '../engine/words.ts'
import { ISSUE_FILTERS } from './issue-filters.ts'

export const IssueState = Type.Enum([...ISSUE_STATES], { $id: 'IssueState' })
export type IssueState = (typeof ISSUE_STATES)[number]

/** An operator or token, with its name at that time. */
export const Actor = Type.Object(
  { kind: Type.Enum(['operator', 'token']), id: Type.String(), name: Type.String() },
  { $id: 'Actor' },
)
const nullableActor = Type.Union([Actor, Type.Null()])

const issueFields = {
  id: uuid('Issue id'),
  title: Type.String({ description: 'What happened, in a line' }),
  detectionType: Type.String({ description: 'From the first detection, normalised' }),
  state: IssueState,
  stateChangedAt: time('When the state last changed'),
  stateChangedBy: nullableActor,
  ignoredUntil: nullableTime('When an ignored issue opens again by itself; null: only when someone reopens it'),
  firstSeenAt: time('Earliest detection'),
  lastSeenAt: time('Latest detection'),
  openedAt: time('When the service opened it'),
  occurrences: Type.Integer({ minimum: 1, description: 'Number of detections' }),
  recoveries: Type.Integer({
    minimum: 0,
    description: 'Recoveries reported for the same facts; they do not close the issue',
  }),
  affectedRuns: Type.Integer({ minimum: 0 }),
  affectedAgents: Type.Integer({ minimum: 0 }),
  regressions: Type.Integer({ minimum: 0, description: 'How often the issue came back after it was resolved' }),
  lastRegressionAt: nullableTime('When the issue last came back'),
  assignee: nullableText('Who is responsible for it'),
  mergedInto: nullableText('The issue it was merged into'),
}

export const IssueSummary = Type.Object(issueFields, {
  $id: 'IssueSummary',
  description: 'A problem that happens repeatedly in the same way',
})
export type IssueSummary = Static<typeof IssueSummary>

const fact = (description: string) => Type.Optional(Type.String({ description }))

/** The facts that are hashed. Case and white space of reported facts are normalised, and missing facts are omitted. */
export const Facts = Type.Object(
  {
    agent: fact('Of a failure without any error, or of any failure that names no place: the agent'),
    cause: fact('Of a failure: class and message of the first cause, without variable parts'),
    detectionType: fact('Detector category'),
    errorType: fact('Of a failure: class of the error'),
    frame: fact("Of a failure: the newest call in the user's own code"),
    message: fact('Of a failure: message of the error, without variable parts'),
    model: fact('payload.model, or the model of the failed call'),
    policyId: fact('Policy'),
    reasonCode: fact('payload.reasonCode'),
    toolName: fact('payload.toolName, or the tool of the failed call'),
    tools: Type.Optional(Type.Array(Type.String(), { description: 'payload.tools, sorted, without duplicates' })),
  },
  { $id: 'Facts', description: 'Why records are grouped together' },
)
export type Facts = Static<typeof Facts>

/** A set of facts of an issue. An issue has several after a merge. */
export const IssueGroup = Type.Object(
  {
    fingerprint: Type.String({
      description:
        'v1: and the SHA-256 of the canonical facts; of a failure v3:, 16 digits for its place, and the SHA-256',
    }),
    facts: Facts,
    occurrences: Type.Integer({ minimum: 0 }),
    recoveries: Type.Integer({ minimum: 0 }),
    affectedRuns: Type.Integer({ minimum: 0 }),
    affectedAgents: Type.Integer({ minimum: 0 }),
    firstSeenAt: time('Earliest detection'),
    lastSeenAt: time('Latest detection'),
    mergedFrom: nullableText("The issue it came from in a merge; null when it is the issue's own"),
  },
  { $id: 'IssueGroup', description: 'One set of facts of an issue' },
)
export type IssueGroup = Static<typeof IssueGroup>

export const Issue = Type.Object(
  {
    ...issueFields,
    groups: Type.Array(IssueGroup),
    mergedFrom: Type.Array(Type.String()),
    affectedUsers: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: `Different end users of its newest ${LIMITS.issueUserRuns} runs; only when the issue is read`,
      }),
    ),
    firstRelease: nullableText('Release of the agent at the earliest detection, if the client named it'),
    lastRelease: nullableText('Release of the agent at the latest detection'),
  },
  { $id: 'Issue', description: 'An issue and why its records are grouped together' },
)
export type Issue = Static<typeof Issue>

export const IssuesQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  ...filterSchemas(ISSUE_FILTERS),
  state: Type.Optional(IssueState),
  sort: Type.Optional(
    Type.Enum(['lastSeen', 'firstSeen'], {
      default: 'lastSeen',
      description: 'The order, newest first: by the latest or by the earliest detection',
    }),
  ),
})

export const ListedIssue = Type.Object(
  {
    ...issueFields,
    agentIds: Type.Array(Type.String(), {
      description: `External ids of its agents, if they are at most ${LIMITS.issueAgentsListed}`,
    }),
  },
  { $id: 'ListedIssue', description: 'An issue in the list' },
)
export type ListedIssue = Static<typeof ListedIssue>

export const IssuePage = Type.Object({ items: Type.Array(ListedIssue), nextCursor }, { $id: 'IssuePage' })
export type IssuePage = Static<typeof IssuePage>

export const IssueTrendsQuery = Type.Object({
  ids: Type.String({
    pattern: `^[0-9a-fA-F-]{36}(,[0-9a-fA-F-]{36}){0,${LIMITS.issueTrends - 1}}$`,
    description: `Issue ids, separated by commas, at most ${LIMITS.issueTrends}`,
  }),
})

export const IssueTrends = Type.Object(
  {
    from: time('Start of the first day; the last one ends now'),
    items: Type.Array(
      Type.Object({
        id: uuid('Issue id'),
        days: Type.Array(Type.Integer({ minimum: 0 }), {
          description: `Detections in each of the last ${LIMITS.issueTrendDays} times 24 hours, oldest first`,
        }),
        isPartial: Type.Boolean({
          description: `Whether only the latest ${LIMITS.issueTrendRecords} detections of a set of facts were counted`,
        }),
      }),
      { description: 'The issues that exist' },
    ),
  },
  { $id: 'IssueTrends', description: 'How often issues were detected, day by day' },
)
export type IssueTrends = Static<typeof IssueTrends>

export const IssueParams = Type.Object({ environmentId: uuid('Environment id'), issueId: uuid('Issue id') })

export const IgnoreQuery = Type.Object({
  until: Type.Optional(time('When it opens again by itself, in the future; without it, only when someone reopens it')),
})

export const IssuePartsQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
})

const affectedFields = {
  occurrences: Type.Integer({ minimum: 1 }),
  firstSeenAt: time('Earliest detection in it'),
  lastSeenAt: time('Latest detection in it'),
}

export const AffectedRun = Type.Object(
  {
    runId: Type.String({ description: 'External run id' }),
    internalRunId: nullableText('Null if no such run was recorded'),
    status: Type.Unsafe<RunStatus | null>({ anyOf: [RunStatus, { type: 'null' }] }),
    ...affectedFields,
  },
  { $id: 'AffectedRun', description: 'A run in which the issue was detected' },
)
export type AffectedRun = Static<typeof AffectedRun>
export const AffectedRunPage = Type.Object({ items: Type.Array(AffectedRun), nextCursor }, { $id: 'AffectedRunPage' })

export const AffectedAgent = Type.Object(
  {
    agentId: Type.String({ description: 'External agent id' }),
    internalAgentId: nullableText('Null if the agent recorded no event'),
    name: nullableText('Latest name of the agent'),
    ...affectedFields,
  },
  { $id: 'AffectedAgent', description: 'An agent in whose runs the issue was detected' },
)
export type AffectedAgent = Static<typeof AffectedAgent>
export const AffectedAgentPage = Type.Object(
  { items: Type.Array(AffectedAgent), nextCursor },
  { $id: 'AffectedAgentPage' },
)

export const ACTIVITY_KINDS = [
  'COMMENTED',
  'RESOLVED',
  'IGNORED',
  'REOPENED',
  'REGRESSED',
  'ASSIGNED',
  'MERGED',
  'MERGED_INTO',
  'SPLIT',
  'SPLIT_FROM',
] as const
export type ActivityKind = (typeof ACTIVITY_KINDS)[number]

export const IssueActivity = Type.Object(
  {
    id: uuid('Id of the entry'),
    at: time('When it happened'),
    kind: Type.Enum([...ACTIVITY_KINDS]),
    actor: nullableActor,
    importedAt,
    text: nullableText('Text of a comment'),
    detail: Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      description: 'Depends on the kind: assignee, issueId, fingerprints, recordId, resolvedAt, resolvedBy',
    }),
  },
  { $id: 'IssueActivity', description: 'One entry in the history of an issue; without an actor, the service did it' },
)
export type IssueActivity = Static<typeof IssueActivity>
export const IssueActivityPage = Type.Object(
  { items: Type.Array(IssueActivity), nextCursor },
  { $id: 'IssueActivityPage' },
)

export const NewComment = Type.Object(
  { text: id(LIMITS.commentChars, 'Text of the comment') },
  { $id: 'NewComment', examples: [{ text: 'The tool has a new name since Monday.' }] },
)

export const Assignment = Type.Object(
  {
    assignee: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      minLength: 1,
      maxLength: LIMITS.assigneeChars,
      description: 'A name or e-mail address; null to unassign',
    }),
  },
  { $id: 'Assignment', examples: [{ assignee: 'ada@example.com' }] },
)

export const Merge = Type.Object(
  { into: uuid('The issue to merge into, in the same environment') },
  { $id: 'Merge', examples: [{ into: '01900000-0000-7000-8000-000000000002' }] },
)

export const Split = Type.Object(
  {
    fingerprints: Type.Array(Type.String({ minLength: 1, maxLength: LIMITS.fingerprintChars }), {
      minItems: 1,
      maxItems: LIMITS.issueFingerprints,
      uniqueItems: true,
      description: 'Sets of facts to split off, together',
    }),
  },
  {
    $id: 'Split',
    examples: [{ fingerprints: ['v1:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b'] }],
  },
)
