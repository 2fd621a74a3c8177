/**
 * LangChain and LangGraph 1: `agent.invoke(input, { callbacks: [recordCalls(tacho)] })` and
 * `tools: guardTools([refund], tacho)`.
 */
import { canRecord, coreOf, sharedIn } from '../border.ts'
import type { Context } from '../recording/context.ts'
import { attempt } from '../core.ts'
import type { ToolBlockedError } from '../guard/blocked.ts'
import { readSafely } from '../recording/json.ts'
import type { StopSignal } from '../delivery/runtime.ts'
import type { Recorder } from '../recorder.ts'
import type { Tacho } from '../tacho.ts'
import { askedCallsOf } from './asked-calls.ts'
import { fitsSchema } from './fits.ts'
import {
  beginPart,
  enclosingPart,
  fields,
  guarded,
  OpenSpans,
  text,
  toolNames,
  withFunction,
  type Fields,
  type RunPart,
} from './host.ts'
import { messagesOf } from './messages.ts'
import {
  actingAs,
  agentIn,
  callsModel,
  choose,
  isNode,
  noteCommand,
  type Place,
  type Team,
} from './langchain-agents.ts'
import { langchainMessages, resultOf, StreamedPieces } from './langchain-messages.ts'
import { ModelCall } from './model-call.ts'
import { awaitClient } from './noted-call.ts'
import { openCallsOf } from './open-calls.ts'
import type { WrapOptions } from '../guard/rules.ts'
import { unguarded } from './unguarded.ts'

/** A callback handler of LangChain. */
export interface CallHandler {
  readonly name: 'tacho'
  /** LangChain awaits this handler, so that it keeps the current run. It never waits for the network. */
  readonly awaitHandlers: true
  handleChainStart(
    chain: unknown,
    inputs: unknown,
    runId: string,
    parentRunId?: string,
    tags?: unknown,
    metadata?: unknown,
    runType?: unknown,
    runName?: string,
  ): void
  handleChainEnd(outputs: unknown, runId: string): void
  handleChainError(error: unknown, runId: string): void
  handleChatModelStart(model: unknown, messages: unknown, runId: string, parentRunId?: string, extra?: unknown): void
  handleLLMStart(model: unknown, prompts: unknown, runId: string, parentRunId?: string, extra?: unknown): void
  handleLLMNewToken(
    token: unknown,
    index: unknown,
    runId: string,
    parentRunId?: string,
    tags?: string[],
    extra?: unknown,
  ): void
  handleLLMEnd(output: unknown, runId: string, parentRunId?: string, tags?: string[], extra?: unknown): void
  handleLLMError(error: unknown, runId: string): void
  handleToolStart(
    tool: unknown,
    input: unknown,
    runId: string,
    parentRunId?: string,
    tags?: unknown,
    metadata?: unknown,
    runName?: string,
  ): void
  handleToolEnd(output: unknown, runId: string): void
  handleToolError(error: unknown, runId: string): void
}

interface Running extends Place {
  /** The guarded call around it: an agent may run inside a tool. */
  inside?: Context | undefined
  part?: RunPart
  call?: ModelCall
  pieces?: StreamedPieces
  tool?: { name: string; input: unknown; begun: number; parent: Context | undefined }
  /** Set for a tool: the agent whose model called it. */
  agent?: string | undefined
}

/** Keyed by LangChain's run id. A guarded tool finds its run here, also outside `tacho.run`. */
const runningOf = (tacho: Recorder) => sharedIn(coreOf(tacho), 'langchain.running', () => new OpenSpans<Running>())

/**
 * Records model calls as LLM_CALL events, tools that are not guarded as TOOL_CALL events, and nodes of a graph as AGENT_STEP
 * events, of the current run. Outside a run, the outermost chain becomes a run of its own.
 */
