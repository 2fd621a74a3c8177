import Type, { type Static } from 'typebox'
import { Event, EventRow } from '../record/event.ts'
import {
  cursor,
  filterSchemas,
  id,
  nextCursor,
  nullableText,
  nullableTime,
  pageLimit,
  time,
  uuid,
} from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { Completeness } from '../record/completeness.ts'
import { ESTIMATE } from './usage.ts'
import { REJECTIONS, WARNINGS, type RejectionCode, type WarningCode } from '../web/errors.ts'
import { Run, RunStatus } from './run.ts'
import { RUN_FILTERS } from './run-filters.ts'
import { FAILURE_PLACES, RUN_ACTIVITIES, RUN_SORTS, SCORE_KINDS, PROBLEM_KINDS } from '../engine/words.ts'
import { CALL_OUTCOMES, type CallOutcome } from './call-life.ts'

/** Names from the events of a run, in order of arrival. */
const names = (description: string) => Type.Array(Type.String(), { description })

export const RunFailure = Type.Object(
  {
    errorClass: nullableText('Class of the error, such as TimeoutError'),
    message: nullableText(
      'First line of its message; null if it has none, was not captured or was removed with the payloads',
    ),
    place: Type.Enum([...FAILURE_PLACES], { description: 'Where it happened' }),
    name: nullableText('The tool, the model or the step'),
    eventId: Type.String({ description: 'Client id of the event that tells it, which may have a stack and causes' }),
  },
  { $id: 'RunFailure', description: 'Why a run failed or was cancelled' },
)
export type RunFailure = Static<typeof RunFailure>

export const RunScore = Type.Object(
  {
    name: Type.String(),
    kind: Type.Enum([...SCORE_KINDS], { description: 'What its latest value is' }),
    mean: Type.Unsafe<number | null>({
      type: ['number', 'null'],
      description: 'Mean of the numbers, and of yes and no, where yes is 1; null: all are categories',
    }),
    category: nullableText('The latest category; null: all are numbers or yes and no'),
    count: Type.Integer({ minimum: 1, description: 'Scores of this name: of the run and its steps, by all authors' }),
    scoredAt: time('When the latest was given'),
    hidden: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          'Judgements of others that the caller does not see before judging the same; mean and category are then null. Absent: none',
      }),
    ),
  },
  { $id: 'RunScore', description: 'What the scores of one name say of a run' },
)
export type RunScore = Static<typeof RunScore>

/** A person who may judge sees other people's scores only after their own, or on request. */
export const BlindQuery = Type.Object({
  blind: Type.Optional(
    Type.Enum(['true', 'false'], {
      default: 'true',
      description:
        'true: who may judge does not see what other operators and tokens judged of a run or step before judging the same name ' +
        'there. false: shows it',
    }),
  ),
})

/** A run for operators: the public fields and fields only the store knows. */
export const OperatorRun = Type.Object(
  {
    ...Run.properties,
    sessionId: nullableText('Session id of the first event that names one'),
    userId: nullableText('End user: payload.userId of the first event that has one'),
    agentId: nullableText("External agent id; null when only the agent's name is known"),
    ...ESTIMATE,
    eventCount: Type.Integer({ minimum: 0 }),
    differingRetries: Type.Integer({
      minimum: 0,
      description: 'Events sent again with a stored id but different content; the first one was kept',
    }),
    completeness: Completeness,
    errorCount: Type.Integer({
      minimum: 0,
      description:
        'Events that tell an error: ERROR events, failed tool and model calls and steps, an outcome with an error',
    }),
    failure: Type.Union([RunFailure, Type.Null()], {
      description:
        'Why it failed or was cancelled: what its outcome says; unless it was cancelled, else its latest error. Null: no event tells it',
    }),
    title: nullableText(
      'Its first question, in one line, or else the label of its first step; null if its payloads were removed',
    ),
    answer: nullableText('Its latest answer, in one line; null if no event has one, or its payloads were removed'),
    tools: names('Tools that it called'),
    models: names('Models that it called'),
    policyIds: names('Policies that matched a call'),
    promptVersionIds: names('Prompt versions that its events name'),
    tags: names('Tags, from payload.runTags of its events'),
    metadata: Type.Record(Type.String(), Type.String(), {
      description: 'From payload.runMetadata of its events; the latest value of a key, as text',
    }),
    loops: names(
      `Tools that were called with the same input ${LIMITS.loopCalls} times within ${LIMITS.loopWindowCalls} tool calls`,
    ),
    lastEventAt: time('Latest event time of the run'),
    receivedAt: time('When the first event of the run was stored'),
    pinnedAt: nullableTime('When it was pinned, so that retention keeps it; null: it is not'),
    closedByRuleAt: nullableTime(
      'When the stalled rule of the environment closed it, without an outcome; a later outcome replaces this. Null: it did not',
    ),
    activity: Type.Optional(
      Type.Enum([...RUN_ACTIVITIES], {
        description:
          'What a RUNNING run does at the time of the reply: ACTIVE, WAITING_FOR_APPROVAL (a request is pending and its client has not left, or its newest event is WAITING, so it is not stalled), ' +
          'or STALLED (no event for as long as the stalled rule says). Absent for other runs',
      }),
    ),
    payloadsRemoved: Type.Integer({
      minimum: 0,
      description: 'Events whose payloads retention removed; they are shown as {}',
    }),
    scores: Type.Array(RunScore, { description: 'By name' }),
  },
  { $id: 'OperatorRun', description: 'One agent execution, as operators see it' },
)
export type OperatorRun = Static<typeof OperatorRun>

