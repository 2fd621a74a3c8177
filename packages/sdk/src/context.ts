/** Where the host's code is just now: in which run and in which span of it. */
import { AsyncLocalStorage } from 'node:async_hooks'

/** What all events of a run have in common. */
export interface RunScope {
  readonly runId: string
  readonly sessionId: string | undefined
  readonly agentId: string | undefined
  readonly agentName: string
  /** Whether all its events are recorded, or only its outcome and policy decisions. */
  readonly isSampled: boolean
  /** The fields that all its events share, as JSON without braces. */
  readonly json: string
  /** Its root span. */
  readonly span: Span
  /** Added to the payload of each event that has no such key, for example `promptVersionId`. */
  readonly annotations: Map<string, unknown>
}

export interface Span {
  readonly spanId: string
  readonly parentSpanId: string | undefined
}

export interface Context {
  readonly scope: RunScope
  readonly span: Span
}

/** One for each client: a run of one client is no run of another. */
export interface CurrentContext {
  getStore(): Context | undefined
  run<T>(context: Context, act: () => T): T
}

export function createContext(): CurrentContext {
  return new AsyncLocalStorage()
}
