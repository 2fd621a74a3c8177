/**
 * A client and a gateway in front of it (`litellm_request` around `openai.chat`), or two instrumentations of one client,
 * each send a span of one model call. The span with the most complete usage counts; of equal ones, the innermost. It also
 * gets the counts that only the others have. The others show `notCounted`.
 *
 * Spans are one call if one is inside the other, not below a tool, and their operations and models do not differ. They do
 * differ if a gateway calls an embedding model for its semantic cache, or another model for its guard.
 */
import { callCounts, type CallCounts } from '@tacho/contract/record/usage-shapes.ts'
import { isObject, textOf, type JsonObject } from './attributes.ts'
import type { OtlpEvent } from './span-event.ts'

/**
 * Marks spans of the same call. Compares only spans of one request: they end within milliseconds, and exporters send them
 * together.
 */
export function markSameCalls(events: readonly OtlpEvent[]): void {
  const spans = new Map<string, OtlpEvent>()
  for (const event of events) if (event.spanId !== undefined) spans.set(`${event.runId} ${event.spanId}`, event)
  const calls = events.filter(({ eventType }) => eventType === 'LLM_CALL')
  const outerOf = new Map<OtlpEvent, OtlpEvent>()
  const waitsFor = new Map<OtlpEvent, number>()
  for (const call of calls) {
    const outer = sameCallAround(call, spans)
    if (outer === undefined) continue
    outerOf.set(call, outer)
    waitsFor.set(outer, (waitsFor.get(outer) ?? 0) + 1)
  }
  /** For each call, the spans that count among it and those inside it. */
  const counted = new Map<OtlpEvent, OtlpEvent[]>()
  const inside = new Map<OtlpEvent, OtlpEvent[]>(Array.from(waitsFor.keys(), (outer) => [outer, []]))
  // Spans that name each other as parents wait for each other, so one of them must begin after all others.
  const waiting = calls.filter((call) => waitsFor.has(call))
  const ready = [...waiting.toReversed(), ...calls.filter((call) => !waitsFor.has(call))]
  for (let call = ready.pop(); call !== undefined; call = ready.pop()) {
    if (counted.has(call)) continue
    const best = countedOf(call, inside.get(call) ?? [])
    counted.set(call, best)
    const outer = outerOf.get(call)
    if (outer === undefined || counted.has(outer)) continue
    for (const one of best) inside.get(outer)?.push(one)
    const left = (waitsFor.get(outer) ?? 0) - 1
    waitsFor.set(outer, left)
    if (left === 0) ready.push(outer)
  }
}

const LEVELS_MAX = 20

function sameCallAround(call: OtlpEvent, spans: ReadonlyMap<string, OtlpEvent>): OtlpEvent | undefined {
  let around: OtlpEvent | undefined = call
  for (let level = 0; level < LEVELS_MAX; level++) {
    around = around.parentSpanId === undefined ? undefined : spans.get(`${around.runId} ${around.parentSpanId}`)
    // A model call inside a tool is a separate call.
    if (around === undefined || around === call || around.eventType === 'TOOL_CALL') return undefined
    if (around.eventType === 'LLM_CALL' && isSameCall(call, around)) return around
  }
  return undefined
}

function isSameCall(one: OtlpEvent, other: OtlpEvent): boolean {
  const [operation, otherOperation] = [operationOf(one), operationOf(other)]
  if (operation !== otherOperation && operation !== '' && otherOperation !== '') return false
  const [models, others] = [modelsOf(one), modelsOf(other)]
  return models.size === 0 || others.size === 0 || !models.isDisjointFrom(others)
}

const OPERATION = ['gen_ai.operation.name', 'llm.request.type', 'openinference.span.kind', 'ai.operationId']
/** Instrumentations use either name for an answer of Gemini. */
const ALIASES = new Map([
  ['generate_content', 'chat'],
  ['completion', 'text_completion'],
  ['embedding', 'embeddings'],
  ...['chat.completions', 'chat.streaming_completions'].map((name) => [name, 'chat'] as const),
  ...['text.completions', 'text.streaming_completions'].map((name) => [name, 'text_completion'] as const),
])

/** Empty: any call that answers with text. */
function operationOf({ payload: { attributes } }: OtlpEvent): string {
  const sent = isObject(attributes) ? OPERATION.map((name) => textOf(attributes[name])).find(Boolean) : undefined
  const name = sent?.toLowerCase() ?? ''
  if (/embed/.test(name)) return 'embeddings'
  return name === 'llm' || name.startsWith('ai.') ? '' : (ALIASES.get(name) ?? name)
}

