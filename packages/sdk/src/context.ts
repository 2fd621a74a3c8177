/** The run and the span that the host's code is currently in. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { readSafely } from './json.ts'
import type { Trace } from './open-telemetry.ts'
import type { OpenCall, RunState } from './run-state.ts'

/** What all events of a run share. */
export interface RunScope {
  readonly runId: string
  readonly sessionId: string | undefined
  readonly agentId: string | undefined
  readonly agentName: string
  /** Whether all its events are recorded, or only its outcome and policy decisions. */
  readonly isSampled: boolean
  /** The shared event fields, as JSON without braces. */
  readonly json: string
  /** Its root span. */
  readonly span: Span
  readonly recorder: Recorder
  /** Added to each event payload that lacks the key. */
  readonly annotations: Map<string, unknown>
  readonly state: RunState
  /** In whose name approvals are requested. */
  readonly approvalClientId: string
  /** For events outside a span of OpenTelemetry: of the request or the process that the run comes from, or of its own requests. */
  trace?: Trace | undefined
  /** What other processes used of the run, as the host gave it. */
  readonly usedBefore?: unknown
}

/** What this client recorded of the run: the service counts what of it arrived. */
export interface Recorder {
  readonly id: string
  /** Number of its latest event. */
  count: number
  /** By reason: how many, and when the last. */
  dropped?: Record<string, [count: number, lastAt: number]>
}

export interface Span {
  readonly spanId: string
  readonly parentSpanId: string | undefined
  /** Of the prompt that was requested last in this span, or before it in the spans around it. */
  promptVersionId?: string | undefined
}

/** A span inside another one. It keeps the prompt of its beginning: prompts of spans beside it are not its own. */
export function childSpan(spanId: string, parent: Span): Span {
  return { spanId, parentSpanId: parent.spanId, promptVersionId: parent.promptVersionId }
}

export interface Context {
  readonly scope: RunScope
  readonly span: Span
  /** The call that a host continues here: its approval counts for this call only. */
  readonly continues?: OpenCall
}

/** One per client, because clients do not share runs. */
export interface CurrentContext {
  getStore(): Context | undefined
  run<T>(context: Context, act: () => T): T
}

export function createContext(): CurrentContext {
  return new AsyncLocalStorage()
}

type Snapshot = () => <T>(act: () => T) => T

/**
 * Calls `act` in the context of the import. The SDK's background work is no part of the request in which a host first
 * uses it: its requests would be in that request's trace for ever, and Next.js forbids clocks while it prerenders.
 */
export const outside =
  // Some edge runtimes have a stub that throws.
  readSafely(() => (AsyncLocalStorage as { snapshot?: Snapshot }).snapshot?.(), undefined) ??
  (<T>(act: () => T): T => act())
