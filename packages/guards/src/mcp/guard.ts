/**
 * Stands between one MCP client and one MCP server. It reads only tools/call, the list of tools, tasks and cancellations;
 * every other message passes. Each side gets what was read from the other, written again.
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
import { endsOf, LINE_BYTES_MAX, LongLine } from './lines.ts'
import {
  clientInfoOf,
  errorReply,
  isObject,
  isResponse,
  keyOf,
  progressTokenOf,
  serverInfoOf,
  toolError,
  type Json,
  type Message,
} from './message.ts'
import { reportProgress } from './progress.ts'
import { taskIdOf, Tasks } from './tasks.ts'
import { resultOf, ToolFailure } from './tool-failure.ts'
import { ToolList } from './tool-list.ts'

export interface GuardSettings {
  /** Longest wait for a person, in milliseconds, if the client accepts progress notifications. */
  readonly approvalTimeoutMs: number
  /** The same for a client that does not. The official clients give up after 60 seconds. */
  readonly silentApprovalTimeoutMs: number
  /** Overrides the name that the client gives. */
  readonly agentName?: string | undefined
  readonly agentId?: string | undefined
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

interface Call {
  readonly id: unknown
  readonly bytes: number
  /** Ends the wait for a person. */
  readonly cancel: AbortController
  isCancelled: boolean
  /** Takes the server's answer, once. Undefined while the server does not have the call. */
  forwarded?: { resolve(answer: Answer): void; reject(error: ToolFailure): void } | undefined
}

interface Answer {
  readonly message: Message
  readonly line: string
}

const CALLS_MAX = 1_000
const CALLS_BYTES_MAX = 64 * 1_048_576
/** How many answered calls are remembered, to notice a second answer. */
const ANSWERED_MAX = 1_000
const LISTS_MAX = 1_000

const GUARD_FAILED = 'The tool was not run: the guard failed. Tell the user; try later.'

const INEXACT = 'has too many digits, so the tool was not run. Round it, or send it as text if the tool allows that.'

const NOT_A_CALL =
  'tools/call needs a name and an object of arguments; inputResponses must be an object, and then no argument has that name.'

const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600
const INVALID_PARAMS = -32_602

export class McpGuard {
  readonly #parts: GuardParts
  readonly #calls = new Map<string, Call>()
  readonly #answered = new Set<string>()
  readonly #lists = new Set<string>()
  readonly #running = new Set<Promise<void>>()
  readonly #tools: ToolList
  readonly #tasks = new Tasks()
  readonly #refusals = new Refusals()
  #callsBytes = 0
  #run: Run | undefined
  #agent: Agent = { id: '', name: '' }
  /** `initialize`, or `server/discover` since 2026-07-28. */
  #greeting: string | undefined
  #announcesChanges = false
  #isServerKnown = false

