/**
 * Answers an agent's program from a tape, on loopback under a secret path. It acts as a Tacho service in memory, as the
 * models' API, and as the host that SDKs ask instead of running guarded tools. So one cursor serves every language.
 */
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { completePath } from '@tacho/guards/wire/clients.ts'
import {
  FakeService,
  type ApprovalAnswer,
  type RecordedEvent,
  type RequestedApproval,
} from '../../../../sdk/src/testing/fake-service.ts'
import type { LocalPolicy } from '../../../../sdk/src/guard/rules.ts'
import { Cursor, type CursorOptions, type Departure, type ToolAnswer } from './cursor.ts'
import { decisionDeparture } from './outcome.ts'
import { approvalsThatRanNothing, stopsOf } from './recorded-calls.ts'
import { recordedSteps, type Decided } from './recorded-steps.ts'
import type { ApprovalStep, Tape, TapeStep } from './tape.ts'
import { errorReply, jsonReply, wireQuestion, type WireReply } from './wire-answer.ts'

export interface HostOptions extends CursorOptions {
  /** Policies that replace those of the tape. */
  policies?: readonly LocalPolicy[] | null | undefined
  labels?: readonly ToolLabel[] | null | undefined
  /** Addresses of live models, by route. */
  upstreams?: ReadonlyMap<string, URL>
  /** Name of the live model. */
  model?: string | undefined
  /** Called before each request to a live model: returns the reason why it may not be sent. */
  refusal?: () => string | undefined
  /** Called with all events so far whenever new ones arrive. */
  onEvents?: (events: readonly RecordedEvent[]) => void
}

export interface ReplayResult {
  verdict: 'same' | 'another way'
  departure: Departure | null
  /** Steps of the replay. */
  steps: TapeStep[]
  outcome: string
  events: readonly RecordedEvent[]
}

const BODY_BYTES = 64 * 1_048_576
/** Longest wait for the last events: clients deliver after a second, or after the time that their host chose. */
const SETTLED_MS = 10_000
const SETTLED_STEP_MS = 20
const QUIET_MS = 2_000

const SHARED_CHARS = 256
const SHARED_DEPTH = 20

/** Stores equal texts once: the events of a replay contain the texts of its tape up to four times. */
class SharedTexts {
  readonly #texts = new Map<string, string>()

  /** Replaces the texts in the members of `value`. */
  shareIn(value: object, depth = 0): void {
    for (const name of Object.keys(value)) {
      const member = (value as Record<string, unknown>)[name]
      if (typeof member === 'object' && member !== null) {
        if (depth < SHARED_DEPTH) this.shareIn(member, depth + 1)
      } else if (typeof member === 'string' && member.length > SHARED_CHARS) {
        const held = this.#texts.get(member)
        if (held === undefined) this.#texts.set(member, member)
        else (value as Record<string, unknown>)[name] = held
      }
    }
  }
}

export class ReplayHost {
  readonly #tape: Tape
  readonly #options: HostOptions
  #madeCursor: Cursor | undefined
  readonly #service: FakeService
  readonly #secret = randomBytes(18).toString('base64url')
  readonly #server = createServer((request, response) => void this.#handle(request, response))
  readonly #reasons = new Map<string, string>()
  /** By tool: approvals of a differing input whose calls the tape has not answered yet. */
  readonly #approvedOthers = new Map<string, number>()
  /** By policy id: the number of approvals that were decided before the stop first blocked a call. */
  readonly #stops: ReadonlyMap<string, number>
  #decidedCount = 0
  readonly #ranNothing: ReadonlySet<ApprovalStep>
  /** Ids of approvals under which nothing may run. */
  readonly #unclaimable = new Set<unknown>()
  readonly #texts = new SharedTexts()
  #sharedEvents = 0
  /** Resolves when the agent leaves the tape. */
  readonly departed: Promise<void>
  #depart: () => void = () => undefined

