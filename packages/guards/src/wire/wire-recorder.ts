/** Records the traffic between one program and its models: model calls, tool results, inputs, and the outcome. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ToolBlockedError, type Outcome, type Run, type Tacho } from '@tacho/sdk'
import { coreOf } from '../../../sdk/src/border.ts'
import type { Context } from '../../../sdk/src/recording/context.ts'
import { fields, text, type Fields } from '../../../sdk/src/integrations/host.ts'
import type { Message } from '../../../sdk/src/integrations/messages.ts'
import type { Asked } from '../../../sdk/src/core.ts'
import { refuseAgain, Refusals } from '../refusals.ts'
import { Conversations, textIn, type Conversation, type OpenCall, type OpenRun } from './conversations.ts'
import { refuseCalls } from './answer-guard.ts'
import { guardedWay, protocolOf } from './protocols.ts'
import { OPENAI_RESPONSES } from './protocols/openai-responses.ts'
import type { Observer, WireRequest } from './proxy.ts'
import { inputOf, RecordedExchange, type Recording } from './recorded-exchange.ts'

export interface WireNames {
  readonly agentName: string
  readonly agentId?: string | undefined
  readonly sessionId?: string | undefined
  /** Run id of the program's own run. */
  readonly runId?: string | undefined
}

export interface GuardSettings {
  /** Longest wait for a person, in milliseconds. */
  readonly approvalTimeoutMs: number
}

interface WireOptions {
  /** Several programs use the proxy, so there is no common run. */
  readonly isShared?: boolean
  /** Whether an SDK in the program records it, so that this proxy must not. */
  readonly isElsewhere?: () => boolean
  /** Set if policies judge the tool calls in an answer before the program gets it. */
  readonly guard?: GuardSettings | undefined
}

export class WireRecorder implements Recording {
  readonly tacho: Tacho
  readonly #guard: GuardSettings | undefined
  readonly #refusals = new Refusals()
  readonly #names: WireNames
  readonly #isShared: boolean
  readonly #isElsewhere: () => boolean
  readonly conversations: Conversations
  #main: Run | undefined
  /** Answers that have ended and are still being read. */
  readonly #ending = new Set<Promise<void>>()

