/**
 * Stands between one MCP client and one MCP server. Handles tools/call, the list of tools, tasks and cancellations;
 * every other message passes. Each side gets the parsed messages of the other, written anew.
 *
 * A server may answer a call with questions (`input_required`); the client then repeats the call with the answers. The answers
 * are part of the input: the repeated call is judged, approved and recorded with them.
 *
 *   tools/call --> deciding --ALLOW, WARN, a person approved--> forwarded --the server's answer--> recorded, to the client
 *                     |  \--BLOCK, rejected, too late--> a tool error that says why            \--cancelled--> recorded
 *                     \--cancelled--> no answer; the server never sees the call
 */
import { ToolBlockedError, type Run, type Tacho } from '@tacho/sdk'
import { refuseAgain, Refusals } from '../refusals.ts'
import type { Definitions } from './definitions.ts'
import { readMessages, type ExactMessage } from './exact-message.ts'
import type { Agent } from './hidden-tools.ts'
import { endsOf, idIn, LINE_BYTES_MAX, LongLine } from './lines.ts'
import {
  clientInfoOf,
  ERRORS,
  errorReply,
  inputOf,
  isObject,
  isResponse,
  keyOf,
  NOT_A_CALL,
  progressTokenOf,
  serverInfoOf,
  toolError,
  type Json,
  type Message,
} from './message.ts'
import { abandon, callIdOf, cancel, OpenRequests, type Answer, type Call } from './open-calls.ts'
import { reportProgress } from './progress.ts'
import { TaskAnswers } from './task-answers.ts'
import { taskIdOf, Tasks } from './tasks.ts'
import { resultOf, ToolFailure } from './tool-failure.ts'
import { ToolList } from './tool-list.ts'
import { recordUnfit } from './unfit-call.ts'

export interface GuardSettings {
  /** Longest wait for a person, in milliseconds, if the client accepts progress notifications. */
  readonly approvalTimeoutMs: number
  /** The same for a client that does not accept them. The official clients give up after 60 seconds. */
  readonly silentApprovalTimeoutMs: number
  /** Overrides the name that the client gives. */
  readonly agentName?: string | undefined
  readonly agentId?: string | undefined
  /** Overrides the name that the server gives. */
  readonly serverName?: string | undefined
}

interface GuardParts {
  readonly tacho: Tacho
  readonly settings: GuardSettings
  readonly definitions: Definitions
  /** Each resolves when the reader has room for more. */
  readonly toClient: (line: string) => Promise<void>
  readonly toServer: (line: string) => Promise<void>
  readonly warn: (message: string) => void
}

const CALLS_MAX = 1_000
const CALLS_BYTES_MAX = 64 * 1_048_576
/** How many answered calls are remembered, to detect a second answer. */
const ANSWERED_MAX = 1_000
const LISTS_MAX = 1_000

const GUARD_FAILED = 'The tool was not run: the guard failed. Tell the user; try later.'
const INEXACT = 'has too many digits, so the tool was not run. Round it, or send it as text if the tool allows that.'

export class McpGuard {
  readonly #parts: GuardParts
  readonly #calls = new Map<string, Call>()
  readonly #answered = new Set<string>()
  readonly #lists = new Set<string>()
  readonly #open = new OpenRequests()
  readonly #running = new Set<Promise<void>>()
  readonly #tools: ToolList
  readonly #tasks = new Tasks()
  readonly #refusals = new Refusals()
  readonly #taskAnswers: TaskAnswers
  #callsBytes = 0
  #run: Run | undefined
  #agent: Agent = { id: '', name: '' }
  /** Key of the request whose answer names the server: `initialize`, or `server/discover` since 2026-07-28. */
  #greeting: string | undefined
  #announcesChanges = false
  #isServerKnown = false
  #serverName: string | undefined