  constructor(tape: Tape, options: HostOptions) {
    this.#tape = tape
    this.#options = options
    this.departed = new Promise((resolve) => (this.#depart = resolve))
    const approvals = tape.steps.filter((step) => step.kind === 'approval')
    this.#service = new FakeService((request) => this.#decide(approvals, request))
    this.#stops = stopsOf(tape)
    this.#ranNothing = approvalsThatRanNothing(tape)
    this.#servePolicies()
    this.#service.prompts = Object.fromEntries(tape.head.prompts.map(({ name, content }) => [name, content]))
  }

  get #cursor(): Cursor {
    if (this.#madeCursor) return this.#madeCursor
    this.#texts.shareIn(this.#tape.steps)
    return (this.#madeCursor = new Cursor(this.#tape, this.#options))
  }

  /** @returns the host's address, which contains the secret. */
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    // Prepare the cursor while the agent starts: for a long tape, both take equally long.
    setImmediate(() => this.#cursor)
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${this.#secret}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  /**
   * For an agent that ended in a process that continues. Resolves when its clients have delivered their queued events.
   */
  async settled(): Promise<void> {
    const isExpected = this.#tape.head.recordedBy === 'sdk'
    for (let waited = 0; waited < SETTLED_MS; waited += SETTLED_STEP_MS) {
      const { events } = this.#service
      const openRuns = new Set(events.map(({ runId }) => runId))
      for (const { runId, eventType } of events) if (eventType === 'SESSION_OUTCOME') openRuns.delete(runId)
      if (openRuns.size === 0 && (events.length > 0 || !isExpected)) return
      await setTimeout(SETTLED_STEP_MS)
    }
  }

  /**
   * The result, once the agent has ended and its events have arrived. @param ended the outcome of a program that does
   * not record.
   */
  result(ended = 'RUNNING'): ReplayResult {
    const { events, approvals } = this.#service
    const decided: Decided = new Map(
      [...approvals.values()].map(({ id, status }) => [id, { status, decisionReason: this.#reasons.get(id) ?? null }]),
    )
    const recorded = recordedSteps(events, decided)
    const isSilent = events.length === 0
    const outcome = isSilent ? ended : recorded.outcome
    this.#countAhead()
    this.#cursor.end(outcome)
    // If a program does not record, only its model requests are known. All of them matched the tape.
    const steps = isSilent && !this.#cursor.departure ? this.#tape.steps : recorded.steps
    if (this.#options.mode === 'strict' && !isSilent) decisionDeparture(this.#cursor, this.#tape.steps, steps)
    const departure = this.#cursor.departure ?? null
    return { verdict: departure ? 'another way' : 'same', departure, steps, outcome, events }
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const prefix = `/${this.#secret}/`
      const path = request.url ?? ''
      // Other programs of this machine, and web pages, do not know the secret path.
      if (!path.startsWith(prefix)) return send(response, jsonReply(404, { error: 'not found' }))
      const body = await bodyOf(request)
      if (body === undefined) return send(response, jsonReply(413, { error: { message: 'The body is too large' } }))
      await this.#answer(path.slice(prefix.length - 1), request, body, response)
    } catch (error) {
      if (!response.headersSent)
        send(response, jsonReply(500, { error: { message: `The replay failed: ${String(error)}` } }))
      else response.destroy()
    }
  }

  async #answer(path: string, request: IncomingMessage, body: Buffer, response: ServerResponse): Promise<void> {
    const { method = 'GET', headers } = request
    const pathname = path.replace(/\?.*$/s, '')
    if (pathname === '/openapi/v1/replay/tool-calls') return send(response, this.#tool(parsed(body)))
    if (pathname.startsWith('/openapi/v1/')) return this.#serve(method, path, headers, body, response)
    const question = wireQuestion(pathname, parsed(body))
    if (!question) {
      if (this.#cursor.isLive) return this.#live(path, request, body, response)
      return send(response, errorReply({ status: 400, message: `A tape has no answer for ${method} ${pathname}` }))
    }
    if (this.#cursor.isBeforeModel) await this.#quiet()
    const answer = this.#cursor.model(question.messages)
    if (answer.answer === 'live') return this.#live(path, request, body, response)
    if (answer.answer === 'tape') return send(response, question.reply(answer.step))
    this.#depart()
    return send(response, errorReply({ status: 400, message: `tacho replay: ${answer.message}` }))
  }

  #tool(asked: unknown): WireReply {
    const { toolName: tool, input, agent, client, used } = isObject(asked) ? asked : {}
    if (typeof tool !== 'string') return jsonReply(400, { error: { message: 'toolName must be a text' } })
    const call = { tool, input, ...(typeof agent === 'string' && { agent }) }
    const takesAhead = typeof client === 'string' && typeof used === 'number'
    const answer = this.#approved(tool, this.#cursor.tool(call, takesAhead ? { client, lastUsed: used } : {}))
    if (answer.answer === 'stop') this.#depart()
    const ahead = takesAhead && 'step' in answer ? this.#cursor.ahead(client) : []
    const reply = jsonReply(200, answer)
    return ahead.length === 0 ? reply : { ...reply, body: `${reply.body.slice(0, -1)},"ahead":[${ahead.join()}]}` }
  }

  /** Marks calls that were answered in advance as used, by their TOOL_START events. An agent may also record other calls. */
  #countAhead(): void {
    const starts = this.#service.events.filter(({ eventType }) => eventType === 'TOOL_START')
    const hashes = starts.map(({ payload }) => payload['inputHash'])
    this.#cursor.usedAhead(hashes.filter((hash) => typeof hash === 'string'))
  }

  /** Waits until clients have delivered the events of everything that the agent did before its request. */
  async #quiet(): Promise<void> {
    let [known, quietMs] = [-1, 0]
    for (let waited = 0; waited < SETTLED_MS && quietMs < QUIET_MS; waited += SETTLED_STEP_MS) {
      const { length } = this.#service.events
      quietMs = length === known ? quietMs + SETTLED_STEP_MS : 0
      known = length
      await setTimeout(SETTLED_STEP_MS)
    }
    this.#countAhead()
  }

  /** Stops a tool that would really run: its approval was recorded for a different input. */
  #approved(tool: string, answer: ToolAnswer): ToolAnswer {
    const others = this.#approvedOthers.get(tool) ?? 0
    if (others === 0 || answer.answer === 'stop') return answer
    if (answer.answer !== 'run') {
      this.#approvedOthers.set(tool, others - 1)
      return answer
    }
    this.#cursor.depart(undefined, `the approval of ${tool} is for another input: it does not run for real`, [])
    return { answer: 'stop', message: this.#cursor.departure?.sentence ?? '' }
  }

  async #serve(
    method: string,
    path: string,
    headers: IncomingHttpHeaders,
    body: Buffer,
    response: ServerResponse,
  ): Promise<void> {
    const plainHeaders = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
    // Unpack at once: with streams, a body of the SDK takes four times as long.
    const isPacked = plainHeaders['content-encoding'] === 'gzip'
    const content = (isPacked ? gunzipSync(body, { maxOutputLength: BODY_BYTES }) : body).toString()
    if (method === 'POST' && path.startsWith('/openapi/v1/issue-records') && this.#isRefusedClaim(content))
      return send(
        response,
        jsonReply(409, { status: 409, code: 'conflict', detail: 'Nothing ran under this approval' }),
      )
    const reply = (await this.#service.fetch(`http://replay${path}`, {
      method,
      headers: plainHeaders,
      body: content,
    })) as Response
    const text = await reply.text()
    const isRecorded = method === 'POST' && path.startsWith('/openapi/v1/events')
    if (isRecorded) this.#options.onEvents?.(this.#service.events)
    const isRead = method === 'GET' && reply.status === 200
    const replyHeaders =
      isRead && path.startsWith('/openapi/v1/firewall-approvals/')
        ? this.#withReason(text)
        : isRead && path.startsWith('/openapi/v1/runtime-config')
          ? this.#withFacts(text)
          : text
    const etag = reply.headers.get('etag')
    const sentHeaders = { 'content-type': 'application/json', ...(etag !== null && { etag }) }
    if (reply.status === 304) response.writeHead(304, sentHeaders).end()
    else send(response, { status: reply.status, headers: sentHeaders, body: replyHeaders })
    if (!isRecorded) return
    // After the answer, so that the client does not wait.
    this.#texts.shareIn(this.#service.events.slice(this.#sharedEvents))
    this.#sharedEvents = this.#service.events.length
  }

  /** Refuses a claim of an approval under which nothing may run. Clients claim an approval before the tool runs. */
  #isRefusedClaim(content: string): boolean {
    if (this.#unclaimable.size === 0) return false
    const { detectionType, evidence } = JSON.parse(content) as { detectionType?: unknown; evidence?: unknown }
    const { approvalId, decision } = isObject(evidence) ? evidence : {}
    return detectionType === 'APPROVAL_PENDING' && decision === 'APPROVED' && this.#unclaimable.has(approvalId)
  }

  #withReason(text: string): string {
    const approval = JSON.parse(text) as { id: string; decisionReason: string | null }
    return JSON.stringify({ ...approval, decisionReason: this.#reasons.get(approval.id) ?? null })
  }

  /** Adds version ids, because events name the prompt version that they used. */
  #withFacts(text: string): string {
    const configuration = JSON.parse(text) as { prompts: { name: string }[] }
    const toolLabels = this.#options.labels ?? this.#tape.head.labels ?? []
    const prompts = configuration.prompts.map((prompt) => {
      const { promptId, version, versionId } = this.#tape.head.prompts.find(({ name }) => name === prompt.name) ?? {}
      return { ...prompt, promptId, version, versionId }
    })
    return JSON.stringify({ ...configuration, prompts, toolLabels })
  }

  /**
   * Serves the policies, with a stop if one came while a person decided. Clients ask for the policies again before an
   * approved call runs.
   */
  #servePolicies(): void {
    const ofTape = this.#tape.head.policies as LocalPolicy[]
    const inForce = ofTape.filter(({ policyId }) => (this.#stops.get(policyId) ?? 0) <= this.#decidedCount)
    this.#service.setPolicies(this.#options.policies ?? inForce)
  }

  /** Decides an approval as in the tape, using each recorded decision once. Without a recorded decision, rejects it. */
  #decide(left: ApprovalStep[], { id, toolName, inputHash }: RequestedApproval): ApprovalAnswer {
    const sameTool = left.filter(({ tool }) => tool === toolName)
    // The hash of an input with masked parts depends on the API key, so it cannot be compared.
    const equal = sameTool.find((one) => one.inputHash === inputHash)
    const step = equal ?? (this.#cursor.isLive ? undefined : sameTool[0])
    if (!step) return 'reject'
    if (!equal && step.status === 'APPROVED')
      this.#approvedOthers.set(toolName, (this.#approvedOthers.get(toolName) ?? 0) + 1)
    left.splice(left.indexOf(step), 1)
    this.#decidedCount++
    if (this.#ranNothing.has(step)) this.#unclaimable.add(id)
    this.#servePolicies()
    if (step.reason !== undefined) this.#reasons.set(id, step.reason)
    return step.status === 'APPROVED' ? 'approve' : step.status === 'REJECTED' ? 'reject' : 'expire'
  }

  /** Forwards a request to a live model. @param path begins with the route. */
  async #live(path: string, { method = 'GET', headers }: IncomingMessage, body: Buffer, response: ServerResponse) {
    const [, route = '', rest = ''] = /^\/([^/]*)(.*)$/s.exec(path) ?? []
    const upstream = this.#options.upstreams?.get(route)
    if (upstream === undefined) return send(response, errorReply({ status: 502, message: `No model behind ${route}` }))
    const refusal = this.#options.refusal?.()
    if (refusal !== undefined) return send(response, errorReply({ status: 400, message: `tacho: ${refusal}` }))
    const { model } = this.#options
    const parsedBody = parsed(body)
    const content = model !== undefined && isObject(parsedBody) ? JSON.stringify({ ...parsedBody, model }) : body
    const sent = Object.entries(headers).filter(([name]) => !NOT_FORWARDED.has(name))
    const reply = await fetch(`${upstream.origin}${completePath(route, rest)}`, {
      method,
      headers: sent.map(([name, value]) => [name, String(value)] as [string, string]),
      ...(method !== 'GET' && { body: content }),
      redirect: 'manual',
    })
    const passed = [...reply.headers].filter(([name]) => PASSED_ON.test(name))
    response.writeHead(reply.status, Object.fromEntries(passed))
    if (reply.body) await pipeline(Readable.fromWeb(reply.body), response)
    else response.end()
  }
}

const NOT_FORWARDED = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'accept-encoding',
  'expect',
])

/** Response headers that are passed on: clients use them to decide when to retry. */
const PASSED_ON = /^(content-type|retry-after|retry-after-ms|x-should-retry|.*ratelimit.*|.*request-id)$/

async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const bodyPart of request as AsyncIterable<Buffer>) {
    bytes += bodyPart.length
    if (bytes > BODY_BYTES) return undefined
    parts.push(bodyPart)
  }
  return Buffer.concat(parts)
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString()) as unknown
  } catch {
    return undefined
  }
}

function send(response: ServerResponse, { status, headers, body }: WireReply): void {
  // With a content length, Node writes the answer in one piece instead of four.
  response.writeHead(status, { 'content-length': Buffer.byteLength(body), ...headers }).end(body)
}
