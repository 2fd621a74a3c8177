/**
 * OpenAI Agents: `addTraceProcessor(recordTraces(tacho))` once, and `const tool = guardTool(agents.tool, tacho)`. Inside
 * `tacho.run`, its traces are part of that run.
 */
import { canRecord, coreOf, isMarked, mark, sharedIn } from '../border.ts'
import { attempt } from '../core.ts'
import type { Failure } from '../delivery/ending.ts'
import type { Outcome } from '../recording/run.ts'
import type { StopSignal } from '../delivery/runtime.ts'
import type { Recorder } from '../recorder.ts'
import type { Tacho } from '../tacho.ts'
import { askedCallsOf, candidatesIn } from './asked-calls.ts'
import { beginPart, enclosingPart, fields, OpenSpans, text, withAgent, type Fields, type RunPart } from './host.ts'
import { messagesOf, parsed, withSystem, type Message } from './messages.ts'
import { nonzeroUsage } from './call-usage.ts'
import { ModelCall, type ModelResult } from './model-call.ts'
import { awaitClient } from './noted-call.ts'
import { guardedFactory, guardedMethods } from './tool-factory.ts'
import { openCallsOf } from './open-calls.ts'
import type { WrapOptions } from '../guard/rules.ts'
import { unguarded } from './unguarded.ts'

/** A trace processor of OpenAI Agents. */
export interface TraceProcessor {
  onTraceStart(trace: unknown): Promise<void>
  onTraceEnd(trace: unknown): Promise<void>
  onSpanStart(span: unknown): Promise<void>
  onSpanEnd(span: unknown): Promise<void>
  shutdown(timeout?: number): Promise<void>
  forceFlush(): Promise<void>
}

interface Open {
  readonly part: RunPart
  readonly begun: number
  /** On a trace: its first agent, which is the run's. */
  first?: string | undefined
  /** On a trace: how its last model call ended. */
  last?: { status: Outcome; failure?: Failure } | undefined
  /** On an agent's span, once a model was called in it. */
  readonly data?: Fields
  readonly around?: Open | undefined
  call?: ModelCall
}

const nothing = async (): Promise<void> => undefined
const NOTHING_RECORDED: TraceProcessor = {
  onTraceStart: nothing,
  onTraceEnd: nothing,
  onSpanStart: nothing,
  onSpanEnd: nothing,
  shutdown: nothing,
  forceFlush: nothing,
}

/**
 * Records the spans of every trace: model calls as LLM_CALL events, hand-offs as HANDOFF events, agents and guardrails as
 * AGENT_STEP events, tools that are not guarded as TOOL_CALL events. Outside `tacho.run`, each trace becomes a run of its own,
 * with its group as session. After a hand-off, events name their agent.
 */
