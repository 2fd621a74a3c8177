/** Reads the steps of a run from its events, and finds what makes a replay impossible. */
import { isObject, type Json } from '@tacho/contract/record/payload-reader.ts'
import {
  isHttpStatus,
  type ApprovalStep,
  type EndStep,
  type ModelStep,
  type Obstacle,
  type TapeHead,
  type TapeStep,
  type ToolStep,
} from './tape.ts'

/** An event, as the service returns it or a client sent it. */
export interface RunEvent {
  readonly eventId: string
  readonly eventType: string
  readonly label: string
  /** ISO 8601, or Unix time in milliseconds. */
  readonly timestamp: string | number
  readonly clientId: string
  readonly agentName: string
  readonly spanId?: string | null
  readonly parentSpanId?: string | null
  readonly payload: Json
  readonly payloadRemoved?: unknown
  readonly payloadDamaged?: unknown
}

/** Decisions of people, by id of the approval. */
export type Decided = ReadonlyMap<string, { status: string; decisionReason: string | null }>

export interface RecordedSteps {
  steps: TapeStep[]
  obstacles: Obstacle[]
  recordedBy: TapeHead['recordedBy']
  outcome: string
  agent: string
}

type Draft = TapeStep & { event: RunEvent }

/** Model calls that overlap by at most this time may be consecutive, because clocks round. */
const ROUNDING_MS = 2

export function recordedSteps(events: readonly RunEvent[], decided: Decided = new Map()): RecordedSteps {
  const times = events.map(({ timestamp }) => (typeof timestamp === 'number' ? timestamp : Date.parse(timestamp)))
  const starts = new Map<string, number>()
  const drafts: Draft[] = []
  let outcome = 'RUNNING'
  for (const [at, event] of events.entries()) {
    const { eventType, eventId, payload } = event
    const agent = textIn(payload, 'agent')
    const timed = { step: 0, from: at, to: at, ...(agent !== undefined && { agent }), event }
    if (eventType === 'TOOL_START') starts.set(eventId, at)
    else if (eventType === 'LLM_CALL') {
      const began = (times[at] ?? 0) - (numberIn(payload, 'latency') ?? 0)
      drafts.push({ ...timed, ...modelStep(payload), from: beginOf(times, at, began) })
    } else if (eventType === 'TOOL_CALL') {
      const start = starts.get(String(payload['startEventId']))
      const isGuarded = start !== undefined || payload['outcome'] === 'never_ran'
      drafts.push({ ...timed, ...toolStep(payload, event.label, isGuarded), from: start ?? at })
    } else if (eventType === 'POLICY_DECISION') {
      drafts.push({ ...timed, ...decisionStep(payload, event.label) })
      const id = textIn(payload, 'approvalId')
      const isAsked = payload['action'] === 'REQUIRE_APPROVAL' && id !== undefined
      if (isAsked) drafts.push({ ...timed, ...approvalStep(payload, event.label, decided.get(id)) })
    } else if (eventType === 'USER_INPUT') {
      drafts.push({ ...timed, kind: 'input', text: payload['text'] ?? null })
    } else if (eventType === 'SESSION_OUTCOME') {
      outcome = textIn(payload, 'status') ?? outcome
      drafts.push({ ...timed, ...endStep(payload, outcome) })
    }
  }
  drafts.sort((a, b) => a.from - b.from || a.to - b.to)
  for (const [index, draft] of drafts.entries()) draft.step = index + 1
  nameWithin(drafts, events)
  // Ignore steps inside a guarded call, because they do not happen in a replay.
  const obstacles = drafts.flatMap((draft) => (draft.within === undefined ? obstaclesOf(draft) : []))
  if (!drafts.some(({ kind }) => kind === 'end')) obstacles.push({ step: 0, why: 'the run has not ended' })
  nameAsking(drafts)
  const steps = drafts.map(({ event: _, ...step }) => step as TapeStep)
  const recordedBy = events.some(({ payload }) => payload['recordedBy'] === 'wire')
    ? 'wire'
    : events.some(({ payload }) => isObject(payload['attributes']))
      ? 'otlp'
      : 'sdk'
  return { steps, obstacles, recordedBy, outcome, agent: events[0]?.agentName ?? '' }
}

/** Index of the first event after the call began. Events carry the time of their end. */
function beginOf(times: readonly number[], at: number, began: number): number {
  let from = at
  while (from > 0 && (times[from - 1] ?? 0) > began + ROUNDING_MS) from--
  return from
}

function modelStep(payload: Json): Omit<ModelStep, 'step' | 'from' | 'to'> {
  const { messages, output, toolCalls, finishReason, usage, error, timeToFirstOutput } = payload
  return {
    kind: 'model',
    ...set({ model: textIn(payload, 'model'), messages, output, toolCalls, finishReason, usage }),
    ...set({ cost: numberIn(payload, 'cost'), latency: numberIn(payload, 'latency'), error }),
    ...(timeToFirstOutput !== undefined && { streamed: true }),
    ...wireOf(payload['wire']),
  }
}

