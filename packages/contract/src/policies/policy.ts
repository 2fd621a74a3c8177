import Type, { type Static } from 'typebox'
import { nextCursor, nullableText, nullableTime, time, uuid, CreationHeaders } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { GRANT_RULES, ON_ERRORS, POLICY_ID_PATTERN, type GrantRule, type OnError } from '../engine/words.ts'
import { PolicyAction, Severity } from './runtime-config.ts'
import {
  damagedVersion,
  followsField,
  isNew,
  newVersionFields,
  Version,
  versionFields,
  DiffQuery,
  VersionDiff,
} from './version.ts'
import type { OperatorRoute } from '../web/route.ts'
import { ArchivableQuery, ListQuery, WorkspaceParams } from '../tenants/workspace.ts'

const policyVersionFields = {
  policyId: Type.String(),
  ...versionFields,
  name: Type.String({ description: 'Display name; defaults to the policy id' }),
  description: nullableText('Purpose of the policy'),
  condition: Type.String({ description: 'CEL expression, unchanged' }),
  severity: Severity,
  action: PolicyAction,
  onError: Type.Unsafe<OnError | null>({
    enum: [...ON_ERRORS, null],
    description:
      'What a condition that cannot be evaluated counts as: `act` as a match, `ignore` as none. null: written before this ' +
      'could be set; `act` with severity HIGH or CRITICAL, else `ignore`',
  }),
  approvers: Type.Integer({ minimum: 1, maximum: 2, description: 'How many different people must approve a call' }),
  grants: Type.Enum([...GRANT_RULES], { description: 'Whether a person who decides may also allow calls to come' }),
  template: nullableText(
    'How a request reads, such as `Refund **{amount} {currency}** · {order_id}`; null: found from its input and the condition',
  ),
  damaged: damagedVersion,
}

export const PolicyVersion = Type.Object(policyVersionFields, {
  $id: 'PolicyVersion',
  description: 'A version of a policy',
})
export type PolicyVersion = Static<typeof PolicyVersion>

export const Policy = Type.Object(
  {
    policyId: Type.String({ description: 'Unique in the workspace' }),
    workspaceId: uuid('Its workspace'),
    createdAt: time('When it was created'),
    archivedAt: nullableTime('When it was archived; null: it can be deployed'),
    newest: PolicyVersion,
  },
  { $id: 'Policy', description: 'A policy and its newest version' },
)
export type Policy = Static<typeof Policy>

const PolicyPage = Type.Object({ items: Type.Array(Policy), nextCursor }, { $id: 'PolicyPage' })

const PolicyVersionPage = Type.Object({ items: Type.Array(PolicyVersion), nextCursor }, { $id: 'PolicyVersionPage' })

const SavedPolicyVersion = Type.Object({ ...policyVersionFields, isNew }, { $id: 'SavedPolicyVersion' })
type SavedPolicyVersion = Static<typeof SavedPolicyVersion>

const optionalText = (maxLength: number, description: string) =>
  Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], minLength: 1, maxLength, description }))

export const Condition = Type.String({
  $id: 'Condition',
  minLength: 1,
  description: 'CEL expression over the tool call, of type bool. Stored and served unchanged',
})

export const givenOnError = Type.Optional(
  Type.Unsafe<OnError | null>({
    enum: [...ON_ERRORS, null],
    description:
      'What a condition that cannot be evaluated counts as: `act` as a match, `ignore` as none. Default: `act` for BLOCK and ' +
      'REQUIRE_APPROVAL; for ALLOW and WARN, `act` with severity HIGH or CRITICAL, else `ignore`',
  }),
)

const newPolicyVersionFields = {
  name: optionalText(LIMITS.nameChars, 'Display name; defaults to the policy id'),
  description: optionalText(LIMITS.descriptionChars, 'Purpose of the policy'),
  condition: Condition,
  severity: Severity,
  action: PolicyAction,
  onError: givenOnError,
  approvers: Type.Optional(
    Type.Unsafe<1 | 2 | null>({
      enum: [1, 2, null],
      description:
        'How many different people must approve a call; 2 only with REQUIRE_APPROVAL. Default: 1, or what the newest version says',
    }),
  ),
  grants: Type.Optional(
    Type.Unsafe<GrantRule | null>({
      enum: [...GRANT_RULES, null],
      description:
        'Whether a person who decides may also allow calls to come. Default: never with severity CRITICAL, else allow; a `never` stays until a version says `allow`',
    }),
  ),
  template: Type.Optional(
    Type.Unsafe<string | null>({
      type: ['string', 'null'],
      maxLength: LIMITS.policyTemplateChars,
      description:
        'How a request of it reads: `{…}` is a field of the tool input, and what stands between `**` is what the buttons name. Default: what the newest version says; an empty text: found from the input and the condition',
    }),
  ),
  ...newVersionFields,
}

