import { createHash } from 'node:crypto'
import { toBinary } from '@bufbuild/protobuf'
import { shortenedText } from '@tacho/contract/engine/shown-text.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { Attributes, isObject, plainValue, set, textOf, type Json, type JsonObject, Unreadable } from './attributes.ts'
import { eventMessage } from './messages.ts'
import { LogRecordSchema, type LogRecord } from './otlp_pb.ts'
import type { Sent } from './read-request.ts'
import { envelopeOf, hex, millis, timeFault, type OtlpEvent } from './span-event.ts'
import { costFrom, countFrom, usageFrom } from './call-usage.ts'

/** ERROR and FATAL in OpenTelemetry's logs data model. */
const SEVERITY_ERROR = 17

/** Empty if the record adds nothing to its run. */
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
  // The messages below need the attributes that are left.
  const { sessionId, runId, ...envelope } = envelopeOf(attributes, resource, traceId)
  const agentName = agentRecordName(attributes, body)
  const logEvent = agentName === null ? logRecord(record, attributes, body) : agentRecord(agentName, attributes)
  if (logEvent === null) return []
  const spanId = hex(record.spanId)
  return [
    {
      ...envelope,
      // A conversation without traces is one run. The session of a coding agent is one run even with traces.
      runId: (agentName !== null && runId === traceId ? sessionId : undefined) ?? (runId || sessionId || ''),
      ...(sessionId === undefined ? {} : { sessionId }),
      eventId: `log-${idOf(record, resource.attributes, scope)}`,
      eventType: logEvent.eventType,
      label: shortenedText(logEvent.label, LIMITS.labelChars),
      timestamp: millis(at),
      payload: set({
        ...logEvent.payload,
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

/** Records have no id, so it is a hash: a retry sends the same content from the same process. */
function idOf(record: LogRecord, ...sender: unknown[]): string {
  const hash = createHash('sha256').update(JSON.stringify(sender)).update(toBinary(LogRecordSchema, record))
  return hash.digest('hex').slice(0, 32)
}

/** Claude Code (`claude_code.*`) and Codex (`codex.*`). docs/otlp.md */

type AgentRecord = Pick<OtlpEvent, 'eventType' | 'label' | 'payload'>

function agentRecordName(attributes: Attributes, body: Json | undefined): string | null {
  const name = typeof body === 'string' && body.startsWith('claude_code.') ? body : attributes.text('event.name')
  return name !== undefined && /^(claude_code|codex)\.\w/.test(name) ? name : null
}

function agentRecord(name: string, attributes: Attributes): AgentRecord | null {
  attributes.take('event.name')
  attributes.take('event.timestamp')
  const [, event = ''] = name.split('.', 2)
  switch (event) {
    case 'user_prompt':
      return { eventType: 'USER_INPUT', label: 'user prompt', payload: set({ text: attributes.takeText('prompt') }) }
    case 'assistant_response':
      return { eventType: 'AGENT_STEP', label: 'response', payload: set({ text: attributes.takeText('response') }) }
    case 'api_error':
      return failed(name, attributes)
    case 'api_request':
      // Codex reports the tokens of a request when its stream completes.
      return name === 'claude_code.api_request' ? modelCall(attributes) : failed(name, attributes)
    case 'sse_event':
    case 'websocket_event':
      if (attributes.peek('error.message') !== undefined) return failed(name, attributes)
      return attributes.peek('input_token_count') === undefined ? null : modelCall(attributes)
    case 'tool_result':
      return toolResult(attributes)
    case 'tool_decision':
      return toolDecision(attributes)
    default:
      return step(name, attributes)
  }
}

const step = (name: string, attributes: Attributes): AgentRecord => ({
  eventType: 'AGENT_STEP',
  label: name,
  payload: set({ latency: takeNumber(attributes, 'duration_ms') }),
})

function failed(name: string, attributes: Attributes): AgentRecord {
  const message = attributes.takeText('error', 'error.message')
  const status = Number(attributes.peek('http.response.status_code') ?? 0)
  if (message === undefined && status < 400 && name !== 'claude_code.api_error') return step(name, attributes)
  const code = takeNumber(attributes, 'status_code', 'http.response.status_code')?.toString()
  const payload = set({
    message: message ?? `Status ${code ?? 'unknown'}`,
    code,
    model: attributes.takeText('model'),
    latency: takeNumber(attributes, 'duration_ms'),
    attempt: takeNumber(attributes, 'attempt'),
  })
  return { eventType: 'ERROR', label: name, payload }
}

function modelCall(attributes: Attributes): AgentRecord {
  const take = (...names: string[]) => takeNumber(attributes, ...names)
  const model = attributes.takeText('model')
  const count = (name: string) => {
    const sent = attributes.take(name)
    return sent === undefined ? undefined : countFrom(sent)
  }
  // Claude Code counts cached tokens separately, as Anthropic does; Codex counts them among the others.
  const usage = usageFrom(
    set({
      input_tokens: count('input_tokens'),
      output_tokens: count('output_tokens'),
      cache_read_input_tokens: count('cache_read_tokens'),
      cache_creation_input_tokens: count('cache_creation_tokens'),
      prompt_tokens: count('input_token_count'),
      completion_tokens: count('output_token_count'),
      cachedTokens: count('cached_token_count'),
      cacheWriteTokens: count('cache_write_token_count'),
      reasoningTokens: count('reasoning_token_count'),
    }),
  )
  const cost = attributes.take('cost_usd')
  const payload = set({
    model,
    usage,
    cost: cost === undefined ? undefined : costFrom(cost),
    latency: take('duration_ms'),
    timeToFirstOutput: take('ttft_ms'),
  })
  return { eventType: 'LLM_CALL', label: model ?? 'model call', payload }
}

function toolResult(attributes: Attributes): AgentRecord {
  const toolName = attributes.takeText('tool_name')
  const success = attributes.take('success')
  const isFailed = success === 'false' || success === false
  const output = attributes.takeJson('output')
  const payload = set({
    toolName,
    ...callOf(attributes),
    output: isFailed ? undefined : output,
    error: isFailed
      ? set({ message: attributes.take('error') ?? output, type: attributes.take('error_type') })
      : undefined,
    latency: takeNumber(attributes, 'duration_ms'),
  })
  return { eventType: 'TOOL_CALL', label: toolName ?? 'tool', payload }
}

const ALLOWED = new Set(['accept', 'approved', 'approved_for_session', 'approved_execpolicy_amendment'])

/** A decision by the agent's own rules or its user, not by a policy of this service. */
function toolDecision(attributes: Attributes): AgentRecord {
  const toolName = attributes.takeText('tool_name')
  const decision = attributes.takeText('decision')
  const action = ALLOWED.has(decision ?? '') ? 'ALLOW' : 'BLOCK'
  const source = attributes.takeText('source')
  const payload = set({ action, toolName, decision, source, ...callOf(attributes) })
  return { eventType: 'POLICY_DECISION', label: `${action} ${toolName ?? 'tool'}`, payload }
}

function callOf(attributes: Attributes): Record<string, Json | undefined> {
  const input = attributes.takeJson('tool_input', 'arguments')
  return {
    toolCallId: attributes.takeText('tool_use_id', 'call_id'),
    input: input ?? attributes.takeJson('tool_parameters'),
  }
}

/** Claude Code and Codex send some numbers as texts. */
function takeNumber(attributes: Attributes, ...names: string[]): number | undefined {
  const peekedValue = attributes.peek(...names)
  const number = typeof peekedValue === 'number' ? peekedValue : Number(textOf(peekedValue) ?? Number.NaN)
  if (!Number.isFinite(number)) return undefined
  attributes.take(...names)
  return number
}
