/** Requests of a policy and their results: unanswered requests, signs of approval fatigue, blocked calls. */
import Type, { type Static } from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import { id, nullableText, time } from '../web/fields.ts'

/** Number of a policy's requests that nobody answered. */
export const UnansweredRequests = Type.Object(
  {
    items: Type.Array(
      Type.Object({
        policyId: nullableText('Policy that required approval; null: the requests name none'),
        expired: Type.Integer({ minimum: 1, description: 'Requests that expired undecided' }),
        withdrawn: Type.Integer({ minimum: 0, description: 'Those of them that their client had withdrawn' }),
        lastExpiredAt: time('When the last of them expired'),
      }),
      { description: `Most first; at most ${LIMITS.unansweredPolicies}` },
    ),
    since: time('Start of the time that is counted'),
    capped: Type.Boolean({
      description: `Whether only the newest ${LIMITS.unansweredRequests} expired requests of that time are counted`,
    }),
  },
  { $id: 'UnansweredRequests' },
)
export type UnansweredRequests = Static<typeof UnansweredRequests>

/** Whether people get so many requests that they may no longer look closely. */
export const AskingPolicies = Type.Object(
  {
    items: Type.Array(
      Type.Object({
        policyId: nullableText('Policy that required approval; null: the requests name none'),
        requests: Type.Integer({ minimum: 1 }),
        approved: Type.Integer({ minimum: 0, description: 'By a person who decided this very request' }),
        rejected: Type.Integer({ minimum: 0 }),
        expired: Type.Integer({ minimum: 0, description: 'Undecided' }),
        byGrant: Type.Integer({ minimum: 0, description: 'Approved by a standing approval: nobody was asked' }),
        quick: Type.Integer({ minimum: 0, description: 'Approved by a person within 5 seconds' }),
        unevaluated: Type.Integer({ minimum: 0, description: 'Asked because the condition could not be evaluated' }),
        contradictions: Type.Integer({
          minimum: 0,
          description: 'Inputs of which people approved one request and rejected another',
        }),
        answerP50: Type.Unsafe<number | null>({
          type: ['integer', 'null'],
          description:
            'Milliseconds until a person decided: half of the decisions took no longer; null: nobody decided',
        }),
        answerP95: Type.Unsafe<number | null>({ type: ['integer', 'null'], description: 'The same for 95 of 100' }),
      }),
      { description: `Most requests first; at most ${LIMITS.unansweredPolicies}` },
    ),
    since: time('Start of the time that is counted'),
    capped: Type.Boolean({ description: `Whether only the newest ${LIMITS.unansweredRequests} requests are counted` }),
    blocks: Type.Union(
      [
        Type.Object({
          calls: Type.Integer({ minimum: 0, description: 'Recorded calls that it blocked' }),
          unevaluated: Type.Integer({
            minimum: 0,
            description: 'Those of them that it blocked because its condition could not be evaluated',
          }),
          capped: Type.Boolean({
            description: `Whether only the first ${LIMITS.heldCallsCounted} calls that any policy held back in that time are looked at`,
          }),
        }),
        Type.Null(),
      ],
      { description: 'Only for one policy: what it blocked. Null: `policyId` is not given' },
    ),
  },
  { $id: 'AskingPolicies' },
)
export type AskingPolicies = Static<typeof AskingPolicies>

export const UnansweredQuery = Type.Object({
  hours: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.unansweredHoursMax, default: 168, description: 'Hours to look back' }),
  ),
  policyId: Type.Optional(id(LIMITS.textChars, 'Only requests of this policy')),
})