  constructor(parts: GuardParts) {
    this.#parts = parts
    const { tacho, definitions, warn, toClient } = parts
    const announce = (): void => {
      if (!this.#announcesChanges) return
      void toClient(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }))
    }
    this.#tools = new ToolList({ tacho, definitions, warn, announce })
  }

  async fromClient(line: Buffer | LongLine): Promise<void> {
    const { toClient, toServer } = this.#parts
    if (line instanceof LongLine) {
      const message = `The message has more than ${LINE_BYTES_MAX} bytes.`
      return toClient(errorReply(idIn(line), INVALID_REQUEST, message))
    }
    const received = readMessages(line)
    // The server could read it differently, for example NaN as a number: what is not understood does not pass.
    if (!received) return toClient(errorReply(null, PARSE_ERROR, 'The message is not JSON-RPC in UTF-8.'))
    for (const each of received) {
      const { message, text, fault } = each
      if (fault !== null) await toClient(errorReply(message.id, INVALID_REQUEST, fault))
      else if (await this.#takeFromClient(each)) await toServer(text)
    }
  }

  async fromServer(line: Buffer | LongLine): Promise<void> {
    if (line instanceof LongLine) return this.#drop(line, `has more than ${LINE_BYTES_MAX} bytes`)
    const received = readMessages(line)
    // The client could read it differently, for example an invalid character as another one.
    if (!received) return this.#drop(endsOf(line), 'is not JSON-RPC in UTF-8')
    for (const { message, text, fault } of received) {
      if (fault !== null) this.#parts.warn(`A message of the server was dropped. ${fault}`)
      else await this.#takeFromServer(message, text)
    }
  }

  /** Ends every call and the run. Resolves when everything is recorded. */
  async close(status: 'COMPLETED' | 'FAILED'): Promise<void> {
    this.#tools.close()
    const message = 'The connection ended before the tool answered.'
    for (const call of this.#calls.values()) cancel(call, 'connection_closed', message)
    this.#tasks.close()
    await Promise.all(this.#running)
    this.#run?.end(status)
  }

  /** Whether the message passes. */
  async #takeFromClient({ message, text, inexact }: ExactMessage): Promise<boolean> {
    const { toClient, warn } = this.#parts
    const { id, method, params } = message
    const client = clientInfoOf(message)
    if (!this.#run && (client || method === 'tools/call')) this.#begin(client)
    const key = keyOf(id)
    // A client may use an id again once it is answered.
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
    if (method !== 'tools/call') return true
    if (key === undefined) {
      warn('A tools/call without an id was not forwarded.')
      return false
    }
    const isUsable = isObject(params) && typeof params['name'] === 'string' && inputOf(params) !== null
    if (!isUsable) await toClient(errorReply(id, INVALID_PARAMS, NOT_A_CALL))
    else if (this.#calls.has(key)) await toClient(errorReply(id, INVALID_REQUEST, 'A call with this id is under way.'))
    else if (this.#calls.size >= CALLS_MAX || this.#callsBytes + text.length > CALLS_BYTES_MAX) {
      await toClient(toolError(id, params, 'The tool was not run: too many calls are under way. Try again later.'))
    } else if (inexact !== null) await toClient(toolError(id, params, `${inexact} ${INEXACT}`))
    else this.#start(key, { id, params, text })
    return false
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

  /** Does not wait: other messages pass meanwhile. */
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
    const run = this.#run ?? this.#begin(null)
    const guarded = tacho.guard(
      async () => {
        progress?.stop()
        const answered = new Promise<Answer>((resolve, reject) => (call.forwarded = { resolve, reject }))
        // The connection can end and reject before the line below waits for it.
        answered.catch(() => undefined)
        await toServer(text)
        const answer = await answered
        const taskId = taskIdOf(answer.message)
        if (taskId === null) {
          reply = answer.line
          return resultOf(answer.message)
        }
        // The client follows the task; the record waits for its result.
        const followed = this.#tasks.follow(taskId, name, input)
        if (!call.isCancelled) await toClient(answer.line)
        return resultOf(await followed)
      },
      {
        name,
        input: () => input,
        ...this.#claimsOf(name),
        approvalTimeoutMs: token === null ? settings.silentApprovalTimeoutMs : settings.approvalTimeoutMs,
        signal: () => call.cancel.signal,
      },
    )
    try {
      reply = this.#refusedBefore(run, call.id, params, input)
      if (reply === null) await run.within(() => guarded())
    } catch (error) {
      if (error instanceof ToolBlockedError) {
        this.#refusals.add(name, error, this.#revision)
        reply = toolError(call.id, params, error.modelText)
      } else if (!(error instanceof ToolFailure)) reply = toolError(call.id, params, GUARD_FAILED)
    } finally {
      progress?.stop()
    }
    if (reply !== null && !call.isCancelled) await toClient(reply)
  }

  #claimsOf(name: string) {
    const annotations = this.#tools.annotationsOf(name)
    return {
      riskSignals: () => this.#tools.signalsOf(name),
      ...(annotations && { annotations: () => annotations }),
    }
  }

  /** The tool error of a call that a person rejected before. It is recorded, and no person is asked again. */
  #refusedBefore(run: Run, id: unknown, params: Json, input: Json): string | null {
    const toolName = params['name'] as string
    const refusal = this.#refusals.of(toolName, input, this.#revision)
    return refusal && toolError(id, params, refuseAgain(run, toolName, input, refusal))
  }

  get #revision(): string | null {
    return this.#parts.tacho.configuration.state.current?.revision ?? null
  }

  /** Answers of the client to questions of a running task: judged with the input of its call. */
  async #answerTask(id: unknown, params: Json, text: string, inexact: string | null): Promise<void> {
    const { tacho, settings, toClient, toServer } = this.#parts
    const { taskId, inputResponses } = params
    const task = this.#tasks.of(taskId)
    const refuse = (why: string) => toClient(errorReply(id, INVALID_PARAMS, why))
    if (inexact !== null) return refuse(`${inexact} ${INEXACT}`)
    if (this.#running.size > CALLS_MAX) return refuse('Too many calls are under way. Try again later.')
    if (!task) return refuse('The guard does not know this task, so it cannot judge answers to its questions.')
    const input = inputOf({ arguments: task.input, inputResponses })
    if (input === null) return refuse(NOT_A_CALL)
    const { toolName } = task
    const { riskSignals, annotations } = this.#claimsOf(toolName)
    const call = { toolName, input, riskSignals: riskSignals(), ...(annotations && { annotations: annotations() }) }
    const run = this.#run ?? this.#begin(null)
    try {
      const { silentApprovalTimeoutMs: approvalTimeoutMs } = settings
      const { inputHash, approvalId } = await run.within(() => tacho.authorize(call, { approvalTimeoutMs }))
      run.step(`answers to ${toolName}`, { toolName, taskId, input, inputHash, approvalId })
    } catch (error) {
      if (error instanceof ToolBlockedError) this.#refusals.add(toolName, error, this.#revision)
      return refuse(error instanceof ToolBlockedError ? error.modelText : GUARD_FAILED)
    }
    await toServer(text)
  }

  /** Whether the server must receive it: it knows only calls that were forwarded. */
  #cancel(params: unknown): boolean {
    const call = this.#calls.get(keyOf(isObject(params) ? params['requestId'] : undefined) ?? '')
    if (!call) return true
    const isForwarded = call.forwarded !== undefined
    cancel(call, 'cancelled', 'The client cancelled the call.')
    return isForwarded
  }

  async #takeFromServer(message: Message, line: string): Promise<void> {
    const { toClient, warn } = this.#parts
    const key = keyOf(message.id)
    this.#tasks.heard(message)
    if (!isResponse(message) || key === undefined) return toClient(line)
    const call = this.#calls.get(key)
    if (call?.forwarded) {
      call.forwarded.resolve({ message, line })
      // Only the first answer counts.
      call.forwarded = undefined
      this.#remember(key)
      return
    }
    if (call ?? this.#answered.has(key)) return warn('The server answered a call that it does not have, or twice.')
    if (this.#lists.delete(key)) {
      const run = this.#run ?? this.#begin(null)
      return toClient(await this.#tools.shown(run, this.#agent, message, line))
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
    const name = typeof serverInfo?.['name'] === 'string' ? serverInfo['name'] : 'server'
    const run = this.#run ?? this.#begin(null)
    // In every later event: two servers can have tools of one name.
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

  /** A line that the client must not get. The call that it answers, if that can be found, ends with an error. */
  #drop(line: LongLine, why: string): void {
    this.#parts.warn(`The server sent a line that ${why}; it was dropped.`)
    const id = idIn(line)
    const call = this.#calls.get(keyOf(id) ?? '')
    if (!call?.forwarded) return
    const error = { code: INVALID_REQUEST, message: `The tool's answer ${why}.` }
    call.forwarded.resolve({ message: { id, error }, line: errorReply(id, error.code, error.message) })
    call.forwarded = undefined
  }

  #remember(key: string): void {
    if (this.#answered.size >= ANSWERED_MAX) this.#answered.clear()
    this.#answered.add(key)
  }
}

function cancel(call: Call, code: string, message: string): void {
  call.isCancelled = true
  call.cancel.abort()
  call.forwarded?.reject(new ToolFailure(code, message))
  call.forwarded = undefined
}

/** What is judged: the arguments, and the answers to the server's questions; null if they cannot be told apart. */
function inputOf({ arguments: given = {}, inputResponses }: Json): Json | null {
  if (!isObject(given)) return null
  if (inputResponses === undefined) return given
  return isObject(inputResponses) && !Object.hasOwn(given, 'inputResponses') ? { ...given, inputResponses } : null
}

/** The id of a message that cannot be read: it stands at the beginning or at the end. */
function idIn({ start, end }: LongLine): string | number | null {
  const found =
    /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15}|"[^"\\]{1,200}")/.exec(start.toString()) ??
    /"id"\s*:\s*(\d{1,15}|"[^"\\]{1,200}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(end.toString())
  return found?.[1] === undefined ? null : (JSON.parse(found[1]) as string | number)
}
