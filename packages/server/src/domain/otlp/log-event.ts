/** A log record as one event. docs/otlp.md */
import { toBinary } from '@bufbuild/protobuf'
import { createHash } from 'node:crypto'
import { LIMITS } from '@tacho/contract/limits.ts'
import { Attributes, isObject, plainValue, set, textOf, type Json } from './attributes.ts'
import { eventMessage } from './messages.ts'
import { LogRecordSchema, type LogRecord } from './otlp_pb.ts'
import type { Sent } from './read-request.ts'
import { envelopeOf, hex, millis, type OtlpEvent } from './span-event.ts'
import { fit } from './text.ts'

/** ERROR and FATAL (OpenTelemetry logs data model, severity number). */
const SEVERITY_ERROR = 17

export function logEvents({ resource, scope, item: record }: Sent<LogRecord>): OtlpEvent[] {
  if (record === null) return []
  const attributes = new Attributes(record.attributes)
  const body = record.body === undefined ? undefined : plainValue(record.body)
  const name = record.eventName || attributes.takeText('event.name') || ''
  const isError = record.severityNumber >= SEVERITY_ERROR
  // Before the message, which takes the remaining attributes.
  const { sessionId, ...envelope } = envelopeOf(attributes, resource, hex(record.traceId))
  const message = eventMessage(name, attributes, body)
  const isUserInput = name === 'gen_ai.user.message'
  const told = typeof body === 'string' ? body : undefined
  const spanId = hex(record.spanId)
  const payload = set({
    event: name === '' ? undefined : name,
    text: message ? textOf(isObject(message.message) ? message.message['content'] : undefined) : told,
    message: isError ? (textOf(attributes.take('exception.message')) ?? told ?? message?.message) : message?.message,
    code: isError ? attributes.take('exception.type', 'error.type') : undefined,
    stack: isError ? attributes.take('exception.stacktrace') : undefined,
    body: message || told !== undefined ? undefined : (body as Json | undefined),
    severity: record.severityText || undefined,
    attributes: message ? undefined : attributes.rest(),
    dropped: attributes.dropped > 0 ? { attributes: attributes.dropped } : undefined,
    resource: resource.attributes,
    scope,
  })
  const eventType = isError ? 'ERROR' : isUserInput ? 'USER_INPUT' : 'AGENT_STEP'
  return [
    {
      ...envelope,
      // A conversation without traces is one run.
      runId: envelope.runId || sessionId || '',
      ...(sessionId === undefined ? {} : { sessionId }),
      eventId: `log-${idOf(record, resource.attributes, scope)}`,
      eventType,
      label: fit(name || told?.trimStart().split('\n', 1)[0] || eventType, LIMITS.labelChars),
      timestamp: millis(record.timeUnixNano || record.observedTimeUnixNano),
      payload,
      ...(spanId === '' ? {} : { parentSpanId: spanId }),
    },
  ]
}

/** Records have no id. A retry sends the same content from the same process, so the id is derived from both. */
function idOf(record: LogRecord, ...sender: unknown[]): string {
  const hash = createHash('sha256').update(JSON.stringify(sender)).update(toBinary(LogRecordSchema, record))
  return hash.digest('hex').slice(0, 32)
}
