import Type, { type Static } from 'typebox'
import {
  anyObject,
  cursor,
  id,
  nextCursor,
  nullableText,
  optionalText,
  pageLimit,
  text,
  time,
  uuid,
} from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { PAYLOADS } from './payload.ts'
import { REJECTIONS, WARNINGS, type RejectionCode, type WarningCode } from '../web/errors.ts'

/** Event, write shape (interface: "Event (write shape, sent in batches)"). Unknown fields are ignored. */
export const EventInput = Type.Object(
  {
    eventId: id(LIMITS.eventIdChars, 'Idempotency key within the run; keep it unchanged across retries'),
    clientId: id(LIMITS.clientIdChars, 'Stable id of the SDK installation or process family'),
    runId: id(LIMITS.runIdChars, 'One agent execution'),
    sessionId: optionalText('Groups related runs, for example one conversation'),
    agentId: optionalText('Stable external agent identifier'),
    agentName: text(LIMITS.textChars, 'Human-readable agent name'),
    eventType: text(LIMITS.eventTypeChars, 'Event category; any text'),
    label: text(LIMITS.labelChars, 'Short timeline label'),
    timestamp: Type.Integer({
      description: 'Unix time in milliseconds; at most 30 days in the past and 5 minutes in the future',
    }),
    payload: Type.Optional(
      Type.Unsafe<Record<string, unknown> | null>({
        type: ['object', 'null'],
        description:
          'Event-specific data, at most 256 KiB of JSON; {} when absent. Conventions depend on the event type',
        'x-conventions': PAYLOADS,
      }),
    ),
    schemaVersion: optionalText("Version of the client's payload contract"),
    workspaceId: optionalText("Consistency hint: if present, it must match the key's workspace"),
    spanId: Type.Optional(
      Type.Unknown({
        description: 'Span id, as text. Also read from the payload. Ignored when it is unusable or too long',
      }),
    ),
    parentSpanId: Type.Optional(Type.Unknown({ description: 'Span id of the parent; the same rules apply' })),
    n: Type.Optional(
      Type.Unknown({
        description:
          'Number of the event, as text: five letters or digits that name the recorder, then 1, 2, 3, … in base 36, then a dot if it ' +
          'is the last. Says what of a run arrived. Ignored when it is unusable',
      }),
    ),
    dropped: Type.Optional(
      Type.Unknown({
        description:
          'What the recorder of `n` dropped so far: by reason, how many and when the last, such as {"queue_full":[3,1790000000000]}',
      }),
    ),
  },
  { $id: 'EventInput', description: 'One event, as clients send it' },
)
export type EventInput = Static<typeof EventInput>

/** Body of POST /events/batch. The schema checks the envelope; each event is validated separately. */
export const EventBatch = Type.Array(EventInput, {
  $id: 'EventBatch',
  minItems: 1,
  maxItems: LIMITS.batchEvents,
  examples: [
    [
      {
        eventId: 'evt-1',
        clientId: 'billing-1',
        runId: 'order-4711',
        agentId: 'billing',
        agentName: 'Billing agent',
        eventType: 'LLM_CALL',
        label: 'Plan the refund',
        timestamp: 1_790_000_000_000,
        payload: {
          model: 'gpt-5',
          latency: 812,
          cost: 0.0042,
          usage: { promptTokens: 512, completionTokens: 48, totalTokens: 560 },
        },
      },
      {
        eventId: 'evt-2',
        clientId: 'billing-1',
        runId: 'order-4711',
        agentId: 'billing',
        agentName: 'Billing agent',
        eventType: 'SESSION_OUTCOME',
        label: 'Refund done',
        timestamp: 1_790_000_001_000,
        payload: { status: 'COMPLETED' },
      },
    ],
  ],
})

export const Rejection = Type.Object(
  {
    index: Type.Integer({ minimum: 0, description: 'Position of the item in the request' }),
    eventId: nullableText('The id that was sent; null if it was missing or unusable'),
    code: Type.Enum(Object.keys(REJECTIONS) as RejectionCode[]),
    message: Type.String(),
  },
  { $id: 'Rejection' },
)
export type Rejection = Static<typeof Rejection>

