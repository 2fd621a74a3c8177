import type { RunScope, Span } from './context.ts'
import type { Core } from './core.ts'
import { scopeJson, type EventType, type Payload } from './event.ts'

export type Outcome = 'COMPLETED' | 'FAILED' | 'CANCELLED'

export interface RunOptions {
  /** Default: a new UUIDv7. Give one to continue a run that began elsewhere. */
  runId?: string
  /** Groups related runs, for example one conversation. */
  sessionId?: string
  agentId?: string
  agentName?: string
  /** The span in the calling process that this run's events belong under. */
  parentSpanId?: string
}

export interface LlmCall {
  model?: string
  /** Milliseconds. */
  latency?: number
  /** In the currency of your choice. */
  cost?: number
  usage?: { promptTokens?: number; completionTokens?: number; totalTokens?: number }
  messages?: unknown
  output?: unknown
  [key: string]: unknown
}

export interface ToolCall {
  toolName: string
  input?: unknown
  output?: unknown
  error?: unknown
  /** Milliseconds. */
  latency?: number
  inputHash?: string
  approvalId?: string
  [key: string]: unknown
}

/** One agent execution. Every method returns at once and never throws; each returns the id of its event. */
export class Run {
  readonly #core: Core
  readonly #scope: RunScope
  #isEnded = false

  constructor(core: Core, scope: RunScope) {
    this.#core = core
    this.#scope = scope
  }

  get runId(): string {
    return this.#scope.runId
  }

  get sessionId(): string | undefined {
    return this.#scope.sessionId
  }

  /** Adds keys to the payload of every later event of this run that lacks them. */
  annotate(values: Payload): void {
    for (const [key, value] of Object.entries(values)) this.#scope.annotations.set(key, value)
  }

  userInput(text: string, payload?: Payload): string | undefined {
    return this.record('USER_INPUT', 'user input', { text, ...payload })
  }

  step(label: string, payload?: Payload): string | undefined {
    return this.record('AGENT_STEP', label, payload)
  }

  llmCall(call: LlmCall): string | undefined {
    return this.record('LLM_CALL', call.model ?? 'model call', call)
  }

  toolCall(call: ToolCall): string | undefined {
    return this.record('TOOL_CALL', call.toolName, call)
  }

  error(error: unknown, payload?: Payload): string | undefined {
    const { name, message } = error instanceof Error ? error : { name: 'error', message: String(error) }
    return this.record('ERROR', name, { message, code: (error as { code?: unknown } | null)?.code, ...payload })
  }

  /** Records any event. */
  record(type: EventType, label: string, payload?: Payload): string | undefined {
    return this.#core.record(this.#scope, { type, label, payload })
  }

  /** Runs `act` in a span below the current one. */
  span<T>(_name: string, act: () => T): T {
    const parent = this.#core.context.getStore()
    const parentSpanId = parent?.scope === this.#scope ? parent.span.spanId : this.#scope.span.spanId
    const span: Span = { spanId: this.#core.ids.span(), parentSpanId }
    return this.#core.context.run({ scope: this.#scope, span }, act)
  }

  /** Runs `act` with this run as the current one. */
  within<T>(act: () => T): T {
    return this.#core.context.run({ scope: this.#scope, span: this.#scope.span }, act)
  }

  /** Records the outcome. Later calls do nothing. */
  end(status: Outcome = 'COMPLETED', payload?: Payload): string | undefined {
    if (this.#isEnded) return undefined
    this.#isEnded = true
    return this.record('SESSION_OUTCOME', status.toLowerCase(), { ...payload, status })
  }
}

export function createScope(core: Core, options: RunOptions): RunScope {
  const { settings, ids } = core
  const { sessionId, agentId = settings.agentId, agentName = settings.agentName } = options
  const runId = options.runId ?? ids.uuid()
  const { clientId, schemaVersion } = settings
  return {
    runId,
    sessionId,
    agentId,
    agentName,
    isSampled: true,
    json: scopeJson({ clientId, runId, sessionId, agentId, agentName, schemaVersion }),
    span: { spanId: ids.span(), parentSpanId: options.parentSpanId },
    annotations: new Map(),
  }
}
