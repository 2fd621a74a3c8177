/**
 * Finds OpenTelemetry by its entry in the global registry, because the SDK depends on none of its packages. Without an
 * entry, each function does nothing.
 */
import { readSafely } from './json.ts'

export interface Trace {
  /** 32 hex digits. */
  readonly traceId: string
  /** 16 hex digits. */
  readonly spanId: string
  readonly traceFlags: number
}

interface OtelContext {
  getValue(key: symbol): unknown
  setValue(key: symbol, value: unknown): OtelContext
}

interface Manager {
  active(): OtelContext
  with<T>(context: OtelContext, act: () => T): T
}

const REGISTRY = Symbol.for('opentelemetry.js.api.1')
const SPAN = Symbol.for('OpenTelemetry Context Key SPAN')
const UNTRACED = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING')
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/

export function activeTrace(): Trace | undefined {
  const manager = managerOf()
  if (!manager) return undefined
  return readSafely(() => {
    const span = manager.active().getValue(SPAN) as { spanContext(): Trace } | undefined
    return span && traceOf(traceparentOf(span.spanContext()))
  }, undefined)
}

/** Runs `act`. Instrumented clients make no spans of its requests. */
export function untraced<T>(act: () => T): T {
  const manager = managerOf()
  if (!manager) return act()
  const context = readSafely(() => manager.active().setValue(UNTRACED, true), undefined)
  return context ? manager.with(context, act) : act()
}

/** W3C Trace Context. */
export function traceparentOf({ traceId, spanId, traceFlags }: Trace): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 255).toString(16).padStart(2, '0')}`
}

export function traceOf(traceparent: unknown): Trace | undefined {
  const [, traceId, spanId, flags = ''] = (typeof traceparent === 'string' && TRACEPARENT.exec(traceparent)) || []
  return traceId && spanId ? { traceId, spanId, traceFlags: Number.parseInt(flags, 16) } : undefined
}

function managerOf(): Manager | undefined {
  return (globalThis as { [REGISTRY]?: { context?: Manager } })[REGISTRY]?.context
}