export function recordTraces(tacho: Recorder): TraceProcessor {
  if (!canRecord(tacho, 'Traces')) return NOTHING_RECORDED
  openCallsOf(coreOf(tacho))
  const core = coreOf(tacho)
  /** Open spans, by the id of a trace or span. */
  const open = new OpenSpans<Open>()

  function begin(id: string, runPart: RunPart, more: Pick<Open, 'data' | 'around'> = {}): Open {
    const opened: Open = { part: runPart, begun: core.runtime.now(), ...more }
    open.set(id, opened)
    return opened
  }

  function traceStarted(rawTrace: unknown): void {
    const { traceId, groupId } = fields(rawTrace)
    begin(String(traceId), enclosingPart(tacho, { sessionId: text(groupId) }))
  }

  function traceEnded(rawTrace: unknown): void {
    const ended = open.take(String(fields(rawTrace)['traceId']))
    const { status = 'COMPLETED', failure } = ended?.last ?? {}
    ended?.part.end(status, failure)
  }

  function spanStarted(rawSpan: unknown): void {
    const { spanId, parentId, traceId, spanData } = fields(rawSpan)
    const around = open.get(String(parentId)) ?? open.get(String(traceId))
    const data = fields(spanData)
    noteAgentTool(around, data)
    const opened = begin(String(spanId), agentPart(beginPart(tacho, around?.part.context), data, String(traceId)), {
      data,
      around,
    })
    if (!isModelCall(data)) return
    opened.call = new ModelCall(tacho, () => requestOf(data), { parent: around?.part.context })
    awaitClient(tacho, opened.call, () => requestOf(data))
  }

  /** Notes an agent that begins inside a function: the agent runs as a tool. */
  function noteAgentTool(around: Open | undefined, { type, name }: Fields): void {
    const called = type === 'agent' ? spanAround(around, 'function') : undefined
    if (!called) return
    const { scope } = called.part.context
    const from = spanAround(called.around, 'agent')?.data?.['name'] ?? scope.agentName
    const toolCallId = askedCallsOf(tacho).take(scope.state, (tool) => tool === called.data?.['name'])
    recordHandoff(called.part, { from, to: name, toolCallId })
  }

  function recordHandoff({ context: { scope, span } }: RunPart, payload: Fields): void {
    const { from: giver, to: taker } = payload
    core.record(scope, { type: 'HANDOFF', label: `${String(giver)} to ${String(taker)}`, payload, span })
  }

  function agentPart(outerPart: RunPart, { type, name }: Fields, traceId: string): RunPart {
    const trace = open.get(traceId)
    const agent = text(name)
    if (type !== 'agent' || agent === undefined || !trace) return outerPart
    trace.first ??= agent
    return agent === trace.first && !outerPart.context.span.marks?.agent
      ? outerPart
      : { ...outerPart, context: withAgent(outerPart.context, agent) }
  }

  function spanEnded(rawSpan: unknown): void {
    const { spanId, traceId, spanData, error } = fields(rawSpan)
    const opened = open.take(String(spanId))
    if (!opened) return
    const data = fields(spanData)
    const { part, begun, call } = opened
    if (call) {
      // The request is complete only at the end of the span.
      call.complete(() => ({ ...requestOf(data), tools: toolsOf(opened) }))
      const { output, _response: response } = data
      const hasAnswer = output !== undefined || response !== undefined
      const trace = open.get(String(traceId))
      // The framework ends the span of an abandoned stream without an error, but the span has no answer.
      const status = isAborted(error) || (!hasAnswer && !error) ? 'CANCELLED' : error ? 'FAILED' : 'COMPLETED'
      if (trace) trace.last = { status, ...(status === 'FAILED' && { failure: { error: messageOf(error) } }) }
      if (status === 'CANCELLED') return call.abort()
      if (!hasAnswer) return call.fail(messageOf(error))
      return error ? call.fail(messageOf(error), () => resultOf(data)) : call.end(() => resultOf(data))
    }
    const failure = error ? { error: messageOf(error) } : {}
    const latency = Math.max(0, core.runtime.now() - begun)
    const { scope, span } = part.context
    const { type: kind, ...details } = data
    const type = String(kind)
    // A turn or a hand-off has no name.
    const name = text(data['name']) ?? type
    if (type === 'function') {
      // Skip guarded tools: the guard records their calls.
      if (namesOf(tacho).has(name)) return
      const payload = { toolName: name, input: parsed(data['input']), output: data['output'], latency, ...failure }
      core.record(scope, { type: 'TOOL_CALL', label: name, payload, span })
      return
    }
    if (type === 'agent' && error) askedCallsOf(tacho).failed(part.context, messageOf(error))
    const [from, to] = [text(data['from_agent']), text(data['to_agent'])]
    if (type === 'handoff' && from !== undefined && to !== undefined) {
      const isTransfer = (tool: string) => tool.startsWith('transfer_to_')
      const toolCallId = askedCallsOf(tacho).take(scope.state, isTransfer)
      return recordHandoff(part, { from, to, toolCallId, latency, ...failure })
    }
    const payload = { ...details, latency, ...failure }
    core.record(scope, { type: 'AGENT_STEP', label: name === type ? type : `${type} ${name}`, payload, span })
  }

  // Never rejects, because the framework would fail too.
  const safely = (act: (given: unknown) => void) => async (rawValue: unknown) => attempt(() => act(rawValue))
  return {
    onTraceStart: safely(traceStarted),
    onTraceEnd: safely(traceEnded),
    onSpanStart: safely(spanStarted),
    onSpanEnd: safely(spanEnded),
    shutdown: async () => undefined,
    forceFlush: async () => void (await tacho.flush()),
  }
}

/**
 * The same `tool`; the tools that it makes are guarded: policies decide each call, a person approves it if a policy requires
 * that, and the call is recorded as a TOOL_CALL. Conditions see the input that `execute` gets. A refusal is the tool's output.
 */
export function guardTool<Create extends (options: never) => object>(tool: Create, tacho: Tacho): Create {
  const names = namesOf(tacho)
  return guardedFactory(tool, tacho, {
    // The name that the model used: a host may rename a tool.
    name([, details], _options, givenName) {
      const name = text(fields(fields(details)['toolCall'])['name']) ?? text(fields(givenName)['name']) ?? 'tool'
      names.add(name)
      return name
    },
    signal: ([, details]) => fields(details)['signal'] as StopSignal | undefined,
    callId: ([, details]) => fields(fields(details)['toolCall'])['callId'],
    refused(error, { outputSchema }) {
      if (outputSchema === undefined) return error.modelText
      // Throw, because the text would not match the tool's output schema.
      throw new Error(error.modelText, { cause: error })
    },
    made(madeTool) {
      const { name, invoke } = fields(madeTool)
      names.add(String(name))
      mark(invoke as Function, GUARDED)
    },
  })
}

/** Marks the `invoke` of guarded tools. The framework's copies of a tool keep the mark. */
const GUARDED = Symbol.for('tacho.guarded')

