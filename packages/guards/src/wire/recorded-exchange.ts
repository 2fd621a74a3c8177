/** Records one request and its answer. If the proxy guards, it also judges the answer. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Tacho } from '@tacho/sdk'
import { coreOf } from '../../../sdk/src/border.ts'
import { attempt, type Asked } from '../../../sdk/src/core.ts'
import type { Context } from '../../../sdk/src/recording/context.ts'
import { askedCalls } from '../../../sdk/src/integrations/asked-calls.ts'
import { fields } from '../../../sdk/src/integrations/host.ts'
import type { Message } from '../../../sdk/src/integrations/messages.ts'
import { ModelCall, type ModelRequest, type ModelResult } from '../../../sdk/src/integrations/model-call.ts'
import { guardAnswer, type Judged } from './answer-guard.ts'
import { AnswerShare, Decoding } from './body-copy.ts'
import { textIn, type Conversation, type Conversations, type OpenCall } from './conversations.ts'
import { AnswerReader, errorIn, parsedOr } from './protocols.ts'
import { callKey, type Protocol } from './protocols/protocol.ts'
import type { Editor, Observer, WireRequest } from './proxy.ts'

/** What an exchange needs from the recorder of its program. */
export interface Recording {
  readonly tacho: Tacho
  readonly isGuarding: boolean
  readonly conversations: Conversations
  /** All answers have been read. */
  readonly isSettled: boolean
  settled(): Promise<void>
  ending(read: Promise<unknown>): void
  results(conversation: Conversation, added: readonly Message[], failed: ReadonlySet<string>): void
  /** Returns the reason why the program must not get the call. Undefined: it may. */
  judge(
    call: Asked,
    context: Context | undefined,
    open: OpenCall | undefined,
    signal: AbortSignal,
  ): Promise<string | undefined>
}

/** Memory overhead of each waiting piece: an upstream may send single bytes. */
const PIECE_BYTES = 256

export class RecordedExchange implements Observer {
  readonly #recorder: Recording
  readonly #protocol: Protocol
  readonly #request: WireRequest
  /** Actions to run when earlier answers have been read. */
  #waiting: (() => void)[] | undefined
  /** Share of memory for the waiting answers. */
  readonly #share = new AnswerShare()
  #hasNoRoom = false
  #isAsked = false
  #asking: ModelRequest = {}
  #call: ModelCall | undefined
  #conversation: Conversation | undefined
  #reader: AnswerReader | undefined
  #decoding: Decoding | undefined
  #status = 0
  #headers: IncomingHttpHeaders = {}
  #read: Promise<ModelResult> | undefined
  /** The answer was read completely. */
  #isWhole = false
  /** An SDK records the program, so this exchange only guards. */
  readonly #isSilent: boolean
  readonly editor: Editor | undefined

