import Type, { type Static } from 'typebox'
import { CALL_OUTCOMES, type CallOutcome } from './call-life.ts'
import { cursor, nextCursor, nullableText, pageLimit, time } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { PROBLEM_KINDS } from '../engine/words.ts'

export const RunProblemsQuery = Type.Object({
  limit: pageLimit(LIMITS.problemsPageDefault, LIMITS.problemsPageMax),
  cursor,
})

export const RunProblem = Type.Object(
  {
    eventId: Type.String({ description: 'Client id of the event' }),
    eventType: Type.String(),
    timestamp: time('Time of the event'),
    kind: Type.Enum([...PROBLEM_KINDS], {
      description: 'It tells an error, a policy blocked the call, or the call needed an approval',
    }),
    name: Type.String({ description: 'The tool that a policy held back, or the label of the event' }),
    why: Type.String({
      description:
        'Class and first line of the error, or the policies and their reason. Empty: the event does not say, or its payload was removed',
    }),
    outcome: Type.Unsafe<CallOutcome | null>({
      enum: [...CALL_OUTCOMES, null],
      description: 'How a call ended, as its event tells it; null: the event is no call, or its payload was removed',
    }),
    approvalId: nullableText('The approval that the call needed, as the event names it; null: it names none'),
  },
  { $id: 'RunProblem', description: 'An event of a run that a person should look at' },
)
export type RunProblem = Static<typeof RunProblem>

export const RunProblemPage = Type.Object({ items: Type.Array(RunProblem), nextCursor }, { $id: 'RunProblemPage' })
export type RunProblemPage = Static<typeof RunProblemPage>
