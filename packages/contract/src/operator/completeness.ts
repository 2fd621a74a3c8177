import Type, { type Static } from 'typebox'
import { time } from '../fields.ts'
import { COMPLETENESS_STATES } from '../words.ts'

const count = (description: string) => Type.Integer({ minimum: 0, description })

const counts = {
  recorded: count('Events that were recorded, as far as is known'),
  arrived: count('Events that were stored'),
  rejected: count('Events that the service rejected'),
  dropped: count('Events that the client says it dropped'),
  missing: count('Other events that did not arrive'),
}

export const RecorderCompleteness = Type.Object({
  clientId: Type.String({ description: 'Client that recorded' }),
  ...counts,
  isDone: Type.Boolean({ description: 'It said which event is its last, and no later one arrived' }),
})
export type RecorderCompleteness = Static<typeof RecorderCompleteness>

export const Completeness = Type.Object(
  {
    state: Type.Enum([...COMPLETENESS_STATES], {
      description:
        'COMPLETE: every recorder said which event is its last, and all arrived. GAPS: events did not arrive. OPEN: all known ' +
        'ones arrived, but a recorder has not sent its last one: it records still, or it died. UNKNOWN: events are not numbered',
    }),
    ...counts,
    drops: Type.Array(
      Type.Object({
        reason: Type.String({ description: 'Such as queue_full, refused or failed' }),
        count: count('How many, as the client counts'),
        lastAt: time("When it dropped the last one, by the client's clock"),
      }),
      { description: 'Why the client dropped events' },
    ),
    unnumbered: count('Stored events without a number: they say nothing about those that did not arrive'),
    recorders: Type.Array(RecorderCompleteness, {
      description: 'The SDK instances that recorded the run: each process that takes part is one',
    }),
  },
  { $id: 'Completeness', description: 'What of a run arrived' },
)
export type Completeness = Static<typeof Completeness>