  constructor(recorder: Recording, protocol: Protocol, request: WireRequest, isSilent: boolean) {
    this.#recorder = recorder
    this.#protocol = protocol
    this.#request = request
    this.#isSilent = isSilent
    const { refusing } = protocol
    this.editor = recorder.isGuarding ? refusing && guardAnswer(refusing, (signal) => this.#judge(signal)) : undefined
  }

  asked(body: Buffer | undefined): void {
    if (this.#isAsked) return
    this.#isAsked = true
    if (this.#recorder.isSettled) return this.#begin(body)
    this.#waiting = []
    const copy = body && this.#share.take(body.length) ? body : undefined
    void this.#recorder.settled().then(() => {
      const waiting = this.#waiting ?? []
      this.#waiting = undefined
      this.#share.release()
      // An error in recording must not end the proxy, which the program needs.
      for (const act of [() => this.#begin(copy), ...waiting]) attempt(act)
    })
  }

  answered(status: number, headers: IncomingHttpHeaders): void {
    // The upstream may answer before it has read the whole request.
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

  get isOver(): boolean {
    return this.#reader?.isOver ?? false
  }

  async record(): Promise<void> {
    await this.#recorder.settled()
    await this.#end('whole')
  }

  piece(bytes: Buffer): void {
    if (this.#hasNoRoom) return
    this.#hasNoRoom = this.#waiting !== undefined && !this.#share.take(bytes.length + PIECE_BYTES)
    this.#when(this.#hasNoRoom ? () => this.#reader?.cut() : () => this.#decoding?.add(bytes))
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
    if (this.#isSilent) return
    const { tacho, conversations } = this.#recorder
    const given = fields(body && parsedOr(body.toString(), undefined))
    const { provider: _, ...asked } = this.#protocol.request(given, this.#request.path)
    const request = {
      ...asked,
      provider: providerOf(this.#request.route),
      ...(body === undefined && { messages: '[too large]' }),
    }
    const isTalk = this.#protocol.name !== 'openai-embeddings' && Array.isArray(request.messages)
    const messages = isTalk ? (request.messages as Message[]) : []
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

  /** Reads the answer to its end and records the model call, once: a guard calls this already before it judges. */
  #end(how: 'whole' | 'left' | 'broken', why?: string): Promise<ModelResult> {
    return (this.#read ??= this.#readToEnd(how, why).finally(() => this.#reader?.release()))
  }

  async #readToEnd(how: 'whole' | 'left' | 'broken', why: string | undefined): Promise<ModelResult> {
    const isRead = (await this.#decoding?.end()) ?? false
    this.#reader?.end()
    this.#isWhole = isRead && this.#reader?.isCut === false
    const [call, reader, conversation] = [this.#call, this.#reader, this.#conversation]
    const result = reader?.readResult(isRead) ?? {}
    if (!call || !reader || !conversation) return result
    const { conversations } = this.#recorder
    // The bytes from which a tape can answer later.
    const wire = { protocol: this.#protocol.name, status: this.#status, ...reader.raw }
    call.complete(() => ({ ...this.#asking, wire }))
    const error = this.#errorOf(how, why)
    if (error !== undefined) {
      call.fail(error, () => result)
      conversations.failed(conversation)
      return result
    }
    if (how === 'left' && !reader.isComplete) call.abort(() => result)
    else call.end(() => result)
    conversations.answered(conversation, openCalls(result, call), reader.answerId)
    return result
  }

  async #judge(signal: AbortSignal): Promise<Judged> {
    // Wait until earlier answers are read.
    await this.#recorder.settled()
    const { asked, finishReason } = await this.#end('whole')
    if (!this.#isWhole) throw new Error('The answer cannot be read, so it cannot be judged.')
    const refusals = new Map<string, string>()
    const calls = askedCalls(asked, finishReason)
    const judged = calls.map(async (call) => {
      const key = callKey(call.id, call.name)
      const open = call.id === undefined ? undefined : this.#conversation?.calls.get(call.id)
      const why = await this.#recorder.judge(call, this.#call?.context, open, signal)
      if (why === undefined) return
      refusals.set(key, why)
      if (call.id !== undefined) this.#conversation?.calls.delete(call.id)
    })
    await Promise.all(judged)
    return { refusals, allowed: calls.filter(({ id, name }) => !refusals.has(callKey(id, name))) }
  }

  #errorOf(how: 'whole' | 'left' | 'broken', why: string | undefined): unknown {
    const error = this.#reader?.error
    const retryAfter = this.#headers['retry-after']
    if (this.#status >= 300)
      return { ...errorIn(this.#reader?.whole(), this.#status), ...(retryAfter !== undefined && { retryAfter }) }
    if (error !== undefined) return errorIn({ error }, this.#status)
    return how === 'broken' ? { message: 'The answer of the model broke.', code: why } : undefined
  }

  /** Records a request that got no answer. */
  #without(how: 'whole' | 'left' | 'broken', why: string | undefined): void {
    if (how === 'left') this.#call?.abort()
    else this.#call?.fail({ message: 'The model gave no answer.', code: why })
    if (this.#conversation) this.#recorder.conversations.failed(this.#conversation)
  }
}

function openCalls({ asked, finishReason }: ModelResult, { context }: ModelCall): OpenCall[] {
  return askedCalls(asked, finishReason).flatMap(({ id, name, raw, problem }) => {
    if (id === undefined) return []
    return [
      { id, name, raw, input: inputOf(raw), askedAt: Date.now(), context, isFaulty: problem !== undefined, judged: {} },
    ]
  })
}

/** The input of a call; the raw text if its arguments cannot be read. */
export function inputOf(raw: string | undefined): unknown {
  return raw === undefined || raw === '' ? {} : parsedOr(raw, raw)
}

/** Several variables may lead to one provider under different names: `openai-1`, `openai-host`. */
function providerOf(route: string): string {
  const provider = route.replace(/-(?:\d+|host)$/, '')
  return provider === 'gemini' ? 'google' : provider
}
