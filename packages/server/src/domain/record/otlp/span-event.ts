/** Converts a span to one event at the span's start. The root of a trace also becomes the outcome of the run. docs/otlp.md */
import { shortenedText } from '@tacho/contract/engine/shown-text.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { hasAtMost } from '../../web/text.ts'
import { Attributes, isObject, set, type Json, type JsonObject, Unreadable } from './attributes.ts'
import { spanCost, spanUsage } from './call-usage.ts'
import { eventMessage, inputMessages, oneOrAll, outputOf } from './messages.ts'
import type { Link, Span } from './otlp_pb.ts'
import type { Resource, Sent } from './read-request.ts'

/** An event as in the batch endpoint. Its texts can still exceed a limit. */
export interface OtlpEvent {
  eventId: string
  clientId: string
  runId: string
  sessionId?: string
  agentId?: string
  agentName: string
  /** True: the span names the agent. False: the resource does. */
  namesAgent: boolean
  eventType: string
  label: string
  timestamp: number
  payload: JsonObject
  spanId?: string
  parentSpanId?: string
}

type EventType = 'LLM_CALL' | 'TOOL_CALL' | 'AGENT_STEP'

const NANOS_PER_MS = 1_000_000n
const STATUS_ERROR = 2

export function spanEvents({ resource, scope, item: span }: Sent<Span>): OtlpEvent[] | Unreadable {
  if (span instanceof Unreadable) return span
  const fault =
    idFault('traceId', span.traceId, 16) ??
    idFault('spanId', span.spanId, 8) ??
    timeFault('startTimeUnixNano', span.startTimeUnixNano)
  if (fault !== null) {
    return new Unreadable({ traceId: hex(span.traceId), spanId: hex(span.spanId), name: span.name }, fault)
  }
  const attributes = new Attributes(span.attributes)
  const { error, events, messages, answers } = readEvents(span, attributes)
  const startedAt = millis(span.startTimeUnixNano)
  const nanos = span.endTimeUnixNano > span.startTimeUnixNano ? span.endTimeUnixNano - span.startTimeUnixNano : 0n
  const endedAt = millis(span.startTimeUnixNano + nanos)
  const spanId = hex(span.spanId)
  const parentSpanId = hex(span.parentSpanId)
  const envelope = envelopeOf(attributes, resource, hex(span.traceId))
  const type = typeOf(attributes)
  const isFailed = span.status?.code === STATUS_ERROR
  const payload = set({
    ...payloadOf(type, attributes, { messages, answers, isFailed }),
    error,
    ...aboutRun(attributes, parentSpanId === ''),
    latency: Number(nanos) / 1e6,
    events,
    links: some(span.links.slice(0, EVENTS_MAX).map(linkOf)),
    dropped: droppedFrom(span, attributes),
    attributes: attributes.rest(),
    resource: resource.attributes,
    scope,
  })
  const event: OtlpEvent = {
    ...envelope,
    eventId: spanId,
    eventType: type,
    label: shortenedText(span.name, LIMITS.labelChars) || type,
    timestamp: startedAt,
    payload,
    spanId,
    ...(parentSpanId === '' ? {} : { parentSpanId }),
  }
  if (parentSpanId !== '') return [event]
  const status = isFailed ? 'FAILED' : 'COMPLETED'
  const outcome: OtlpEvent = {
    ...envelope,
    eventId: `${spanId}-outcome`,
    eventType: 'SESSION_OUTCOME',
    label: status,
    timestamp: endedAt,
    payload: set({ status, error: isFailed ? error : undefined }),
    parentSpanId: spanId,
  }
  return [event, outcome]
}

/** Ids of another size, or of zeros, are invalid (W3C Trace Context). */
function idFault(name: string, id: Uint8Array, bytes: number): string | null {
  if (id.length === 0) return `it has no ${name}`
  if (id.length !== bytes) return `its ${name} must have ${2 * bytes} hex digits`
  return hex(id) === '' ? `its ${name} has only zeros` : null
}

/** Earlier times would be before March 1973, so the exporter did not send nanoseconds. */
const NANOS_FROM = 10n ** 17n

export function timeFault(name: string, nanos: bigint): string | null {
  if (nanos === 0n) return `it has no ${name}`
  return nanos < NANOS_FROM ? `its ${name} must be nanoseconds since 1970` : null
}