export const NewPolicy = Type.Object(
  {
    policyId: Type.String({
      pattern: POLICY_ID_PATTERN,
      description: 'Unique in the workspace and permanent: lower-case letters, digits, dots, dashes and underscores',
    }),
    ...newPolicyVersionFields,
  },
  {
    $id: 'NewPolicy',
    examples: [
      {
        policyId: 'refund-limit',
        name: 'Refund limit',
        condition: 'tool.name == "refund" && tool.input.amount > 100.0',
        severity: 'HIGH',
        action: 'REQUIRE_APPROVAL',
        onError: 'act',
        note: 'First version',
      },
    ],
  },
)
export type NewPolicy = Static<typeof NewPolicy>

export const NewPolicyVersion = Type.Object(
  { ...newPolicyVersionFields, ...followsField },
  {
    $id: 'NewPolicyVersion',
    examples: [
      {
        condition: 'tool.name == "refund" && tool.input.amount > 50.0',
        severity: 'HIGH',
        action: 'REQUIRE_APPROVAL',
        note: 'A lower limit',
        follows: '1',
      },
    ],
  },
)
export type NewPolicyVersion = Static<typeof NewPolicyVersion>

export const PolicyParams = Type.Object({ workspaceId: uuid('Workspace id'), policyId: Type.String() })

const PolicyVersionParams = Type.Object({ ...PolicyParams.properties, version: Version })

const read = { tag: 'Policies', scopes: [], access: 'viewer', method: 'GET', status: 200 } as const
const write = {
  tag: 'Policies',
  scopes: [],
  access: 'admin',
  method: 'POST',
  headers: CreationHeaders,
  status: 201,
  bodyBytes: LIMITS.operatorBodyBytes,
} as const

export const policyRoutes = {
  listPolicies: {
    ...read,
    path: '/workspaces/{workspaceId}/policies',
    summary: 'List policies by id',
    params: WorkspaceParams,
    query: ArchivableQuery,
    reply: PolicyPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createPolicy: {
    ...write,
    path: '/workspaces/{workspaceId}/policies',
    audit: { action: 'policy.create', target: 'policy' },
    summary: 'Create a policy with its first version; the condition is checked',
    params: WorkspaceParams,
    body: NewPolicy,
    reply: Policy,
    errors: ['not_found', 'conflict'],
  },
  readPolicy: {
    ...read,
    path: '/workspaces/{workspaceId}/policies/{policyId}',
    summary: 'Read a policy and its newest version',
    params: PolicyParams,
    reply: Policy,
    errors: ['not_found'],
  },
  listPolicyVersions: {
    ...read,
    path: '/workspaces/{workspaceId}/policies/{policyId}/versions',
    summary: 'List the versions of a policy, newest first',
    params: PolicyParams,
    query: ListQuery,
    reply: PolicyVersionPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  createPolicyVersion: {
    ...write,
    path: '/workspaces/{workspaceId}/policies/{policyId}/versions',
    audit: { action: 'policy.write_version', target: 'policy' },
    summary: 'Create a new version of a policy; the condition is checked. Deploy it to put it into effect',
    params: PolicyParams,
    body: NewPolicyVersion,
    reply: SavedPolicyVersion,
    errors: ['not_found', 'conflict'],
  },
  readPolicyVersion: {
    ...read,
    path: '/workspaces/{workspaceId}/policies/{policyId}/versions/{version}',
    summary: 'Read a version of a policy',
    params: PolicyVersionParams,
    reply: PolicyVersion,
    errors: ['not_found'],
  },
  diffPolicyVersions: {
    ...read,
    path: '/workspaces/{workspaceId}/policies/{policyId}/diff',
    summary: 'Compare two versions of a policy',
    params: PolicyParams,
    query: DiffQuery,
    reply: VersionDiff,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
