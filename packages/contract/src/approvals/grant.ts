/** Standing approvals: a person allows later calls together with one call. */
import Type, { type Static } from 'typebox'
import { GRANT_SCOPES } from '../engine/words.ts'
import { LIMITS } from '../engine/limits.ts'
import { nextCursor, nullableText, nullableTime, time, uuid } from '../web/fields.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams, ListQuery } from '../tenants/workspace.ts'

const scope = Type.Enum([...GRANT_SCOPES], {
  description:
    'input: the same input of this tool again, in this run; tool: any call of this tool in this run; condition: calls of this tool by this agent whose input fulfils the condition',
})

export const NewGrant = Type.Object(
  {
    scope,
    condition: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'CEL expression over tool.input and tool.name; only with the scope condition, and true of this call',
      }),
    ),
    minutes: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.grantAgentMinutesMax,
        default: LIMITS.grantMinutes,
        description: `How long; in one run at most ${LIMITS.grantRunMinutesMax}`,
      }),
    ),
    uses: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.grantUsesMax,
        default: LIMITS.grantUses,
        description: 'How many calls',
      }),
    ),
  },
  { $id: 'NewGrant', additionalProperties: false },
)
export type NewGrant = Static<typeof NewGrant>

export const ApprovalGrant = Type.Object(
  {
    id: uuid('Grant id'),
    approvalId: uuid('The approval with which it was given'),
    scope,
    toolName: Type.String(),
    runId: nullableText('External id of its run; null with the scope condition'),
    agentId: nullableText('External id of its agent; null unless the scope is condition'),
    inputHash: nullableText('Hash of the input; null unless the scope is input'),
    condition: nullableText('CEL expression; null unless the scope is condition'),
    policies: Type.Array(Type.Object({ policyId: Type.String(), version: Type.String() }), {
      description: 'The policies that asked, in force then: it ends when one changes',
    }),
    reason: nullableText('The reason of the decision; approvals by this grant have it too'),
    grantedBy: Type.Object({ kind: Type.Enum(['operator', 'token']), id: Type.String(), name: Type.String() }),
    state: Type.Enum(['in_use', 'used_up', 'expired', 'revoked', 'policy_changed', 'run_ended'], {
      description: 'Only one in use approves anything',
    }),
    uses: Type.Integer({ minimum: 0 }),
    mostUses: Type.Integer({ minimum: 1 }),
    createdAt: time('When it was given'),
    expiresAt: time('When it ends at the latest'),
    lastUsedAt: nullableTime('When it last approved a call'),
    endedAt: nullableTime('When it was revoked, a policy of it changed, or its run ended'),
    endedBy: nullableText('Who revoked it'),
  },
  { $id: 'ApprovalGrant', description: 'A standing approval. Each use is an approval of its own, with its `grantId`' },
)
export type ApprovalGrant = Static<typeof ApprovalGrant>

const GrantPage = Type.Object({ items: Type.Array(ApprovalGrant), nextCursor }, { $id: 'ApprovalGrantPage' })

const common = { tag: 'Approvals', scopes: [], status: 200 } as const

export const grantRoutes = {
  listApprovalGrants: {
    ...common,
    method: 'GET',
    access: 'viewer',
    path: '/environments/{environmentId}/approvals/grants',
    summary: 'List standing approvals, newest first, also those that ended',
    params: EnvironmentParams,
    query: ListQuery,
    reply: GrantPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  revokeApprovalGrant: {
    ...common,
    method: 'POST',
    access: 'approver',
    path: '/environments/{environmentId}/approvals/grants/{grantId}/revoke',
    audit: { action: 'approval.revoke_grant', target: 'approval_grant' },
    summary: 'End a standing approval at once',
    params: Type.Object({ environmentId: uuid('Environment id'), grantId: uuid('Grant id') }),
    reply: ApprovalGrant,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
