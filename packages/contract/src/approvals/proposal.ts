/** Proposes a narrower condition for a policy, from what people decided about its calls. */
import Type, { type Static } from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import { EnvironmentParams } from '../tenants/workspace.ts'
import { nullableText, time } from '../web/fields.ts'

const calls = (description: string) => Type.Integer({ minimum: 0, description })

export const ProposedCondition = Type.Object(
  {
    condition: Type.String({ description: 'The condition of the policy, with the addition' }),
    addition: Type.String({ description: 'What the policy would also demand of a call before it asks' }),
    stillAsked: calls('Approved calls about which it would have asked too; also those of which that is not known'),
    notAsked: calls('Approved calls about which it would not have asked'),
    share: Type.Number({ description: 'Share of the approved calls about which it would not have asked' }),
    low: Type.Number({ description: 'Where that share lies with 95 % confidence, if calls to come are like these' }),
    high: Type.Number(),
    leftOut: Type.Object(
      {
        calls: calls('Rejected calls that were left out, one at a time'),
        kept: calls('Of these, how many the condition that was found without them asks about'),
      },
      { description: 'What becomes of a rejection that the search did not know' },
    ),
  },
  { $id: 'ProposedCondition' },
)
export type ProposedCondition = Static<typeof ProposedCondition>

export const Proposal = Type.Object(
  {
    policyId: Type.String(),
    version: Type.String({ description: 'The version that would be narrowed: the deployed one, else the newest' }),
    since: time('Start of the time that is looked at'),
    capped: Type.Boolean({
      description: `Whether only the newest ${LIMITS.proposalDecisions} requests, or as many as were read in ${LIMITS.proposalMs / 1_000} seconds, are looked at`,
    }),
    approved: calls('Calls that a person approved; those by a standing approval are left out'),
    rejected: calls('Calls that a person rejected'),
    withoutInput: Type.Object(
      { approved: calls('Approved'), rejected: calls('Rejected') },
      { description: 'Of these, those without a recorded input that has the approved hash' },
    ),
    proposed: Type.Unsafe<ProposedCondition | null>({ anyOf: [ProposedCondition, { type: 'null' }] }),
    why: nullableText('Why nothing is proposed; null: something is'),
    caveats: Type.Array(Type.String()),
  },
  { $id: 'Proposal', description: 'The condition that asks least and keeps every rejection' },
)
export type Proposal = Static<typeof Proposal>

export const ProposalParams = Type.Object({
  ...EnvironmentParams.properties,
  policyId: Type.String({ description: 'The policy that asked' }),
})

export const ProposalQuery = Type.Object({
  hours: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.unansweredHoursMax, default: 720, description: 'Hours to look back' }),
  ),
})