export function recordCalls(tacho: Recorder): CallHandler {
  const running = canRecord(tacho, 'Calls') ? runningOf(tacho) : new OpenSpans<Running>()
  attempt(() => openCallsOf(coreOf(tacho)))

  /** Handlers never throw into the host. */
  function begin(
    runId: string,
    parentRunId: string | undefined,
    start: (parent: Context | undefined, team: Team, around: Running | undefined) => Running,
  ): void {
    attempt(() => {
      // A handler on the model and one on the call both report the same call.
      if (running.get(runId) !== undefined) return
      const around = parentRunId === undefined ? undefined : running.get(parentRunId)
      const team = around?.team ?? { members: new Set() }
      running.set(runId, { inside: around?.inside, ...start(around?.context, team, around), team, around })
    })
  }

  function end(runId: string, finish: (ended: Running) => void): void {
    attempt(() => {
      const ended = running.take(runId)
      if (ended) finish(ended)
    })
  }

  function beginCall(
    model: unknown,
    messages: () => unknown,
    runId: string,
    parentRunId: string | undefined,
    extra: unknown,
  ) {
    begin(runId, parentRunId, (_parent, _team, around) => {
      attempt(() => callsModel(coreOf(tacho), around))
      const parent = around?.context
      const { invocation_params: parameters } = fields(extra)
      const request = () => ({
        tools: toolNames(fields(parameters)['tools']),
        model: fields(parameters)['model'] ?? fields(fields(model)['kwargs'])['model'],
        messages: messages(),
      })
      const inside = parentRunId === undefined ? undefined : running.get(parentRunId)?.inside
      const call = new ModelCall(tacho, request, { parent, inside })
      awaitClient(tacho, call, request)
      return { context: call.context, call, pieces: new StreamedPieces() }
    })
  }

  function endTool(runId: string, result: Fields): void {
    end(runId, ({ part, tool }) => {
      if (!part || !tool) return
      const { core, context } = part
      const latency = Math.max(0, core.runtime.now() - tool.begun)
      const payload = { toolName: tool.name, input: tool.input, latency, ...result }
      core.record(context.scope, { type: 'TOOL_CALL', label: tool.name, payload, span: context.span })
      if ('error' in result) part.end('FAILED', { error: result['error'] })
      else part.end('COMPLETED')
    })
  }

  function endChain(runId: string, outputs?: unknown, failure?: { error: unknown }): void {
    end(runId, (ended) => {
      const { part, node } = ended
      choose(ended, outputs)
      if (!part) return
      if (node) noteCommand(part.core, outputs, ended, node.agent ?? ended.context.span.marks?.agent ?? node.name)
      if (node === undefined) return part.end(failure ? 'FAILED' : 'COMPLETED', failure)
      const { core, context } = part
      const latency = Math.max(0, core.runtime.now() - node.begun)
      const endFacts = isPause(failure?.error) ? { paused: fields(failure?.error)['name'] } : failure
      core.record(context.scope, {
        type: 'AGENT_STEP',
        label: node.name,
        payload: { node: node.name, latency, ...endFacts },
        span: context.span,
      })
    })
  }

  return neverThrowing({
    name: 'tacho',
    awaitHandlers: true,
    handleChainStart(_chain, _inputs, runId, parentRunId, tags, metadata, _runType, runName) {
      begin(runId, parentRunId, (parent, team, around) => {
        const agentText = text(fields(metadata)['lc_agent_name'])
        team.first ??= agentText
        const agent = agentText ?? (runName !== undefined && team.members.has(runName) ? runName : undefined)
        const named = agent ?? around?.named
        if (!parent) {
          const runPart = enclosingPart(tacho)
          return { context: runPart.context, part: runPart }
        }
        // Do not record other chains: their calls belong to the span around the outermost chain.
        if (!isNode(tags, runName)) {
          return { context: actingAs(parent, team, agent), named, isEdge: runName === 'RunnableLambda' }
        }
        const runPart = beginPart(tacho, parent)
        const step = fields(metadata)['langgraph_step']
        const chosenBy = around?.choice?.step === step ? around?.choice?.from : undefined
        const node = { name: runName, begun: runPart.core.runtime.now(), step, chosenBy }
        return { context: actingAs(runPart.context, team, agent), named, part: runPart, node }
      })
    },
    handleChainEnd: (outputs, runId) => endChain(runId, outputs),
    handleChainError: (error, runId) => endChain(runId, undefined, { error }),
    handleChatModelStart(model, messages, runId, parentRunId, extra) {
      beginCall(model, () => langchainMessages(fields(messages)[0]), runId, parentRunId, extra)
    },
    handleLLMStart(model, prompts, runId, parentRunId, extra) {
      beginCall(model, () => messagesOf(fields(prompts)[0]), runId, parentRunId, extra)
    },
    handleLLMNewToken(token, _index, runId, _parentRunId, _tags, extra) {
      const { call, pieces } = running.get(runId) ?? {}
      if (!call || !pieces) return
      attempt(() => pieces.add(token, fields(fields(extra)['chunk'])['message']))
      call.token()
      call.reads(() => pieces.result())
    },
    handleLLMEnd(output, runId, _parentRunId, _tags, extra) {
      const notCounted = fields(extra)['cached'] === true ? 'cache' : undefined
      end(runId, ({ call }) => call?.end(() => ({ ...resultOf(output), notCounted })))
    },
    handleLLMError: (error, runId) => end(runId, ({ call }) => call?.fail(error)),
    handleToolStart(tool, input, runId, parentRunId, _tags, metadata, runName) {
      begin(runId, parentRunId, (parent) => {
        const runPart = beginPart(tacho, parent)
        const name = runName ?? text(fields(tool)['name']) ?? 'tool'
        const agent = agentIn(fields(metadata))
        return {
          context: runPart.context,
          part: runPart,
          agent,
          isTool: true,
          tool: { name, input, begun: runPart.core.runtime.now(), parent },
        }
      })
    },
    handleToolEnd(output, runId) {
      const ended = running.get(runId)
      endTool(runId, { output: fields(output)['content'] ?? output })
      if (!ended?.part) return
      const { core } = ended.part
      attempt(() => noteCommand(core, output, ended, ended.agent ?? ended.context.scope.agentName))
    },
    handleToolError: (error, runId) => endTool(runId, isPause(error) ? { output: new Paused(error) } : { error }),
  })
}

