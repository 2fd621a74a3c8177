/**
 * Stands between one MCP client and one MCP server. It reads only tools/call, the list of tools and cancellations;
 * every other message passes. Each side gets what was read from the other, written again.
 *
 *   tools/call --> deciding --ALLOW, WARN, a person approved--> forwarded --the server's answer--> recorded, to the client
 *                     |  \--BLOCK, rejected, too late--> a tool error that says why            \--cancelled--> recorded
 *                     \--cancelled--> no answer; the server never sees the call
 */
import { ToolBlockedError, type Run, type Tacho } from '@tacho/sdk'
import type { Definitions } from './definitions.ts'
import { readMessages, type ExactMessage } from './exact-message.ts'
import { toolHider, type Agent } from './hidden-tools.ts'
import { endsOf, LINE_BYTES_MAX, LongLine } from './lines.ts'
import {
  clientInfoOf,
  errorReply,
  isObject,
  isResponse,
  keyOf,
  progressNotification,
  progressTokenOf,
  toolError,
  type Json,
  type Message,
} from './message.ts'

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
const CONFIGURATION_WAIT_MS = 2_000
const PROGRESS_FIRST_MS = 1_000
const PROGRESS_MS = 5_000
/** Small steps: the server's own progress starts above them. */
const PROGRESS_STEP = 1e-6

const GUARD_FAILED = 'The tool was not run: the guard failed. Tell the user; try later.'

const INEXACT = 'has too many digits, so the tool was not run. Round it, or send it as text if the tool allows that.'

const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600
const INVALID_PARAMS = -32_602

