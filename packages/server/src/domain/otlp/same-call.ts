/**
 * A client and a gateway in front of it (`litellm_request` around `openai.chat`), or two instrumentations of one client,
 * each send a span of one model call. The innermost one that says its usage counts; the others show `notCounted`.
 */
import type { OtlpEvent } from './span-event.ts'

/** Only spans of one request are compared: they end within milliseconds, and exporters send them together. */
export function markSameCalls(events: readonly OtlpEvent[]): void {
  const spans = new Map<string, OtlpEvent>()
  for (const event of events) if (event.spanId !== undefined) spans.set(`${event.runId} ${event.spanId}`, event)
  const parentOf = ({ runId, parentSpanId }: OtlpEvent) =>
    parentSpanId === undefined ? undefined : spans.get(`${runId} ${parentSpanId}`)
  for (const call of events) {
    if (call.eventType !== 'LLM_CALL') continue
    let around = parentOf(call)
    // A tool's own model calls are calls of their own.
    for (let level = 0; around !== undefined && around.eventType !== 'TOOL_CALL' && level < LEVELS_MAX; level++) {
      if (around.eventType === 'LLM_CALL') {
        const repeated = saysUsage(call) || !saysUsage(around) ? around : call
        repeated.payload['notCounted'] = 'same_call'
      }
      around = parentOf(around)
    }
  }
}

const LEVELS_MAX = 20

const saysUsage = ({ payload }: OtlpEvent) => payload['usage'] !== undefined || payload['cost'] !== undefined