  constructor(
    tacho: Tacho,
    names: WireNames,
    { isElsewhere = () => false, guard, isShared = false }: WireOptions = {},
  ) {
    this.tacho = tacho
    this.#guard = guard
    this.#names = names
    this.#isElsewhere = isElsewhere
    this.conversations = new Conversations((...openArguments) => this.#open(...openArguments), isShared)
    this.#isShared = isShared
  }

  /** Undefined if an SDK in the program records it. */
  get recordedRun(): string | undefined {
    return this.#main?.runId
  }

  get isGuarding(): boolean {
    return this.#guard !== undefined
  }

  /** Undefined if the request is not a model call. */
  observe(request: WireRequest): Observer | undefined {
    const protocol = protocolOf(request.method, request.path)
    const way = this.isGuarding ? guardedWay(request.method, request.path) : undefined
    if (way) return way === 'later' ? FETCHED_LATER : UNJUDGED
    const isSilent = this.#isElsewhere()
    return protocol && (this.isGuarding || !isSilent)
      ? new RecordedExchange(this, protocol, request, isSilent)
      : undefined
  }

  /** @returns the reason why the program must not get the call. Undefined: it may. */
  async judge(
    { id, name: toolName, raw, problem }: Asked,
    context: Context | undefined,
    open: OpenCall | undefined,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    if (problem !== undefined)
      return `The tool ${toolName} was not run: its arguments ${problem === 'cut' ? 'are incomplete' : 'cannot be read'}. Call it again.`
    const input = inputOf(raw)
    const call = { toolName, input, toolCallId: id }
    const revision = this.tacho.configuration.state.current?.revision ?? null
    const refusal = this.#refusals.of(toolName, input, revision)
    const within = <T>(act: () => T): T => (context ? this.#within(context, act) : this.main.within(act))
    if (refusal) return within(() => refuseAgain({ record: (event) => this.tacho.record(event) }, call, refusal))
    try {
      const { approvalTimeoutMs = 300_000 } = this.#guard ?? {}
      const allowed = await within(() => this.tacho.authorize({ ...call, key: id }, { approvalTimeoutMs }, signal))
      const { inputHash, approvalId } = allowed
      if (open) open.judged = { ...(inputHash !== null && { inputHash }), ...(approvalId !== null && { approvalId }) }
      return undefined
    } catch (error) {
      if (!(error instanceof ToolBlockedError)) return GUARD_FAILED
      this.#refusals.add(toolName, input, error, revision)
      return error.modelText
    }
  }

  /** The program's own run. */
  get main(): Run {
    const { agentName, agentId, sessionId, runId } = this.#names
    if (!this.#main) {
      this.#main = this.tacho.startRun({ agentName, agentId, sessionId, runId })
      this.#main.annotate({ recordedBy: 'wire' })
    }
    return this.#main
  }

  /** Resolves when all answers are read and all runs have ended. */
  async end(outcome: Outcome, facts: Fields): Promise<void> {
    // Reading an answer can release waiting actions that add more answers, so repeat.
    do {
      await this.settled()
      await nextTurn()
    } while (!this.isSettled)
    for (const conversation of this.conversations.all) if (!conversation.isMain) this.#endOwn(conversation, outcome)
    // An SDK in the program reports the end of its own run.
    if (this.#main || !(this.#isShared || this.#isElsewhere())) this.main.end(outcome, facts)
  }

  /** With several programs: ends conversations without a request since then. @returns whether any is left. */
  endIdle(since: number): boolean {
    for (const conversation of this.conversations.all) {
      if (conversation.asking === 0 && conversation.touchedAt < since) this.#endOwn(conversation, 'COMPLETED')
    }
    return this.conversations.all.size > 0
  }

  async settled(): Promise<void> {
    while (this.#ending.size > 0) await Promise.all(this.#ending)
  }

  get isSettled(): boolean {
    return this.#ending.size === 0
  }

  ending(read: Promise<unknown>): void {
    const ended = read
      .then(
        () => undefined,
        () => undefined,
      )
      .finally(() => this.#ending.delete(ended))
    this.#ending.add(ended)
  }

  /** Records the results in a request for calls of earlier answers. */
  results(conversation: Conversation, added: readonly Message[], failed: ReadonlySet<string>): void {
    const now = Date.now()
    for (const { role, toolCallId, content } of added.toReversed()) {
      const id = text(toolCallId)
      const call = role === 'tool' && id !== undefined ? conversation.calls.get(id) : undefined
      if (!call || id === undefined) continue
      conversation.calls.delete(id)
      for (const child of this.conversations.childrenOf(conversation, id)) this.#endOwn(child, 'COMPLETED')
      if (call.isFaulty) continue
      const facts = {
        toolName: call.name,
        toolCallId: id,
        input: call.input,
        ...call.judged,
        latency: now - call.askedAt,
      }
      const result = failed.has(id)
        ? { outcome: 'failed', error: { message: textIn(content) || content } }
        : { outcome: 'returned', output: content }
      this.#within(call.context, () =>
        this.tacho.record({ type: 'TOOL_CALL', label: call.name, payload: { ...facts, ...result } }),
      )
    }
  }

  #endOwn(conversation: Conversation, outcome: Outcome): void {
    const isOpen = conversation.asking > 0 || conversation.calls.size > 0
    conversation.run.end(conversation.hasFailed ? 'FAILED' : isOpen ? outcome : 'COMPLETED')
    this.conversations.forget(conversation)
  }

  #within<T>({ scope, span }: Context, act: () => T): T {
    const core = coreOf(this.tacho)
    return core.context.run({ scope, span: { ...span, spanId: core.ids.span(), parentSpanId: span.spanId } }, act)
  }

  #open(...[parent, isMain]: Parameters<OpenRun>): Run {
    if (isMain) return this.main
    const { agentName, agentId } = this.#names
    const sessionId = this.#names.sessionId ?? (this.#isShared ? undefined : this.main.runId)
    const to = parent ? nameIn(parent.call) : agentName
    const run = this.tacho.startRun({
      agentName: to,
      agentId,
      sessionId,
      parentSpanId: parent?.call.context.span.spanId,
    })
    run.annotate({ recordedBy: 'wire', parentRunId: parent?.conversation.run.runId })
    if (!parent) return run
    const { call } = parent
    const payload = { from: call.context.scope.agentName, to, toolCallId: call.id, runId: run.runId }
    this.#within(call.context, () => this.tacho.record({ type: 'HANDOFF', label: `${payload.from} to ${to}`, payload }))
    return run
  }
}

const UNJUDGED: Observer = {
  refusal: 'The guard of Tacho cannot judge the answer of this request, so it does not pass.',
  asked: () => undefined,
  answered: () => undefined,
  piece: () => undefined,
  record: () => Promise.resolve(),
  isOver: false,
  ended: () => undefined,
}

const FETCHED_LATER: Observer = {
  ...UNJUDGED,
  refusal: undefined,
  editor:
    OPENAI_RESPONSES.refusing &&
    refuseCalls(
      OPENAI_RESPONSES.refusing,
      'The tool was not run: calls of an answer that is fetched later are not judged.',
    ),
}

const GUARD_FAILED = 'The tool was not run: the guard failed. Tell the user; try later.'

/** Claude Code names its sub-agents like this. */
function nameIn({ name, input }: OpenCall): string {
  const { subagent_type: kind, agent, agent_name: agentName } = fields(input)
  return text(kind) ?? text(agent) ?? text(agentName) ?? name
}
