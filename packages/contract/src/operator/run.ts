import Type, { type Static } from 'typebox'
import { Event, EventRow } from '../event.ts'
import { cursor, nextCursor, nullableText, pageLimit, time, uuid } from '../fields.ts'
import { LIMITS } from '../limits.ts'
import { REJECTIONS, type RejectionCode } from '../errors.ts'
import { Run, RunStatus } from '../run.ts'

/** A run as operators see it: the public fields and what only the store knows. */
export const OperatorRun = Type.Object(
  {
    ...Run.properties,
    sessionId: nullableText('First session id that an event of the run named'),
    agentId: nullableText('External id of the agent; null when it is known by its name only'),
    eventCount: Type.Integer({ minimum: 0 }),
    differingRetries: Type.Integer({
      minimum: 0,
      description: 'Events that came again under a stored id with another content; the first one was kept',
    }),
    lastEventAt: time('Largest event time of the run'),
    receivedAt: time('When its first event was stored'),
  },
  { description: 'One agent execution, as operators see it' },
)
export type OperatorRun = Static<typeof OperatorRun>

export const OperatorRunPage = Type.Object({ items: Type.Array(OperatorRun), nextCursor })
export type OperatorRunPage = Static<typeof OperatorRunPage>

export const OperatorRunsQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  agentId: Type.Optional(uuid('Internal agent id')),
  sessionId: Type.Optional(Type.String({ minLength: 1, description: 'External session id' })),
  status: Type.Optional(RunStatus),
  from: Type.Optional(time('Runs started at or after this time')),
  to: Type.Optional(time('Runs started before this time')),
})

export const OperatorRunParams = Type.Object({
  environmentId: uuid('Environment id'),
  runId: Type.String({ description: 'External run id, or the internal run UUID' }),
})

export const EVENT_ORDERS = ['time', 'arrival'] as const

export const EventRowsQuery = Type.Object({
  limit: pageLimit(LIMITS.eventsPageDefault, LIMITS.eventsPageMax),
  cursor,
  order: Type.Optional(
    Type.Enum([...EVENT_ORDERS], {
      default: 'time',
      description: 'By event time, or as they arrived. By arrival there is always a nextCursor: ask again to follow',
    }),
  ),
})

export const EventRowPage = Type.Object({ items: Type.Array(EventRow), nextCursor })
export type EventRowPage = Static<typeof EventRowPage>

export const OperatorEventParams = Type.Object({
  environmentId: uuid('Environment id'),
  runId: Type.String({ description: 'External run id, or the internal run UUID' }),
  eventId: Type.String({ description: 'Client event id' }),
})

/** What became of one event: the answer of `tacho doctor --run <id> --event <id>`. */
export const EventTrace = Type.Object(
  {
    outcome: Type.Enum(['stored', 'rejected', 'unknown'], {
      description:
        'stored: on the timeline; rejected: refused, and why; unknown: the service never judged it, or long ago',
    }),
    event: Type.Optional(Event),
    position: Type.Optional(Type.Integer({ minimum: 1, description: 'Place on the timeline of its run, from 1' })),
    countedUsage: Type.Optional(Type.Boolean({ description: 'Whether it added to the usage of its run' })),
    closedRun: Type.Optional(Type.Boolean({ description: 'Whether it is the outcome that closed its run' })),
    rejection: Type.Optional(
      Type.Object({
        code: Type.Enum(Object.keys(REJECTIONS) as RejectionCode[]),
        message: Type.String(),
        rejectedAt: time('When it was last refused'),
      }),
    ),
  },
  { description: 'What became of one event' },
)
export type EventTrace = Static<typeof EventTrace>