/** Handlers that never throw, because LangChain prints their errors on the console. */
function neverThrowing(handler: CallHandler): CallHandler {
  const methods = Object.entries(handler).map(([name, member]: [string, unknown]) => {
    if (typeof member !== 'function') return [name, member]
    return [name, (...callArguments: unknown[]) => attempt(() => void (member as Function)(...callArguments))]
  })
  return Object.fromEntries(methods) as CallHandler
}

/**
 * The same tools, guarded: policies decide each call, a person approves it if a policy requires that, and the call is
 * recorded as a TOOL_CALL. Conditions see the input after the schema; a text that a tool takes is `tool.input.input`. A
 * refusal is the tool's answer.
 * @throws TypeError for a tool that cannot be guarded: of the provider, headless, a runnable, or with its own `invoke` or `call`.
 */
export function guardTools<Tools extends readonly object[]>(tools: Tools, tacho: Tacho, options?: WrapOptions): Tools {
  const guard = (tool: object) => {
    const { name: toolName, type, _call: call, func, schema, responseFormat } = fields(tool)
    const givenName = text(toolName) ?? text(type) ?? 'tool'
    if (typeof call !== 'function') {
      return unguarded(tacho, tool, givenName, 'it has no method _call, so something else runs it.', options)
    }
    const toolRunner = ownRunner(tool)
    if (toolRunner !== null)
      return unguarded(tacho, tool, givenName, `it has its own ${toolRunner}, which may call anything.`, options)
    askedCallsOf(tacho).guard(givenName, fitsSchema(schema))
    const refused = ({ modelText }: ToolBlockedError) =>
      responseFormat === 'content_and_artifact' ? [modelText, undefined] : modelText
    const guardedCall = (run: Function) =>
      async function (this: unknown, input: unknown, manager: unknown, config: unknown, ...more: unknown[]) {
        // A host may rename a tool.
        const name = text(fields(this)['name']) ?? givenName
        const runId = text(fields(manager)['runId']) ?? ''
        const running = runningOf(tacho).get(runId)
        const parent = running?.tool?.parent
        // The guard records the call, so the handler must not.
        if (running) delete running.tool
        const act = (judged: unknown) => {
          if (running) running.inside = running.context = coreOf(tacho).context.getStore() ?? running.context
          return pausable(() => run.call(tool, judged, manager, config, ...more) as unknown)
        }
        const signal = fields(config)['signal'] as StopSignal | undefined
        const { id: callId } = fields(fields(config)['toolCall'])
        const result = await guarded<unknown>(tacho, { name, input, signal, parent, callId }, act, refused)
        if (result instanceof Paused) throw result.error
        return result
      }
    const copy = withFunction(tool, '_call', guardedCall)
    // Code that inspects a tool finds its function here.
    return typeof func === 'function' ? withFunction(copy, 'func', guardedCall) : copy
  }
  return tools.map(guard) as unknown as Tools
}

/** LangChain's own tool classes: their `invoke` ends in `_call`. */
const CLASSES: ReadonlySet<unknown> = new Set(['Tool', 'DynamicTool', 'DynamicStructuredTool'])

/** The name of a method that the tool has instead of LangChain's own; null if there is none. */
function ownRunner(tool: object): string | null {
  const owners: object[] = []
  for (let at: object | null = tool; at; at = Object.getPrototypeOf(at) as object | null) owners.push(at)
  // The last class in the chain with `invoke` is LangChain's.
  const first = owners.findLast((owner) => Object.hasOwn(owner, 'invoke'))
  for (const owner of owners.slice(0, first && owners.indexOf(first))) {
    if (Object.hasOwn(owner, 'invoke')) return 'invoke'
    if (Object.hasOwn(owner, 'call') && !CLASSES.has(owner.constructor.name)) return 'call'
  }
  return null
}

/** LangGraph pauses and hands over by throwing errors that are no failures. */
class Paused {
  readonly #error: unknown

  constructor(error: unknown) {
    this.#error = error
  }

  get error(): unknown {
    return this.#error
  }

  toJSON() {
    return { paused: fields(this.#error)['name'] }
  }
}

function isPause(error: unknown): boolean {
  return readSafely(() => fields(error)['is_bubble_up'] === true, false)
}

async function pausable(act: () => unknown): Promise<unknown> {
  try {
    return await act()
  } catch (error) {
    if (isPause(error)) return new Paused(error)
    throw error
  }
}
