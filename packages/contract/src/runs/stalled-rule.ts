import Type, { type Static } from 'typebox'
import { LIMITS } from '../engine/limits.ts'

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
  },
  { $id: 'StalledRule', description: 'When a running run of an environment counts as stalled, and what happens then' },
)
export type StalledRule = Static<typeof StalledRule>

export const StalledRuleChange = Type.Object(
  { idleMinutes: Type.Optional(idleMinutes), closeAs: Type.Optional(closeAs) },
  {
    $id: 'StalledRuleChange',
    minProperties: 1,
    additionalProperties: false,
    description: 'Absent fields stay',
    examples: [{ idleMinutes: 60, closeAs: 'FAILED' }],
  },
)
