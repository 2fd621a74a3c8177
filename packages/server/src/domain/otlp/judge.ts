/** Validates the spans or log records of one OTLP request, each on its own, as events of a batch. */
import { LIMITS } from '@tacho/contract/limits.ts'
import { judgeItems, type JudgeContext, type JudgedBatch } from '../event.ts'
import { logEvents } from './log-event.ts'
import { readLogs, readSpans, type Encoding } from './read-request.ts'
import { shortenedJson } from './shorten.ts'
import { spanEvents, type OtlpEvent } from './span-event.ts'

export type Signal = 'traces' | 'logs'

/** `itemOf[i]` is the position of the span or record that became event `i`. */
export interface JudgedTelemetry {
  batch: JudgedBatch
  itemOf: number[]
  /** Spans or records that cannot be decoded. */
  unreadable: number
}

/** Null if the body does not have the expected format. */
export function judgeTelemetry(
  signal: Signal,
  encoding: Encoding,
  body: Uint8Array,
  context: JudgeContext,
): JudgedTelemetry | null {
  const found =
    signal === 'traces' ? readSpans(body, encoding)?.map(spanEvents) : readLogs(body, encoding)?.map(logEvents)
  if (found === undefined) return null
  const events: OtlpEvent[] = []
  const itemOf: number[] = []
  found.forEach((ofItem, item) => {
    for (const event of ofItem) {
      events.push(event)
      itemOf.push(item)
    }
  })
  // Attributes deeper than a payload can be are cut.
  const payloadAt = (index: number) => ({
    json: shortenedJson(events[index]?.payload ?? {}, LIMITS.payloadBytes),
    levels: 1,
  })
  return {
    batch: judgeItems(events, payloadAt, context),
    itemOf,
    unreadable: found.filter((ofItem) => ofItem.length === 0).length,
  }
}