  constructor(parts: GuardParts) {
    this.#parts = parts
    this.#serverName = parts.settings.serverName
    const { tacho, definitions, warn, toClient } = parts
    const announce = (): void => {
      if (!this.#announcesChanges) return
      void toClient(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }))
    }
    this.#tools = new ToolList({ tacho, definitions, warn, announce })
    this.#taskAnswers = new TaskAnswers({
      tacho,
      tasks: this.#tasks,
      refusals: this.#refusals,
      approvalTimeoutMs: parts.settings.silentApprovalTimeoutMs,
      claimsOf: (name) => this.#claimsOf(name),
    })
  }

  async fromClient(line: Buffer | LongLine): Promise<void> {
    const { toClient, toServer } = this.#parts
    if (line instanceof LongLine) {
      const message = `The message has more than ${LINE_BYTES_MAX} bytes.`
      return toClient(errorReply(idIn(line), ERRORS.invalidRequest, message))
    }
    const received = readMessages(line)
    // Drop it: the server could read it differently, for example NaN as a number.
    if (!received) return toClient(errorReply(null, ERRORS.parse, 'The message is not JSON-RPC in UTF-8.'))
    for (const each of received) {
      const { message, text, fault } = each
      if (fault !== null) await toClient(errorReply(message.id, ERRORS.invalidRequest, fault))
      else if (await this.#takeFromClient(each)) await toServer(text)
    }
  }

  async fromServer(line: Buffer | LongLine): Promise<void> {
    if (line instanceof LongLine) return this.#drop(line, `has more than ${LINE_BYTES_MAX} bytes`)
    const received = readMessages(line)
    // Drop it: the client could read it differently, for example an invalid character as another one.
    if (!received) return this.#drop(endsOf(line), 'is not JSON-RPC in UTF-8')
    for (const { message, text, fault } of received) {
      if (fault !== null) this.#parts.warn(`A message of the server was dropped. ${fault}`)
      else await this.#takeFromServer(message, text)
    }
  }

  /** The client no longer waits, so an approval no longer starts a call. Calls that the server already has continue. */
  clientLeft(): void {
    for (const call of this.#calls.values()) if (!call.forwarded) cancel(call)
    this.#taskAnswers.cancelAll()
  }

  /** Answers every waiting and later request with an error. */
  async serverLeft(why: string): Promise<void> {
    const errors = this.#open.end(why)
    for (const call of this.#calls.values()) abandon(call, why)
    this.#taskAnswers.cancelAll()
    this.#tasks.close()
    for (const error of errors) await this.#parts.toClient(error)
  }

  /** Ends the run. Resolves when everything is recorded. */
  async close(status: 'COMPLETED' | 'FAILED'): Promise<void> {
    this.#tools.close()
    await Promise.all(this.#running)
    this.#run?.end(status, status === 'FAILED' ? { error: this.#open.why } : undefined)
  }

  /** Whether the message passes. */
  async #takeFromClient({ message, text, inexact }: ExactMessage): Promise<boolean> {
    const { toClient, warn } = this.#parts
    const { id, method, params } = message
    const client = clientInfoOf(message)
    if (!this.#run && (client || method === 'tools/call')) this.#begin(client)
    const key = keyOf(id)
    // A client may reuse an id after its answer.
    if (key !== undefined && method !== undefined) this.#answered.delete(key)
    if (method === 'initialize' || method === 'server/discover') this.#greeting = key
    if (method === 'notifications/cancelled') return this.#cancel(params)
    if (method === 'tasks/update' && isObject(params) && params['inputResponses'] !== undefined) {
      this.#judge(this.#answerTask(id, params, text, inexact))
      return false
    }
    if (key !== undefined) this.#tasks.asked(key, method, params)
    if (method === 'tools/list' && key !== undefined) {
      if (this.#lists.size >= LISTS_MAX) this.#lists.clear()
      this.#lists.add(key)
    }
    if (method !== 'tools/call') return this.#passes(key, message)
    if (key === undefined) {
      warn('A tools/call without an id was not forwarded.')
      return false
    }
    const tooLate = this.#open.tooLate(id)
    const isUsable = isObject(params) && typeof params['name'] === 'string' && inputOf(params) !== null
    if (tooLate !== null) await toClient(tooLate)
    else if (!isUsable) await toClient(errorReply(id, ERRORS.invalidParams, NOT_A_CALL))
    else if (this.#calls.has(key))
      await toClient(errorReply(id, ERRORS.invalidRequest, 'A call with this id is under way.'))
    else if (this.#calls.size >= CALLS_MAX || this.#callsBytes + text.length > CALLS_BYTES_MAX) {
      await toClient(toolError(id, params, 'The tool was not run: too many calls are under way. Try again later.'))
    } else if (inexact !== null) await toClient(toolError(id, params, `${inexact} ${INEXACT}`))
    else this.#start(key, { id, params, text })
    return false
  }

  /** False for a request after the server has ended: it gets an error instead. */
  async #passes(key: string | undefined, { id, method }: Message): Promise<boolean> {
    const tooLate = key === undefined || method === undefined ? null : this.#open.asked(key, id)
    if (tooLate !== null) await this.#parts.toClient(tooLate)
    return tooLate === null
  }

  #start(key: string, { id, params, text }: { id: unknown; params: Json; text: string }): void {
    const call: Call = { id, bytes: text.length, cancel: new AbortController(), isCancelled: false }
    this.#calls.set(key, call)
    this.#callsBytes += call.bytes
    const called = this.#call(call, params, text).finally(() => {
      this.#calls.delete(key)
      this.#callsBytes -= call.bytes
      this.#remember(key)
    })
    this.#judge(called)
  }

  /** Does not wait, so other messages pass in the meantime. */
  #judge(judged: Promise<void>): void {
    const running = judged
      .catch(() => this.#parts.warn('A call could not be answered.'))
      .finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  async #call(call: Call, params: Json, text: string): Promise<void> {
    const { tacho, settings, toClient, toServer } = this.#parts
    const name = params['name'] as string
    const token = progressTokenOf(params)
    const progress = token === null ? null : reportProgress(toClient, token, name)
    let reply: string | null = null
    const input = inputOf(params) ?? {}
    const judged = { toolName: name, toolCallId: callIdOf(call.id, params), input }
    const run = this.#run ?? this.#begin(null)
    const forward = async (): Promise<Message> => {
      progress?.stop()
      const answered = new Promise<Answer>((resolve, reject) => (call.forwarded = { resolve, reject }))
      // Ignore a rejection here: if the connection ends now, the code below is not yet waiting for the answer.
      answered.catch(() => undefined)
      await toServer(text)
      const answer = await answered
      const taskId = taskIdOf(answer.message)
      if (taskId === null) {
        reply = answer.line
        return answer.message
      }
      // The client polls the task; the recording waits for the task's result.
      const followed = this.#tasks.follow(taskId, judged)
      if (!call.isCancelled) await toClient(answer.line)
      return followed
    }
    const approvalTimeoutMs = token === null ? settings.silentApprovalTimeoutMs : settings.approvalTimeoutMs
    const { signal } = call.cancel
    const { riskSignals, annotations, server } = this.#claimsOf(name)
    const { toolCallId } = judged
    const more = {
      toolCallId: () => toolCallId,
      server,
      riskSignals,
      ...(annotations && { annotations: () => annotations }),
    }
    const act = async () => resultOf(await forward())
    const guarded = tacho.guard(act, { name, input: () => input, ...more, approvalTimeoutMs, signal: () => signal })
    const misfit = this.#tools.misfitOf(name, input)
    try {
      const refusal = this.#refusals.of(name, input, this.#revision)
      // Record the refusal without asking a person again.
      if (refusal) reply = toolError(call.id, params, refuseAgain(run, judged, refusal))
      else if (misfit === null) await run.within(() => guarded())
      else {
        const facts = { ...judged, server, riskSignals: riskSignals(), annotations }
        await run.within(() => tacho.authorize(facts, { approvalTimeoutMs }, signal))
        await recordUnfit(
          { tacho, run },
          { ...judged, toolServer: server, misfit, isCancelled: () => call.isCancelled },
          forward,
        )
      }
    } catch (error) {
      if (error instanceof ToolBlockedError) {
        this.#refusals.add(name, input, error, this.#revision)
        reply = toolError(call.id, params, error.modelText)
      } else if (!(error instanceof ToolFailure)) reply = toolError(call.id, params, GUARD_FAILED)
      else if (error.code === 'connection_closed') reply ??= errorReply(call.id, ERRORS.server, error.message)
    } finally {
      progress?.stop()
    }
    if (reply !== null && !call.isCancelled) await toClient(reply)
  }

  #claimsOf(name: string) {
    const annotations = this.#tools.annotationsOf(name)
    return { riskSignals: () => this.#tools.signalsOf(name), annotations, server: this.#serverName }
  }

  get #revision(): string | null {
    return this.#parts.tacho.configuration.state.current?.revision ?? null
  }

  async #answerTask(id: unknown, params: Json, text: string, inexact: string | null): Promise<void> {
    const { toClient, toServer } = this.#parts
    const key = keyOf(id)
    const run = this.#run ?? this.#begin(null)
    const why =
      inexact !== null
        ? `${inexact} ${INEXACT}`
        : this.#running.size > CALLS_MAX
          ? 'Too many calls are under way. Try again later.'
          : await this.#taskAnswers.refusalOf(run, id, params).catch(() => GUARD_FAILED)
    if (why !== null) return toClient(errorReply(id, ERRORS.invalidParams, why))
    if (await this.#passes(key, { id, method: 'tasks/update' })) await toServer(text)
  }

  /** Returns whether to forward the cancellation: the server knows only forwarded calls. */
  #cancel(params: unknown): boolean {
    const key = keyOf(isObject(params) ? params['requestId'] : undefined) ?? ''
    const call = this.#calls.get(key)
    if (!call) return !this.#taskAnswers.cancel(key)
    const isForwarded = call.forwarded !== undefined
    cancel(call)
    return isForwarded
  }

  async #takeFromServer(message: Message, line: string): Promise<void> {
    const { toClient, warn } = this.#parts
    const key = keyOf(message.id)
    this.#tasks.heard(message)
    if (!isResponse(message) || key === undefined) return toClient(line)
    this.#open.answered(key)
    const call = this.#calls.get(key)
    if (call?.forwarded) {
      call.forwarded.resolve({ message, line })
      // Ignore later answers to the same call.
      call.forwarded = undefined
      this.#remember(key)
      return
    }
    if (call ?? this.#answered.has(key)) return warn('The server answered a call that it does not have, or twice.')
    if (this.#lists.delete(key)) {
      const run = this.#run ?? this.#begin(null)
      return toClient(await this.#tools.shown(run, { ...this.#agent, server: this.#serverName }, message, line))
    }
    if (key === this.#greeting) this.#noteServer(message)
    await toClient(line)
  }

  #noteServer({ result }: Message): void {
    if (!isObject(result)) return
    const { protocolVersion, capabilities } = result
    const tools = isObject(capabilities) ? capabilities['tools'] : null
    this.#announcesChanges = isObject(tools) && tools['listChanged'] === true
    if (this.#isServerKnown) return
    this.#isServerKnown = true
    const serverInfo = serverInfoOf(result)
    const name = (this.#serverName ??= typeof serverInfo?.['name'] === 'string' ? serverInfo['name'] : 'server')
    const run = this.#run ?? this.#begin(null)
    // Add the server to every later event, because two servers can have tools with the same name.
    run.annotate({ mcpServer: name })
    run.step(`connected to ${name}`, { serverInfo, protocolVersion })
  }

  /** Begins the run of this connection. */
  #begin(client: { name: string } | null): Run {
    const { tacho, settings } = this.#parts
    const name = settings.agentName ?? client?.name ?? 'mcp-client'
    this.#agent = { id: settings.agentId ?? client?.name ?? name, name }
    return (this.#run = tacho.startRun({ agentId: this.#agent.id, agentName: name }))
  }

  /** Drops a line that the client must not get. If the line's call can be found, the call ends with an error. */
  #drop(line: LongLine, why: string): void {
    this.#parts.warn(`The server sent a line that ${why}; it was dropped.`)
    const id = idIn(line)
    const call = this.#calls.get(keyOf(id) ?? '')
    if (!call?.forwarded) return
    const error = { code: ERRORS.invalidRequest, message: `The tool's answer ${why}.` }
    call.forwarded.resolve({ message: { id, error }, line: errorReply(id, error.code, error.message) })
    call.forwarded = undefined
  }

  #remember(key: string): void {
    if (this.#answered.size >= ANSWERED_MAX) this.#answered.clear()
    this.#answered.add(key)
  }
}