/** A text over its limit is not taken: it stays among the attributes. */
export function envelopeOf(attributes: Attributes, resource: Resource, traceId: string) {
  const named = (max: number, ...names: string[]): string | undefined => {
    const text = attributes.text(...names)
    return text !== undefined && hasAtMost(text, max) ? attributes.takeText(...names) : undefined
  }
  const runId = attributes.takeText('tacho.run.id') ?? resource.runId ?? traceId
  const sessionId = named(LIMITS.textChars, 'gen_ai.conversation.id', 'session.id', ...SESSIONS) ?? resource.sessionId
  const agentId = named(LIMITS.textChars, 'gen_ai.agent.id')
  const agentName = named(LIMITS.textChars, 'gen_ai.agent.name', 'agent.name', 'agent_name') ?? agentId
  return {
    clientId: shortenedText(resource.instance ?? resource.service ?? 'opentelemetry', LIMITS.clientIdChars),
    runId,
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(agentId === undefined ? {} : { agentId }),
    agentName: shortenedText(agentName ?? resource.service ?? 'unknown_service', LIMITS.textChars),
    namesAgent: agentName !== undefined,
  }
}

const SESSIONS = [
  'conversation.id',
  'traceloop.association.properties.session_id',
  'ai.telemetry.metadata.sessionId',
  'ai.telemetry.metadata.session_id',
]

const USERS = [
  'user.id',
  'enduser.id',
  'langfuse.user.id',
  'traceloop.association.properties.user_id',
  'ai.telemetry.metadata.userId',
]

/**
 * Tags and metadata of a span belong to the span, unless a name shows that they belong to the trace. They stay among
 * the attributes.
 */
function aboutRun(attributes: Attributes, isRoot: boolean): JsonObject {
  const named = (ofRun: string[], ofSpan: string[]): Json | undefined => {
    const name = [...ofRun, ...(isRoot ? ofSpan : [])].find((one) => attributes.peek(one) !== undefined)
    return name === undefined ? undefined : attributes.peekJson(name)
  }
  const tags = named(['tacho.run.tags', 'langfuse.trace.tags'], ['tag.tags'])
  const whole = named(['tacho.run.metadata', 'langfuse.trace.metadata'], ['metadata'])
  const parts = ['tacho.run.metadata.', 'langfuse.trace.metadata.'].flatMap((prefix) =>
    attributes.namesUnder(prefix).map((name) => [name.slice(prefix.length), attributes.peek(name)] as const),
  )
  const metadata = { ...(isObject(whole) ? (whole as JsonObject) : {}), ...set(Object.fromEntries(parts)) }
  return set({
    userId: attributes.text(...USERS),
    runTags:
      typeof tags === 'string' ? tags.split(',').map((tag) => tag.trim()) : Array.isArray(tags) ? tags : undefined,
    runMetadata: Object.keys(metadata).length === 0 ? undefined : metadata,
  })
}

const LLM_OPERATIONS = new Set(['chat', 'text_completion', 'generate_content', 'embeddings', 'completion'])
/** Semantic Kernel's names of operations. */
const COMPLETIONS = /^(?:chat|text)\.(?:streaming_)?completions$/
const KINDS = new Map<string, EventType>([
  ['LLM', 'LLM_CALL'],
  ['GENERATION', 'LLM_CALL'],
  ['EMBEDDING', 'LLM_CALL'],
  ['TOOL', 'TOOL_CALL'],
])
const OF_MODEL = ['doGenerate', 'doStream', 'doEmbed']

function typeOf(attributes: Attributes): EventType {
  const operation = attributes.text('gen_ai.operation.name')
  if (operation !== undefined && (LLM_OPERATIONS.has(operation) || COMPLETIONS.test(operation))) return 'LLM_CALL'
  if (operation === 'execute_tool' || attributes.text('mcp.method.name') === 'tools/call') return 'TOOL_CALL'
  if (operation !== undefined) return 'AGENT_STEP'
  const kind = attributes.text('openinference.span.kind')
  if (kind !== undefined) return KINDS.get(kind.toUpperCase()) ?? 'AGENT_STEP'
  const vercel = attributes.text('ai.operationId')
  if (vercel === 'ai.toolCall') return 'TOOL_CALL'
  if (vercel !== undefined) return OF_MODEL.includes(vercel.split('.').at(-1) ?? '') ? 'LLM_CALL' : 'AGENT_STEP'
  if (attributes.text('llm.request.type') !== undefined) return 'LLM_CALL'
  const traceloop = attributes.text('traceloop.span.kind')
  if (traceloop !== undefined) return traceloop === 'tool' ? 'TOOL_CALL' : 'AGENT_STEP'
  const langfuse = attributes.text('langfuse.observation.type')
  if (langfuse !== undefined) return KINDS.get(langfuse.toUpperCase()) ?? 'AGENT_STEP'
  if (attributes.text('gen_ai.tool.name') !== undefined) return 'TOOL_CALL'
  return attributes.text('gen_ai.request.model') !== undefined ? 'LLM_CALL' : 'AGENT_STEP'
}

const ANSWERING_MODEL = ['gen_ai.response.model', 'llm.response.model_name', 'ai.response.model']
const ASKED_MODEL = ['gen_ai.request.model', 'llm.request.model_name', 'ai.model.id']
const SOME_MODEL = ['llm.model_name', 'embedding.model_name', 'langfuse.observation.model.name']

