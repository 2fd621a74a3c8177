import Type, { type Static } from 'typebox'
import { cursor, nextCursor, nullableTime, pageLimit, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { COMPLETENESS_STATES } from '../engine/words.ts'

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

const drops = Type.Array(
  Type.Object({
    reason: Type.String({ description: 'Such as queue_full, refused or failed' }),
    count: count('How many, as the client counts'),
    lastAt: time("When it dropped the last one, by the client's clock"),
  }),
  { description: 'Why the client dropped events' },
)

export const Completeness = Type.Object(
  {
    state: Type.Enum([...COMPLETENESS_STATES], {
      description:
        'COMPLETE: every recorder said which event is its last, and all arrived. GAPS: events did not arrive. OPEN: all known ' +
        'ones arrived, but a recorder has not sent its last one: it records still, or it died. UNKNOWN: events are not numbered',
    }),
    ...counts,
    drops,
    unnumbered: count('Stored events without a number: they say nothing about those that did not arrive'),
    recorders: Type.Array(RecorderCompleteness, {
      description: 'The SDK instances that recorded the run: each process that takes part is one',
    }),
  },
  { $id: 'Completeness', description: 'What of a run arrived' },
)
export type Completeness = Static<typeof Completeness>

export const CompletenessQuery = Type.Object({
  from: time('Start of the window, inclusive'),
  to: time('End of the window, exclusive'),
  by: Type.Enum(['client', 'agent'], { description: 'What to sum up by' }),
  agentId: Type.Optional(uuid('Internal agent id: only its runs')),
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
})
export type CompletenessQuery = Static<typeof CompletenessQuery>

/** Events that a client or an agent lost. */
export const CompletenessSum = Type.Object(
  {
    key: Type.String({ description: 'Client id, or internal agent id' }),
    name: Type.String({ description: 'Client id, or name of the agent' }),
    runs: count('Runs that started in the window and of which events did not arrive'),
    ...counts,
    drops,
    newestRun: Type.Object({ id: uuid('Internal run id'), runId: Type.String(), startedAt: time('When it started') }),
  },
  {
    $id: 'CompletenessSum',
    description: 'What did not arrive from one client or agent, counted in the runs with gaps',
  },
)
export type CompletenessSum = Static<typeof CompletenessSum>

export const CompletenessPage = Type.Object(
  {
    items: Type.Array(CompletenessSum, { description: 'The greatest loss first' }),
    nextCursor,
    lookedTo: nullableTime(
      `Only runs with gaps that started since then are summed up: they have ${LIMITS.summedRecorders} SDK instances. Null: all of the window are`,
    ),
  },
  { $id: 'CompletenessPage' },
)
