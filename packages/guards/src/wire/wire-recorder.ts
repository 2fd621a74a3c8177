/** Records what crosses the wire between one program and its models: model calls, results of tools, inputs, and the outcome. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Outcome, Run, Tacho } from '@tacho/sdk'
import { coreOf } from '../../../sdk/src/border.ts'
import type { Context } from '../../../sdk/src/recording/context.ts'
import { askedCalls } from '../../../sdk/src/integrations/asked-calls.ts'
import { fields, text, type Fields } from '../../../sdk/src/integrations/host.ts'
import type { Message } from '../../../sdk/src/integrations/messages.ts'
import { ModelCall, type ModelRequest, type ModelResult } from '../../../sdk/src/integrations/model-call.ts'
import { Decoding } from './body-copy.ts'
import { Conversations, textIn, type Conversation, type OpenCall, type OpenRun } from './conversations.ts'
import { AnswerReader, errorIn, parsedOr, protocolOf } from './protocols.ts'
import type { Protocol } from './protocols/protocol.ts'
import type { Observer, WireRequest } from './proxy.ts'

export interface WireNames {
  readonly agentName: string
  readonly agentId?: string | undefined
  readonly sessionId?: string | undefined
  /** Of the program's own run. */
  readonly runId?: string | undefined
}

export class WireRecorder {
  readonly tacho: Tacho
  readonly #names: WireNames
  readonly #isElsewhere: () => boolean
  readonly conversations: Conversations
  #main: Run | undefined
  /** Answers that are read to their end. */
  readonly #ending = new Set<Promise<void>>()

