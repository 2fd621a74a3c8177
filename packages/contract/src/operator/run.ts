import Type, { type Static } from 'typebox'
import { Event, EventRow } from '../event.ts'
import { cursor, id, nextCursor, nullableText, pageLimit, time, uuid } from '../fields.ts'
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
  { $id: 'OperatorRun', description: 'One agent execution, as operators see it' },
)
export type OperatorRun = Static<typeof OperatorRun>

export const OperatorRunPage = Type.Object({ items: Type.Array(OperatorRun), nextCursor }, { $id: 'OperatorRunPage' })
export type OperatorRunPage = Static<typeof OperatorRunPage>

export const OperatorRunsQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  agentId: Type.Optional(uuid('Internal agent id')),
  agent: Type.Optional(
    id(
      LIMITS.searchChars,
      'Runs of the agents whose external id or name is this text. Agents with an id are found by name among the newest ' +
        `${LIMITS.searchedAgents} of the environment, at most ${LIMITS.searchedAgentsOfName} of one name`,
    ),
  ),
  sessionId: Type.Optional(
    Type.String({ minLength: 1, maxLength: LIMITS.textChars, description: 'External session id' }),
  ),
  status: Type.Optional(RunStatus),
  from: Type.Optional(time('Runs started at or after this time')),
  to: Type.Optional(time('Runs started before this time')),
  q: Type.Optional(
    id(
      LIMITS.searchChars,
      'Search: runs whose external id begins with this text, or whose session id, agent id or agent name is this text. ' +
        'Together with the other filters. Letters match exactly. When more than ' +
        `${LIMITS.searchedRunIds} run ids begin with it, the last ${LIMITS.searchedRunIds} in code point order are ` +
        `looked at; agents with an id are found by name among the newest ${LIMITS.searchedAgents} of the environment, ` +
        `at most ${LIMITS.searchedAgentsOfName} of one name`,
    ),
  ),
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
  eventType: Type.Optional(id(LIMITS.eventTypeChars, 'Events of exactly this type')),
  q: Type.Optional(
    id(
      LIMITS.searchChars,
      'Search: events whose label contains this text; A to Z match a to z. With it, or with eventType, a page ends ' +
        `after looking at ${LIMITS.eventsLookedAt} rows: it may have few items or none, and still a nextCursor`,
    ),
  ),
})

export const EventRowPage = Type.Object({ items: Type.Array(EventRow), nextCursor }, { $id: 'EventRowPage' })
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
  { $id: 'EventTrace', description: 'What became of one event' },
)
export type EventTrace = Static<typeof EventTrace>