/** The response as `tacho record` received it, unless it was too long to store. */
function wireOf(wire: unknown): Pick<ModelStep, 'wire'> {
  const { protocol, status, isStream, body, isWhole } = isObject(wire) ? wire : {}
  if (isWhole !== true || !isHttpStatus(status) || typeof body !== 'string') return {}
  return { wire: { protocol: String(protocol), status, isStream: isStream === true, body } }
}

function toolStep(payload: Json, label: string, isGuarded: boolean): Omit<ToolStep, 'step' | 'from' | 'to'> {
  const { input, output, error } = payload
  return {
    kind: 'tool',
    tool: textIn(payload, 'toolName') ?? label,
    outcome: textIn(payload, 'outcome') ?? (error === undefined ? 'returned' : 'failed'),
    ...set({ input, output, error, inputHash: textIn(payload, 'inputHash'), callId: textIn(payload, 'toolCallId') }),
    ...set({ latency: numberIn(payload, 'latency') }),
    ...(!isGuarded && { unguarded: true }),
  }
}

function decisionStep(payload: Json, label: string) {
  const { input, policyIds } = payload
  const policies = Array.isArray(policyIds) ? policyIds.map(String) : []
  const action = textIn(payload, 'action') ?? label
  return { kind: 'decision' as const, tool: textIn(payload, 'toolName') ?? label, action, policies, ...set({ input }) }
}

function approvalStep(
  payload: Json,
  label: string,
  decided: { status: string; decisionReason: string | null } | undefined,
): Omit<ApprovalStep, 'step' | 'from' | 'to'> {
  return {
    kind: 'approval',
    tool: textIn(payload, 'toolName') ?? label,
    status: decided?.status ?? 'UNKNOWN',
    ...set({ inputHash: textIn(payload, 'inputHash'), reason: decided?.decisionReason ?? undefined }),
  }
}

function endStep(payload: Json, status: string): Omit<EndStep, 'step' | 'from' | 'to'> {
  return { kind: 'end', status, ...set({ error: payload['error'] }) }
}

function obstaclesOf({ event, ...step }: Draft): Obstacle[] {
  const why = (reason: string): Obstacle[] => [{ step: step.step, why: reason }]
  const { payload, payloadRemoved, payloadDamaged } = event
  if (payloadRemoved) return why('retention removed the payload')
  if (payloadDamaged) return why('the stored payload is damaged')
  if (payload['tachoShortened'] !== undefined) return why('the payload was shortened')
  if (step.kind === 'model') {
    if (step.messages === undefined) return why('the request of the model is not recorded: metadata only')
    const hasAnswer = step.output !== undefined || step.toolCalls !== undefined || step.error !== undefined
    if (!hasAnswer) return why('the model call has no answer')
  }
  if (step.kind === 'tool') {
    if (step.unguarded) return why(`${step.tool} is not guarded, so a replay runs it`)
    if (step.outcome === 'did_not_report') return why(`the result of ${step.tool} is not known`)
    const hasResult = step.output !== undefined || step.error !== undefined
    if (!hasResult || (step.input === undefined && step.outcome !== 'never_ran'))
      return why(`input or result of ${step.tool} is not recorded: metadata only`)
  }
  if (step.kind === 'approval' && !['APPROVED', 'REJECTED', 'EXPIRED'].includes(step.status))
    return why(`the answer to the approval of ${step.tool} is not known`)
  return []
}

/** Notes the model call that asked for each tool call: calls of one answer may run at once. */
function nameAsking(drafts: readonly Draft[]): void {
  const asking = new Map<string, number>()
  for (const draft of drafts) {
    if (draft.kind === 'model' && Array.isArray(draft.toolCalls)) {
      for (const call of draft.toolCalls) if (isObject(call)) asking.set(String(call['id']), draft.step)
    } else if (draft.kind === 'tool' && draft.callId !== undefined) {
      const askedBy = asking.get(draft.callId)
      if (askedBy !== undefined) draft.askedBy = askedBy
    }
  }
}

const SPANS_MAX = 100

/** Notes the guarded call around each step. A guarded call may call models and guarded tools inside its own span. */
function nameWithin(drafts: readonly Draft[], events: readonly RunEvent[]): void {
  const parents = new Map(events.map(({ spanId, parentSpanId }) => [spanId, parentSpanId]))
  const guarded = drafts.filter((draft) => draft.kind === 'tool' && !draft.unguarded && draft.to > draft.from)
  const calls = new Map(guarded.map((draft) => [draft.event.spanId, draft]))
  for (const draft of drafts) {
    let span = draft.event.spanId
    for (let depth = 0; span && depth < SPANS_MAX; depth++, span = parents.get(span)) {
      const outer = calls.get(span)
      if (!outer || draft.from <= outer.from || draft.to >= outer.to) continue
      draft.within = outer.step
      break
    }
  }
}

function textIn(payload: Json, name: string): string | undefined {
  const value = payload[name]
  return typeof value === 'string' ? value : undefined
}

function numberIn(payload: Json, name: string): number | undefined {
  const value = payload[name]
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

function set<Members extends object>(
  members: Members,
): { [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never
}