  /** @param isElsewhere an SDK records the program. */
  constructor(tacho: Tacho, names: WireNames, isElsewhere: () => boolean = () => false) {
    this.tacho = tacho
    this.#names = names
    this.#isElsewhere = isElsewhere
    this.conversations = new Conversations((...given) => this.#open(...given))
  }

  /** Undefined for what is no call of a model. */
  observe(request: WireRequest): Observer | undefined {
    const protocol = protocolOf(request.method, request.path)
    return protocol && !this.#isElsewhere() ? new RecordedExchange(this, protocol, request) : undefined
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

  /** Resolves when all answers are read and every run is ended. */
  async end(outcome: Outcome, facts: Fields): Promise<void> {
    await this.settled()
    for (const conversation of this.conversations.all) if (!conversation.isMain) this.#endOwn(conversation, outcome)
    // The SDK in the program says how its own run ended.
    if (this.#main || !this.#isElsewhere()) this.main.end(outcome, facts)
  }

  async settled(): Promise<void> {
    while (this.#ending.size > 0) await Promise.all(this.#ending)
  }

  get isSettled(): boolean {
    return this.#ending.size === 0
  }

  ending(read: Promise<void>): void {
    const ended = read.catch(() => undefined).finally(() => this.#ending.delete(ended))
    this.#ending.add(ended)
  }

  /** The results that a request has for calls of earlier answers. */
  results(conversation: Conversation, added: readonly Message[], failed: ReadonlySet<string>): void {
    const now = Date.now()
    for (const { role, toolCallId, content } of added.toReversed()) {
      const id = text(toolCallId)
      const call = role === 'tool' && id !== undefined ? conversation.calls.get(id) : undefined
      if (!call || id === undefined) continue
      conversation.calls.delete(id)
      for (const child of this.conversations.childrenOf(conversation, id)) this.#endOwn(child, 'COMPLETED')
      if (call.isFaulty) continue
      const facts = { toolName: call.name, toolCallId: id, input: call.input, latency: now - call.askedAt }
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
    const { sessionId = this.main.runId } = this.#names
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

/** Claude Code names its sub-agents so. */
function nameIn({ name, input }: OpenCall): string {
  const { subagent_type: kind, agent, agent_name: agentName } = fields(input)
  return text(kind) ?? text(agent) ?? text(agentName) ?? name
}

class RecordedExchange implements Observer {
  readonly #recorder: WireRecorder
  readonly #protocol: Protocol
  readonly #request: WireRequest
  /** What happens while earlier answers are still read. */
  #waiting: (() => void)[] | undefined
  #isAsked = false
  #asking: ModelRequest = {}
  #call: ModelCall | undefined
  #conversation: Conversation | undefined
  #reader: AnswerReader | undefined
  #decoding: Decoding | undefined
  #status = 0
  #headers: IncomingHttpHeaders = {}

  constructor(recorder: WireRecorder, protocol: Protocol, request: WireRequest) {
    this.#recorder = recorder
    this.#protocol = protocol
    this.#request = request
  }

  asked(body: Buffer | undefined): void {
    if (this.#isAsked) return
    this.#isAsked = true
    if (this.#recorder.isSettled) return this.#begin(body)
    this.#waiting = []
    void this.#recorder.settled().then(() => {
      const waiting = this.#waiting ?? []
      this.#waiting = undefined
      this.#begin(body)
      for (const act of waiting) act()
    })
  }

  answered(status: number, headers: IncomingHttpHeaders): void {
    // An upstream may answer before it has the whole request.
    this.asked(undefined)
    this.#when(() => {
      this.#status = status
      this.#headers = headers
      this.#reader = new AnswerReader(this.#protocol, headers['content-type'], (isPiece) => {
        this.#call?.touch()
        if (isPiece) this.#call?.token()
      })
      this.#decoding = new Decoding(headers['content-encoding'], (bytes) => this.#reader?.add(bytes))
      const reader = this.#reader
      if (status < 300) this.#call?.reads(() => reader.result())
    })
  }

  piece(bytes: Buffer): void {
    this.#when(() => this.#decoding?.add(bytes))
  }

  ended(how: 'whole' | 'left' | 'broken', why?: string): void {
    this.asked(undefined)
    this.#when(() => {
      if (this.#decoding) this.#recorder.ending(this.#end(how, why))
      else this.#without(how, why)
    })
  }

  #when(act: () => void): void {
    if (this.#waiting) this.#waiting.push(act)
    else act()
  }

  #begin(body: Buffer | undefined): void {
    const { tacho, conversations } = this.#recorder
    const given = fields(body && parsedOr(body.toString(), undefined))
    const { provider: _, ...asked } = this.#protocol.request(given, this.#request.path)
    const request = {
      ...asked,
      provider: providerOf(this.#request.route),
      ...(body === undefined && { messages: '[too large]' }),
    }
    const messages = (Array.isArray(request.messages) ? request.messages : []) as Message[]
    const tools = Array.isArray(request.tools) ? (request.tools as string[]) : undefined
    const continues = this.#protocol.continues?.(given)
    const { conversation, added } = conversations.place({ messages, tools, continues })
    this.#conversation = conversation
    const { run } = conversation
    this.#recorder.results(conversation, added, this.#protocol.failedCalls?.(given) ?? new Set())
    for (const { role, content } of added) if (role === 'user' && textIn(content) !== '') run.userInput(textIn(content))
    const parent = run.within(() => coreOf(tacho).context.getStore())
    this.#asking = request
    this.#call = new ModelCall(tacho, () => request, { parent })
  }

  async #end(how: 'whole' | 'left' | 'broken', why: string | undefined): Promise<void> {
    const isRead = (await this.#decoding?.end()) ?? false
    const [call, reader, conversation] = [this.#call, this.#reader, this.#conversation]
    if (!call || !reader || !conversation) return
    const { conversations } = this.#recorder
    const result = reader.readResult(isRead)
    // A tape answers with the same bytes.
    const wire = { protocol: this.#protocol.name, status: this.#status, ...reader.raw }
    call.complete(() => ({ ...this.#asking, wire }))
    const error = this.#errorOf(how, why)
    if (error !== undefined) {
      call.fail(error, () => result)
      return conversations.failed(conversation)
    }
    if (how === 'left' && !reader.isComplete) call.abort(() => result)
    else call.end(() => result)
    conversations.answered(conversation, openCalls(result, call), reader.answerId)
  }

  #errorOf(how: 'whole' | 'left' | 'broken', why: string | undefined): unknown {
    const { error, whole } = { error: this.#reader?.error, whole: () => this.#reader?.whole() }
    const retryAfter = this.#headers['retry-after']
    if (this.#status >= 300)
      return { ...errorIn(whole(), this.#status), ...(retryAfter !== undefined && { retryAfter }) }
    if (error !== undefined) return errorIn({ error }, this.#status)
    return how === 'broken' ? { message: 'The answer of the model broke.', code: why } : undefined
  }

  /** No answer came. */
  #without(how: 'whole' | 'left' | 'broken', why: string | undefined): void {
    if (how === 'left') this.#call?.abort()
    else this.#call?.fail({ message: 'The model gave no answer.', code: why })
    if (this.#conversation) this.#recorder.conversations.failed(this.#conversation)
  }
}

function openCalls({ asked, finishReason }: ModelResult, { context }: ModelCall): OpenCall[] {
  return askedCalls(asked, finishReason).flatMap(({ id, name, raw, problem }) => {
    if (id === undefined) return []
    const input = raw === undefined || raw === '' ? {} : parsedOr(raw, raw)
    return [{ id, name, raw, input, askedAt: Date.now(), context, isFaulty: problem !== undefined }]
  })
}

const PROVIDERS = new Map([
  ['gemini', 'google'],
  ['azure', 'azure'],
])

const providerOf = (route: string): string => PROVIDERS.get(route) ?? route