/**
 * The tools of an agent. Those that a guarded `tool` made stay as they are; a local shell and an editor of patches are
 * guarded where they run.
 * @throws TypeError for a tool that cannot be guarded: made by another `tool`, hosted, a computer.
 */
export function guardTools<Tools extends readonly object[]>(tools: Tools, tacho: Tacho, options?: WrapOptions): Tools {
  const guard = (tool: object): object => {
    const { type, name, invoke, shell, editor } = fields(tool)
    const toolName = text(name) ?? String(type)
    const call = () => ({ name: toolName, at: 0 })
    if (typeof invoke === 'function') {
      const why = 'its input is hidden in it. Make it with guardTool(tool, tacho).'
      return isMarked(invoke, GUARDED) ? tool : unguarded(tacho, tool, toolName, why, options)
    }
    if (type === 'shell' && typeof shell === 'object' && shell !== null) {
      return { ...tool, shell: guardedMethods(shell, tacho, new Map([['run', call]])) }
    }
    if (type === 'apply_patch' && typeof editor === 'object' && editor !== null) {
      const methods = ['createFile', 'updateFile', 'deleteFile'].map((method) => [method, call] as const)
      return { ...tool, editor: guardedMethods(editor, tacho, new Map(methods)) }
    }
    return unguarded(tacho, tool, toolName, 'the provider or the framework runs it.', options)
  }
  return tools.map(guard) as unknown as Tools
}

/**
 * The same MCP server; its tools are guarded by their own names where they are called. A refusal is the answer of the tool.
 */
export function guardMcpServer<Server extends object>(server: Server, tacho: Tacho): Server {
  const names = namesOf(tacho)
  const call =
    (refused: (content: object[]) => unknown) =>
    ([given]: readonly unknown[]) => {
      const name = String(given)
      names.add(name)
      askedCallsOf(tacho).guard(name)
      return {
        name,
        at: 1,
        refused: ({ modelText }: { modelText: string }) => refused([{ type: 'text', text: modelText }]),
      }
    }
  const methods = new Map([
    ['callTool', call((content) => content)],
    ['callToolResult', call((content) => ({ content, isError: true }))],
  ])
  return guardedMethods(server, tacho, methods)
}

function namesOf(tacho: Recorder): Set<string> {
  return sharedIn(coreOf(tacho), 'openai-agents.guarded', () => new Set<string>())
}

/** The nearest enclosing span of this kind in the same agent. */
function spanAround(around: Open | undefined, kind: 'function' | 'agent'): Open | undefined {
  const type = around?.data?.['type']
  return type === kind ? around : type === 'agent' ? undefined : around && spanAround(around.around, kind)
}

/** The tools of the span's agent; undefined outside an agent. A hand-off is a tool that is not in the agent's list. */
function toolsOf({ data = {}, around }: Open): ((name: string) => boolean) | undefined {
  const { type, tools } = data
  if (type !== 'agent') return around && toolsOf(around)
  return Array.isArray(tools) ? (name) => tools.includes(name) || name.startsWith('transfer_to_') : undefined
}

const isModelCall = ({ type }: Fields) => type === 'generation' || type === 'response'

/** Whether the error is an aborted request. Found by its text, because the framework passes on nothing else. */
const isAborted = (error: unknown) =>
  /request was aborted|^AbortError/i.test(String(fields(fields(error)['data'])['error']))

const messageOf = (error: unknown) => text(fields(error)['message']) ?? 'error'

function requestOf(data: Fields) {
  const response = fields(data['_response'])
  const messages = messagesOf(data['input'] ?? data['_input'])
  return { model: data['model'] ?? response['model'], messages: withSystem(response['instructions'], messages) }
}

function resultOf(data: Fields): ModelResult {
  const response = fields(data['_response'])
  // For a chat completion, the output has one item: the completion.
  const completion = fields(fields(data['output'])[0])
  const choice = fields(fields(completion['choices'])[0])
  const usage = nonzeroUsage(completion['usage'] ?? data['usage'] ?? response['usage'])
  const items = messagesOf(choice['message'] ? [choice['message']] : (response['output'] ?? data['output']))
  const toolCalls = items.flatMap((item) => item.toolCalls ?? [])
  const contents = items.map(({ content }) => content).filter((content) => content !== undefined)
  const output: Message = {
    role: 'assistant',
    ...(contents.length > 0 && { content: contents.length === 1 ? contents[0] : contents }),
    ...(toolCalls.length > 0 && { toolCalls }),
  }
  return {
    model: data['model'] ?? response['model'],
    usage,
    output,
    hasApprovals: true,
    finishReason: choice['finish_reason'] ?? fields(response['incomplete_details'])['reason'] ?? response['status'],
    asked: choice['message'] ? candidatesIn(completion['choices']) : (response['output'] ?? data['output']),
  }
}
