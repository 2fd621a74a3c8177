/** Calculates the bar of each step of a run: its start, its end, and the depth of its span. Pure. */
import type { EventRow } from '../record/event.ts'

/** Deeper spans are not indented further. */
const DEEPEST = 8

export interface Bar {
  from: number
  to: number
  depth: number
}

export type DrawnStep = Pick<EventRow, 'eventId' | 'eventType' | 'spanId' | 'parentSpanId' | 'latency'> & {
  time: number
}

/** Bars in the order of the steps. */
export function barsOf(steps: readonly DrawnStep[]): Bar[] {
  const spans = spansOf(steps)
  const depthOf = (spanId: string | null): number => {
    let depth = 0
    // Bounded, because spans may name each other in a circle.
    for (let at = spanId && spans.get(spanId)?.parent; at && depth < DEEPEST; depth++)
      at = spans.get(at)?.parent ?? null
    return depth
  }
  return steps.map((step) => {
    const { spanId, time, eventId, eventType, latency } = step
    const depth = depthOf(spanId)
    if (latency !== null) return { ...called(step, latency), depth }
    const spanStart = spanId === null ? undefined : spans.get(spanId)
    // The last event of the run's own span is its outcome, which ends the whole run, not only this span.
    const closes = spanStart?.last === eventId && eventType === 'AGENT_STEP'
    return { from: closes ? spanStart.from : time, to: time, depth }
  })
}

/** SDKs and importers record a call at its end. The event of an OpenTelemetry span has the time of its start. */
function called({ spanId, eventId, time }: DrawnStep, latency: number): { from: number; to: number } {
  const isSpan = spanId === eventId
  return isSpan ? { from: time, to: time + latency } : { from: time - latency, to: time }
}

function spansOf(steps: readonly DrawnStep[]): Map<string, { from: number; last: string; parent: string | null }> {
  const spans = new Map<string, { from: number; last: string; parent: string | null }>()
  for (const { spanId, parentSpanId, time, eventId } of steps) {
    if (spanId === null) continue
    const known = spans.get(spanId)
    if (known) {
      known.last = eventId
      known.parent ??= parentSpanId
    } else spans.set(spanId, { from: time, last: eventId, parent: parentSpanId })
  }
  return spans
}

/** The time that all bars together cover. */
export function extentOf(stepBars: readonly Bar[]): { from: number; span: number } {
  let [from, to] = [Infinity, -Infinity]
  for (const bar of stepBars) [from, to] = [Math.min(from, bar.from), Math.max(to, bar.to)]
  return from > to ? { from: 0, span: 1 } : { from, span: Math.max(1, to - from) }
}
