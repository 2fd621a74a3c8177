import { toBinary } from '@bufbuild/protobuf'
import { createHash } from 'node:crypto'
import { fit } from '@tacho/contract/engine/fit.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { Attributes, isObject, plainValue, set, textOf, type Json, type JsonObject } from './attributes.ts'
import { agentRecord, agentRecordName } from './coding-agent.ts'
import { eventMessage } from './messages.ts'
import { LogRecordSchema, type LogRecord } from './otlp_pb.ts'
import type { Sent } from './read-request.ts'
import { Unreadable } from './unreadable.ts'
import { envelopeOf, hex, millis, timeFault, type OtlpEvent } from './span-event.ts'

/** ERROR and FATAL in OpenTelemetry's logs data model. */
const SEVERITY_ERROR = 17

/** Empty if it adds nothing to its run. */
export function logEvents({ resource, scope, item: record }: Sent<LogRecord>): OtlpEvent[] | Unreadable {
  if (record instanceof Unreadable) return record
  const at = record.timeUnixNano || record.observedTimeUnixNano
  const fault = timeFault('timeUnixNano', at)
  if (fault !== null) {
    const names = { traceId: hex(record.traceId), name: record.eventName || record.severityText }
    return new Unreadable(names, fault)
  }
  const attributes = new Attributes(record.attributes)
  const body = record.body === undefined ? undefined : plainValue(record.body)
  const traceId = hex(record.traceId)
  // The messages below take the remaining attributes.
  const { sessionId, runId, ...envelope } = envelopeOf(attributes, resource, traceId)
  const agentName = agentRecordName(attributes, body)
  const told = agentName === null ? logRecord(record, attributes, body) : agentRecord(agentName, attributes)
  if (told === null) return []
  const spanId = hex(record.spanId)
  return [
    {
      ...envelope,
      // A conversation without traces is one run. A coding agent's session is one run even with traces.
      runId: (agentName !== null && runId === traceId ? sessionId : undefined) ?? (runId || sessionId || ''),
      ...(sessionId === undefined ? {} : { sessionId }),
      eventId: `log-${idOf(record, resource.attributes, scope)}`,
      eventType: told.eventType,
      label: fit(told.label, LIMITS.labelChars),
      timestamp: millis(at),
      payload: set({
        ...told.payload,
        severity: record.severityText || undefined,
        attributes: attributes.rest(),
        dropped: attributes.dropped > 0 ? { attributes: attributes.dropped } : undefined,
        resource: resource.attributes,
        scope,
      }),
      ...(spanId === '' ? {} : { parentSpanId: spanId }),
    },
  ]
}

function logRecord(record: LogRecord, attributes: Attributes, body: Json | undefined) {
  const name = record.eventName || attributes.takeText('event.name') || ''
  const isError = record.severityNumber >= SEVERITY_ERROR
  const message = eventMessage(name, attributes, body)
  const text = typeof body === 'string' ? body : undefined
  const payload: JsonObject = set({
    event: name === '' ? undefined : name,
    text: message ? textOf(isObject(message.message) ? message.message['content'] : undefined) : text,
    message: isError ? (textOf(attributes.take('exception.message')) ?? text ?? message?.message) : message?.message,
    code: isError ? attributes.take('exception.type', 'error.type') : undefined,
    stack: isError ? attributes.take('exception.stacktrace') : undefined,
    body: message || text !== undefined ? undefined : (body as Json | undefined),
  })
  const eventType = isError ? 'ERROR' : name === 'gen_ai.user.message' ? 'USER_INPUT' : 'AGENT_STEP'
  return { eventType, label: name || text?.trimStart().split('\n', 1)[0] || eventType, payload }
}

/** Records have no id. A retry sends the same content from the same process. */
function idOf(record: LogRecord, ...sender: unknown[]): string {
  const hash = createHash('sha256').update(JSON.stringify(sender)).update(toBinary(LogRecordSchema, record))
  return hash.digest('hex').slice(0, 32)
}