/** The requested and the answering model, without the provider prefix of gateways and without dates. */
function modelsOf({ payload: { model, requestModel } }: OtlpEvent): Set<string> {
  const names = [textOf(model), textOf(requestModel)].filter((name) => name !== undefined)
  return new Set(
    names.map((name) => (name.toLowerCase().split('/').at(-1) ?? '').replace(/[-@]20\d\d-?[01]\d-?[0-3]\d$/, '')),
  )
}

function countedOf(outer: OtlpEvent, inner: readonly OtlpEvent[]): OtlpEvent[] {
  const [first] = inner
  if (first === undefined) return [outer]
  if (inner.length === 1) {
    const [best, other] = knownOf(first) >= knownOf(outer) ? [first, outer] : [outer, first]
    complete(best, other)
    return only([best], [other])
  }
  // The inner spans are attempts of one client. The outer span's usage may be their sum, or that of the last attempt.
  const isBetter =
    inner.some((call) => knownOf(call) < knownOf(outer)) &&
    (['promptTokens', 'completionTokens'] as const).every((name) => countOf(outer, name) >= sumOf(inner, name))
  if (isBetter) return only([outer], inner)
  const isCounted = (call: OtlpEvent) => knownOf(outer) === 0 || knownOf(call) > 0 || costOf(call.payload) > 0
  return only(inner.filter(isCounted), [outer, ...inner.filter((call) => !isCounted(call))])
}

function only(counted: OtlpEvent[], repeated: readonly OtlpEvent[]): OtlpEvent[] {
  for (const { payload } of repeated) payload['notCounted'] = 'same_call'
  return counted
}

type Whole = 'promptTokens' | 'completionTokens' | 'totalTokens'
const WHOLES = ['promptTokens', 'completionTokens', 'totalTokens'] as const satisfies Whole[]
const PARTS = {
  promptTokens: [
    'cachedTokens',
    'cacheWriteTokens',
    'cacheWrite1hTokens',
    'audioInputTokens',
    'cachedAudioTokens',
    'imageInputTokens',
    'cachedImageTokens',
  ],
  completionTokens: ['reasoningTokens', 'audioOutputTokens', 'imageOutputTokens'],
  totalTokens: [],
} as const satisfies Record<Whole, readonly (keyof CallCounts)[]>

const countOf = ({ payload }: OtlpEvent, name: Whole): number => callCounts(payload['usage'])?.[name] ?? 0
const sumOf = (calls: readonly OtlpEvent[], name: Whole) => calls.reduce((sum, call) => sum + countOf(call, name), 0)

/** How much of its usage a span knows. A stream without usage reports zero. */
function knownOf(call: OtlpEvent): number {
  const counts = (['promptTokens', 'completionTokens'] as const).filter((name) => countOf(call, name) > 0).length
  return counts > 0 ? counts + 1 : Math.min(countOf(call, 'totalTokens'), 1)
}

const costOf = ({ cost }: JsonObject) => (typeof cost === 'number' && cost > 0 ? cost : 0)

/** Adds each count that is missing, and the parts of a count that is equal. */
function complete({ payload }: OtlpEvent, other: OtlpEvent): void {
  const known = callCounts(payload['usage'])
  const more = callCounts(other.payload['usage'])
  const usage: JsonObject = isObject(payload['usage']) ? { ...payload['usage'] } : {}
  for (const whole of more === null ? [] : WHOLES) {
    const count = known?.[whole] ?? 0
    const value = more?.[whole] ?? 0
    if (count === 0 && value > 0) usage[whole] = value
    if (value === 0 || (count !== 0 && count !== value)) continue
    for (const callPart of PARTS[whole]) {
      const tokens = more?.[callPart] ?? 0
      if (tokens > 0 && (known?.[callPart] ?? 0) === 0) usage[callPart] = tokens
    }
  }
  // One of the spans may report the sum without a part that only the other has.
  const { promptTokens, completionTokens, totalTokens } = callCounts(usage) ?? {}
  const sum = (promptTokens ?? 0) + (completionTokens ?? 0)
  if (typeof totalTokens === 'number' && totalTokens < sum) usage['totalTokens'] = sum
  if (Object.keys(usage).length > 0) payload['usage'] = usage
  const cost = costOf(other.payload)
  if (cost > 0 && costOf(payload) === 0) payload['cost'] = cost
}