interface FromEvents {
  messages: Json[]
  answers: Json[]
  isFailed: boolean
}

function payloadOf(type: EventType, attributes: Attributes, from: FromEvents): Record<string, Json | undefined> {
  if (type === 'LLM_CALL') {
    const model = attributes.takeText(...ANSWERING_MODEL, ...ASKED_MODEL, ...SOME_MODEL)
    return {
      model,
      // Absent if it equals `model`: taking one removes both.
      requestModel: attributes.takeText(...ASKED_MODEL),
      usage: spanUsage(attributes),
      cost: spanCost(attributes),
      messages: inputMessages(attributes) ?? some(from.messages),
      output: outputOf(attributes) ?? oneOrAll(some(from.answers)),
    }
  }
  const input = ['input.value', 'traceloop.entity.input', 'langfuse.observation.input']
  const output = ['output.value', 'traceloop.entity.output', 'langfuse.observation.output']
  if (type === 'TOOL_CALL') {
    return {
      toolName: attributes.takeText('gen_ai.tool.name', 'tool.name', 'ai.toolCall.name', 'traceloop.entity.name'),
      toolCallId: attributes.takeText('gen_ai.tool.call.id', 'tool.id', 'ai.toolCall.id'),
      input: argumentsOf(
        attributes.takeJson(
          'gen_ai.tool.call.arguments',
          'tool_arguments',
          'ai.toolCall.args',
          'ai.toolCall.input',
          ...input,
        ),
      ),
      output: from.isFailed
        ? undefined
        : attributes.takeJson(
            'gen_ai.tool.call.result',
            'tool_response',
            'ai.toolCall.result',
            'ai.toolCall.output',
            ...output,
          ),
    }
  }
  return {
    input: attributes.takeJson(...input) ?? inputMessages(attributes) ?? some(from.messages),
    output: attributes.takeJson(...output) ?? outputOf(attributes) ?? oneOrAll(some(from.answers)),
  }
}

/** Traceloop sends positional and named arguments. Tools mostly get named ones, so take those. */
function argumentsOf(input: Json | undefined): Json | undefined {
  if (!isObject(input)) return input
  const { args, kwargs, ...more } = input
  const areNamed = Array.isArray(args) && args.length === 0 && isObject(kwargs) && Object.keys(more).length === 0
  return areNamed ? kwargs : input
}

function readEvents(span: Span, attributes: Attributes) {
  const messages: Json[] = []
  const answers: Json[] = []
  const events: Json[] = []
  let error: JsonObject | undefined
  for (const { name, timeUnixNano, attributes: pairs } of span.events.slice(0, EVENTS_MAX)) {
    const spanAttributes = new Attributes(pairs)
    const message = eventMessage(name, spanAttributes, undefined)
    if (message !== null) (message.isOutput ? answers : messages).push(message.message)
    else if (name === 'exception' && error === undefined) {
      error = set({
        message: spanAttributes.take('exception.message') ?? span.status?.message,
        type: spanAttributes.take('exception.type'),
        stack: spanAttributes.take('exception.stacktrace'),
      })
    } else {
      // All messages of a model call in one event, the form since 1.37.
      const [sent, answer] = [inputMessages(spanAttributes), outputOf(spanAttributes)]
      if (sent) messages.push(...sent)
      if (answer !== undefined) answers.push(answer)
      events.push(set({ name, timestamp: millis(timeUnixNano), attributes: spanAttributes.rest() }))
    }
  }
  const type = attributes.text('error.type')
  if (error === undefined && span.status?.code === STATUS_ERROR) {
    error = set({ message: span.status.message || 'The span failed and sent no message', type })
  }
  return { error, events: some(events), messages, answers }
}

const EVENTS_MAX = 1_000

function droppedFrom({ events, links }: Span, attributes: Attributes): JsonObject | undefined {
  const tooMany = (list: readonly unknown[]) => Math.max(0, list.length - EVENTS_MAX) || undefined
  const dropped = set({ attributes: attributes.dropped || undefined, events: tooMany(events), links: tooMany(links) })
  return Object.keys(dropped).length > 0 ? dropped : undefined
}

const some = <Item>(list: Item[]): Item[] | undefined => (list.length > 0 ? list : undefined)

function linkOf({ traceId, spanId, attributes }: Link): Json {
  const ids = { traceId: hex(traceId) || undefined, spanId: hex(spanId) || undefined }
  return set({ ...ids, attributes: new Attributes(attributes).rest() })
}

export function hex(bytes: Uint8Array): string {
  return bytes.every((byte) => byte === 0) ? '' : Buffer.from(bytes).toString('hex')
}

export function millis(nanos: bigint): number {
  return Number(nanos / NANOS_PER_MS)
}