/** The tool ran and failed, or its answer never came. Recorded as the call's error. */
class ToolFailure extends Error {
  override readonly name = 'ToolFailure'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export class McpGuard {
  readonly #parts: GuardParts
  readonly #calls = new Map<string, Call>()
  readonly #answered = new Set<string>()
  readonly #lists = new Set<string>()
  readonly #running = new Set<Promise<void>>()
  readonly #changed = new Set<string>()
  #callsBytes = 0
  #run: Run | undefined
  #agent: Agent = { id: '', name: '' }
  #initialize: string | undefined
  /** The tools of the last list by name. True: the tool was hidden. */
  readonly #listed = new Map<string, boolean>()
  #announcesChanges = false
  readonly #forgetChanges: () => void

  constructor(parts: GuardParts) {
    this.#parts = parts
    this.#forgetChanges = parts.tacho.configuration.onChange(() => void this.#announceHidden())
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
    this.#forgetChanges()
    const message = 'The connection ended before the tool answered.'
    for (const call of this.#calls.values()) cancel(call, 'connection_closed', message)
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
    if (method === 'initialize') this.#initialize = key
    if (method === 'notifications/cancelled') return this.#cancel(params)
    if (method === 'tools/list' && key !== undefined) {
      if (this.#lists.size >= LISTS_MAX) this.#lists.clear()
      this.#lists.add(key)
    }
    if (method !== 'tools/call') return true
    if (key === undefined) {
      warn('A tools/call without an id was not forwarded.')
      return false
    }
    const isUsable = isObject(params) && typeof params['name'] === 'string' && isInput(params['arguments'])
    if (!isUsable) await toClient(errorReply(id, INVALID_PARAMS, 'tools/call needs a name and an object of arguments.'))
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
    this.#answered.delete(key)
    const running = this.#call(call, params, text)
      .catch(() => this.#parts.warn('A call could not be answered.'))
      .finally(() => {
        this.#calls.delete(key)
        this.#callsBytes -= call.bytes
        this.#remember(key)
        this.#running.delete(running)
      })
    this.#running.add(running)
  }

  async #call(call: Call, params: Json, text: string): Promise<void> {
    const { tacho, settings, toClient, toServer } = this.#parts
    const name = params['name'] as string
    const token = progressTokenOf(params)
    const progress = token === null ? null : this.#reportProgress(token, name)
    let reply: string | null = null
    const guarded = tacho.guard(
      async () => {
        progress?.stop()
        const answered = new Promise<Answer>((resolve, reject) => (call.forwarded = { resolve, reject }))
        // The connection can end and reject before the line below waits for it.
        answered.catch(() => undefined)
        await toServer(text)
        const answer = await answered
        reply = answer.line
        return resultOf(answer.message)
      },
      {
        name,
        input: () => params['arguments'] ?? {},
        riskSignals: () => (this.#changed.has(name) ? ['tool_changed'] : []),
        approvalTimeoutMs: token === null ? settings.silentApprovalTimeoutMs : settings.approvalTimeoutMs,
        signal: () => call.cancel.signal,
      },
    )
    try {
      await (this.#run ?? this.#begin(null)).within(() => guarded())
    } catch (error) {
      if (error instanceof ToolBlockedError) reply = toolError(call.id, params, error.modelText)
      else if (!(error instanceof ToolFailure)) reply = toolError(call.id, params, GUARD_FAILED)
    } finally {
      progress?.stop()
    }
    if (reply !== null && !call.isCancelled) await toClient(reply)
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
    if (this.#lists.delete(key)) return toClient(await this.#listOf(message, line))
    if (key === this.#initialize) this.#noteServer(message)
    await toClient(line)
  }

  /** The list of tools without the hidden ones. Reports tools that changed. */
  async #listOf(message: Message, line: string): Promise<string> {
    const { tacho, definitions, warn } = this.#parts
    const { result } = message
    const run = this.#run ?? this.#begin(null)
    const tools = isObject(result) && Array.isArray(result['tools']) ? result['tools'].filter(isObject) : []
    if (!isObject(result) || tools.length === 0) return line
    run.within(() => {
      for (const { name, change, before, after } of definitions.observe(tools)) {
        this.#changed.add(name)
        warn(`The tool ${JSON.stringify(name)} changed since it was last seen (${change}).`)
        tacho.reportIssue({
          detectionType: 'TOOL_CHANGED',
          payload: { toolName: name, reasonCode: change, riskSignals: ['tool_changed'] },
          evidence: { decision: 'WARN', before, after },
        })
      }
    })
    await tacho.configuration.ready(CONFIGURATION_WAIT_MS)
    const isHidden = this.#hider()
    for (const { name } of tools) if (typeof name === 'string') this.#listed.set(name, isHidden(name))
    const shown = tools.filter(({ name }) => typeof name !== 'string' || !isHidden(name))
    if (shown.length === tools.length) return line
    return JSON.stringify({ ...message, result: { ...result, tools: shown } })
  }

  /** Asks the client to list the tools again if other ones are hidden now. */
  async #announceHidden(): Promise<void> {
    if (!this.#announcesChanges || this.#listed.size === 0) return
    const isHidden = this.#hider()
    if ([...this.#listed].every(([name, wasHidden]) => isHidden(name) === wasHidden)) return
    await this.#parts.toClient(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }))
  }

  #hider(): (toolName: string) => boolean {
    return toolHider(this.#parts.tacho.configuration.state.current?.policies ?? [], this.#agent)
  }

  #noteServer({ result }: Message): void {
    if (!isObject(result)) return
    const { serverInfo, protocolVersion, capabilities } = result
    const tools = isObject(capabilities) ? capabilities['tools'] : null
    this.#announcesChanges = isObject(tools) && tools['listChanged'] === true
    const name = isObject(serverInfo) && typeof serverInfo['name'] === 'string' ? serverInfo['name'] : 'server'
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

  /** Tells a waiting client that the call is alive. */
  #reportProgress(token: string | number, toolName: string): { stop(): void } {
    const { toClient } = this.#parts
    let count = 0
    let timer = setTimeout(report, PROGRESS_FIRST_MS)
    function report(): void {
      count++
      const message = `Waiting for a person to approve ${toolName}`
      void toClient(progressNotification(token, count * PROGRESS_STEP, message))
      timer = setTimeout(report, PROGRESS_MS)
    }
    return { stop: () => clearTimeout(timer) }
  }
}

function cancel(call: Call, code: string, message: string): void {
  call.isCancelled = true
  call.cancel.abort()
  call.forwarded?.reject(new ToolFailure(code, message))
  call.forwarded = undefined
}

/** What the event records. @throws ToolFailure with the tool's own words if it failed. */
function resultOf({ result, error }: Message): unknown {
  if (isObject(error)) throw new ToolFailure(scalar(error['code']), scalar(error['message']))
  if (isObject(result) && result['isError'] === true) throw new ToolFailure('tool_error', textOf(result))
  return result
}

function scalar(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

function textOf({ content }: Json): string {
  const parts = Array.isArray(content) ? content.filter(isObject) : []
  return parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('\n')
}

function isInput(value: unknown): boolean {
  return value === undefined || isObject(value)
}

/** The id of a message that cannot be read: it stands at the beginning or at the end. */
function idIn({ start, end }: LongLine): string | number | null {
  const found =
    /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15}|"[^"\\]{1,200}")/.exec(start.toString()) ??
    /"id"\s*:\s*(\d{1,15}|"[^"\\]{1,200}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(end.toString())
  return found?.[1] === undefined ? null : (JSON.parse(found[1]) as string | number)
}