export const OperatorRunPage = Type.Object({ items: Type.Array(OperatorRun), nextCursor }, { $id: 'OperatorRunPage' })
export type OperatorRunPage = Static<typeof OperatorRunPage>

const SCANNED = `A page ends after ${LIMITS.runsLookedAt} examined runs: it can have few or no items and still a nextCursor`

/** Parameters that choose runs. */
export const RUN_FILTER_SCHEMAS = {
  ...filterSchemas(RUN_FILTERS, ({ by, describes }) =>
    by === 'scan' || by === 'trait' ? `${describes}. ${SCANNED}` : describes,
  ),
  status: Type.Optional(RunStatus),
}

export const OperatorRunsQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  ...BlindQuery.properties,
  ...RUN_FILTER_SCHEMAS,
  sort: Type.Optional(
    Type.Enum([...RUN_SORTS], {
      default: 'newest',
      description:
        'The order. newest: by their start. The others list only runs that ended and have some of it, the greatest first: cost: the ' +
        'cost, sent and estimated; length: from the start to the end; tokens: in total; failures: events that tell an error, as ' +
        `errorCount counts them. With other filters that more than ${LIMITS.runsLookedAt} runs match: ${SCANNED}`,
    }),
  ),
  scoreOrder: Type.Optional(
    Type.Enum(['lowest', 'highest'], {
      description: `Only with score: runs by the mean of that score, not by their start; those with categories alone are left out. ${SCANNED}`,
    }),
  ),
})
export type OperatorRunsQuery = Static<typeof OperatorRunsQuery>

export const RunFilter = Type.Object(RUN_FILTER_SCHEMAS, {
  $id: 'RunFilter',
  additionalProperties: false,
  description: 'Filters of the list of runs, as in its query',
})
export type RunFilter = Static<typeof RunFilter>

export const OperatorRunParams = Type.Object({
  environmentId: uuid('Environment id'),
  runId: Type.String({ description: 'External run id, or the internal run UUID' }),
})

export const EVENT_ORDERS = ['time', 'latest', 'arrival'] as const

export const EventRowsQuery = Type.Object({
  limit: pageLimit(LIMITS.eventsPageDefault, LIMITS.eventsPageMax),
  cursor,
  order: Type.Optional(
    Type.Enum([...EVENT_ORDERS], {
      default: 'time',
      description:
        'Event time, latest event time first, or arrival order. Arrival order always returns a nextCursor: use it to follow the run',
    }),
  ),
  before: Type.Optional(
    Type.String({
      maxLength: LIMITS.eventIdChars,
      description: 'Only with the order latest: events before the event with this id, the nearest first',
    }),
  ),
  eventType: Type.Optional(id(LIMITS.eventTypeChars, 'Only events of exactly this type')),
  q: Type.Optional(
    id(
      LIMITS.searchChars,
      'Search: events whose label contains this text; A to Z match a to z. With this or with eventType, a page ends ' +
        `after ${LIMITS.eventsLookedAt} examined rows: it can have few or no items and still a nextCursor`,
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

const { payload, ...eventFields } = Event.properties

/** An event for operators. The payload stays last. */
export const OperatorEvent = Type.Object(
  { ...eventFields, ...ESTIMATE, payload },
  { $id: 'OperatorEvent', description: 'An event on the timeline of a run, as operators see it' },
)
export type OperatorEvent = Static<typeof OperatorEvent>

/** History of one event: the answer to `tacho doctor --run <id> --event <id>`. */
export const EventTrace = Type.Object(
  {
    outcome: Type.Enum(['stored', 'rejected', 'unknown'], {
      description:
        'stored: on the timeline; rejected: see the reason; unknown: the service never received it, or long ago',
    }),
    event: Type.Optional(Event),
    position: Type.Optional(Type.Integer({ minimum: 1, description: 'Position on the timeline of its run, from 1' })),
    countedUsage: Type.Optional(Type.Boolean({ description: 'Whether it added to the usage of its run' })),
    closedRun: Type.Optional(Type.Boolean({ description: 'Whether it is the outcome that closed its run' })),
    warnings: Type.Optional(
      Type.Array(Type.Object({ code: Type.Enum(Object.keys(WARNINGS) as WarningCode[]), message: Type.String() }), {
        description: 'Parts of the stored event that were not understood',
      }),
    ),
    rejection: Type.Optional(
      Type.Object({
        code: Type.Enum(Object.keys(REJECTIONS) as RejectionCode[]),
        message: Type.String(),
        rejectedAt: time('When it was last rejected'),
      }),
    ),
  },
  { $id: 'EventTrace', description: 'What happened to one event' },
)
export type EventTrace = Static<typeof EventTrace>

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