export const Warning = Type.Object(
  {
    index: Type.Integer({ minimum: 0, description: 'Position of the item in the request' }),
    eventId: Type.String({ description: 'The id that was sent' }),
    code: Type.Enum(Object.keys(WARNINGS) as WarningCode[]),
    message: Type.String(),
  },
  { $id: 'Warning', description: 'A part of an accepted event that was not understood' },
)
export type Warning = Static<typeof Warning>

export const BatchResult = Type.Object(
  {
    success: Type.Boolean({ description: 'True when every event was accepted' }),
    accepted: Type.Integer({ minimum: 0, description: 'Events that are stored, including those stored earlier' }),
    retryableEventIds: Type.Array(Type.String(), { description: 'Retry these events unchanged' }),
    rejectedEventIds: Type.Array(Type.String(), { description: 'Never retry these events' }),
    rejections: Type.Array(Rejection, { description: 'Why each item was rejected' }),
    warnings: Type.Optional(
      Type.Array(Warning, {
        maxItems: LIMITS.batchWarnings,
        description: 'Parts of accepted events that were stored but not understood; absent without any',
      }),
    ),
  },
  { $id: 'BatchResult' },
)
export type BatchResult = Static<typeof BatchResult>

const readFields = {
  id: uuid('Internal event id'),
  eventId: Type.String(),
  runId: Type.String({ description: 'External run id' }),
  sessionId: nullableText('As the client sent it'),
  agentId: nullableText('External agent id, as the client sent it'),
  agentName: Type.String(),
  clientId: Type.String(),
  eventType: Type.String(),
  label: Type.String(),
  timestamp: time("When it happened, by the client's clock"),
  receivedAt: time("When it was stored, by the server's clock"),
  spanId: nullableText('Span id'),
  parentSpanId: nullableText('Parent span id'),
  schemaVersion: nullableText("Version of the client's payload contract"),
}

/**
 * An event as clients read it. `payload` is the exact JSON text that was sent. It is empty if retention removed it, or if the
 * store lost it.
 */
export const Event = Type.Object(
  {
    ...readFields,
    payload: anyObject,
    payloadRemoved: Type.Optional(
      Type.Literal(true, { description: 'The payload was removed by retention, and `payload` is empty' }),
    ),
    payloadDamaged: Type.Optional(
      Type.Literal(true, {
        description: 'The stored payload does not match its checksum, and `payload` is empty',
      }),
    ),
  },
  { $id: 'Event', description: 'One event of a timeline' },
)
export type Event = Static<typeof Event>

/** Event without its payload: a timeline row of the operator API. */
export const EventRow = Type.Object(
  {
    ...readFields,
    latency: Type.Unsafe<number | null>({
      type: ['number', 'null'],
      minimum: 0,
      description: 'How long it took, in milliseconds, as its payload says; null if it does not say so',
    }),
    tokens: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      minimum: 1,
      description: 'Tokens of a model call, in total, as the usage of its run counts them; null: none',
    }),
    cost: Type.Unsafe<number | null>({
      type: ['number', 'null'],
      minimum: 0,
      description: 'What a model call cost, as its client sent it; null: nothing',
    }),
    payloadBytes: Type.Integer({
      minimum: 0,
      description: 'Size of the payload in UTF-8 bytes; 0: removed by retention',
    }),
  },
  { $id: 'EventRow', description: 'One event of a timeline, without its payload' },
)
export type EventRow = Static<typeof EventRow>

export const EventsQuery = Type.Object({ limit: pageLimit(LIMITS.eventsPageDefault, LIMITS.eventsPageMax), cursor })

export const EventPage = Type.Object({ items: Type.Array(Event), nextCursor }, { $id: 'EventPage' })
export type EventPage = Static<typeof EventPage>
