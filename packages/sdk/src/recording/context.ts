import { AsyncLocalStorage } from 'node:async_hooks'
import type { Failure } from '../delivery/ending.ts'
import { readSafely } from './json.ts'
import type { Trace } from './open-telemetry.ts'
import type { CarriedState, OpenCall } from './carried-state.ts'
import type { RunState } from './run-state.ts'

export interface RunScope {
  readonly runId: string
  readonly sessionId: string | undefined
  readonly agentId: string | undefined
  readonly agentName: string
  /** If not, only its outcome and policy decisions are recorded. */
  readonly isSampled: boolean
  /** Event fields, as JSON without braces. */
  readonly json: string
  readonly span: Span
  readonly recorder: Recorder
  /** Added to payloads that lack the key. */
  readonly annotations: Map<string, unknown>
  readonly state: RunState
  /** State from the handle with which a Recorder resumes the run. */
  readonly handed?: CarriedState | undefined
  /** Client id under which approvals are requested. */
  readonly approvalClientId: string
  /**
   * Trace of events outside a span of OpenTelemetry: that of the request or process in which the run started, or one that
   * `traceparent` began.
   */
  trace?: Trace | undefined
  /** When the host entered it. Undefined after its first event. */
  enteredAt?: number | undefined
  /** The outcome is recorded: approvals no longer start calls of this run. */
  hasEnded?: boolean
  /** The failure of the last model call, if its framework passes no error on to the host. */
  failure?: Failure | undefined
  /** Usage by other processes, as the host gave it. */
  readonly usedBefore?: unknown
}

/** The service counts how many of its events arrived. */
export interface Recorder {
  readonly id: string
  /** Number of its latest event. */
  count: number
  /** Dropped events, by reason. */
  dropped?: Record<string, [count: number, lastAt: number]>
}

export interface Span {
  readonly spanId: string
  readonly parentSpanId: string | undefined
  /**
   * Marks for the payloads of this span's events. Replaced, never changed: spans that begin in it keep the marks of their
   * beginning.
   */
  marks?: SpanMarks | undefined
}

export interface SpanMarks {
  /** The prompt that was requested last in this span, or before it in the spans around it. */
  readonly promptVersionId?: string | undefined
  /** The requested prompt is the fallback from the code. */
  readonly promptFallback?: true | undefined
  /** The agent that acts here, unless it is the run's. */
  readonly agent?: string | undefined
}

/** Copies the marks: a prompt that a sibling requests later is not one of this span. */
export function childSpan(spanId: string, parent: Span): Span {
  return { spanId, parentSpanId: parent.spanId, marks: parent.marks }
}

export interface Context {
  readonly scope: RunScope
  readonly span: Span
  /** The call that a host continues here; its approval counts for this call only. */
  readonly continues?: OpenCall
}

/** Clients do not share runs. */
export interface CurrentContext {
  getStore(): Context | undefined
  run<T>(context: Context, act: () => T): T
}

export function createContext(): CurrentContext {
  return new AsyncLocalStorage()
}

type Snapshot = () => <T>(act: () => T) => T

/** Whether this is workerd, also if a bundler chose the parts for Node, whose modules exist there. */
export const isWorkerd =
  (globalThis as { navigator?: { userAgent?: unknown } }).navigator?.userAgent === 'Cloudflare-Workers'

/**
 * Runs background work outside the request in which a host first uses the SDK. Otherwise its requests would stay in that trace
 * forever, and Next.js forbids clocks while it prerenders. In workerd, it stays in the request: nothing outlives a request.
 */
export const outside =
  // Some edge runtimes have a stub that throws.
  readSafely(() => (isWorkerd ? undefined : (AsyncLocalStorage as { snapshot?: Snapshot }).snapshot?.()), undefined) ??
  (<T>(act: () => T): T => act())
