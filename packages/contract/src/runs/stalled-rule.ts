import { damaged } from '../web/fields.ts'
import Type, { type Static } from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams } from '../tenants/workspace.ts'

const CLOSE_AS = ['FAILED', 'CANCELLED'] as const
export type ClosedAs = (typeof CLOSE_AS)[number]

const idleMinutes = Type.Integer({
  minimum: LIMITS.stalledMinutesMin,
  maximum: LIMITS.stalledMinutesMax,
  description: 'Minutes without an event after which a running run is stalled',
})
const closeAs = Type.Unsafe<ClosedAs | null>({
  enum: [...CLOSE_AS, null],
  description: 'What stalled runs are closed as; null: they stay open',
})

export const StalledRule = Type.Object(
  {
    idleMinutes,
    closeAs,
    closeAfterMinutes: Type.Integer({
      description:
        'Minutes without an event after which they are closed: idleMinutes, or an hour where the environment has no rule of its own',
    }),
    source: Type.Enum(['environment', 'default'], { description: 'Whether the environment has a rule of its own' }),
    damaged: damaged('The stored rule does not match its checksum: no run is closed until it is set again'),
  },
  { $id: 'StalledRule', description: 'When a running run of an environment counts as stalled, and what happens then' },
)
export type StalledRule = Static<typeof StalledRule>

const StalledRuleChange = Type.Object(
  { idleMinutes: Type.Optional(idleMinutes), closeAs: Type.Optional(closeAs) },
  {
    $id: 'StalledRuleChange',
    minProperties: 1,
    additionalProperties: false,
    description: 'Absent fields stay',
    examples: [{ idleMinutes: 60, closeAs: 'FAILED' }],
  },
)

const common = { tag: 'Runs', scopes: [], status: 200, params: EnvironmentParams, reply: StalledRule } as const
const PATH = '/environments/{environmentId}/stalled-rule'

/** Routes of the rule for runs that stop sending events. */
export const stalledRuleRoutes = {
  readStalledRule: {
    ...common,
    method: 'GET',
    access: 'viewer',
    path: PATH,
    summary: 'Read when running runs of an environment count as stalled',
    errors: ['not_found'],
  },
  changeStalledRule: {
    ...common,
    method: 'POST',
    access: 'admin',
    path: `${PATH}/change`,
    audit: { action: 'stalled_rule.change', target: 'environment' },
    summary: 'Change when running runs count as stalled, and what they are closed as',
    bodyBytes: LIMITS.operatorBodyBytes,
    body: StalledRuleChange,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
