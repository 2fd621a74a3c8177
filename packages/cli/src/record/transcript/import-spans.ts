/** Imports a file of spans. Each trace becomes a run. It uses the reader of spans that arrive over OTLP. */
import type { EventInput } from '@tacho/contract/record/event.ts'
import { readSpans } from '@tacho/server/domain/record/otlp/read-request.ts'
import { markSameCalls } from '@tacho/server/domain/record/otlp/same-call.ts'
import { spanEvents, type OtlpEvent } from '@tacho/server/domain/record/otlp/span-event.ts'
import { Unreadable } from '@tacho/server/domain/record/otlp/attributes.ts'
import { wrongUsage } from '../../engine/stop.ts'
import type { Import } from './import-lines.ts'
import { fitPayload } from './shortened-payload.ts'
import { noteProblems, spokenTrouble, type ImportReport } from './import-report.ts'
import { keyValues, member, SpanFault, spansOf, type SourceSpan, type SpanFormat } from './span-files.ts'

/** A run can only be closed when all of its spans are known, so the file is read as a whole. */
export const LONGEST_FILE_BYTES = 128 * 1024 ** 2
const EVENTS_AT_ONCE = 1_000

type LineSpan = SourceSpan & { line: number }

export async function importSpans(
  stream: AsyncIterable<Uint8Array>,
  format: SpanFormat,
  report: ImportReport,
  importOptions: Import,
): Promise<void> {
  const note = (line: number, ...problems: string[]): void => {
    if (noteProblems(report, line, problems)) importOptions.onProblem({ line, problem: problems.join('; ') })
  }
  const text = await readAll(stream, importOptions.onProgress)
  const traces = Map.groupBy(readFile(text, format, report, note), traceOf)
  const recorded = { events: [] as EventInput[], lines: new Map<string, number>() }
  for (const spans of traces.values()) {
    if (closeTrace(spans)) report.closedRuns += 1
    const events = eventsOf(
      spans.map((one) => named(one, importOptions.options.agentName)),
      note,
    )
    if (events.length === 0) continue
    report.runs += new Set(events.map(({ event }) => event.runId)).size
    report.events += events.length
    report.firstRunId ??= events[0]?.event.runId ?? null
    markSameCalls(events.map(({ event }) => event))
    // A run belongs to the agent of its first stored event.
    for (const { event, line } of events.toSorted((a, b) => Number(b.event.namesAgent) - Number(a.event.namesAgent))) {
      recorded.events.push(eventInput(event, importOptions.options.agentId))
      recorded.lines.set(event.eventId, line)
    }
    if (recorded.events.length >= EVENTS_AT_ONCE) await send()
  }
  await send()
  report.finished = true
  report.problems.sort((one, other) => one.line - other.line)

  async function send(): Promise<void> {
    const { events, lines } = recorded
    Object.assign(recorded, { events: [], lines: new Map() })
    if (importOptions.recorder === null || events.length === 0) return
    const answer = await importOptions.recorder.record(events)
    report.acceptedEvents += answer.accepted
    report.rejectedEvents += answer.refused.length
    const lineOf = ({ eventId }: { eventId: string }) => lines.get(eventId) ?? 1
    const [refused, uncounted] = [Map.groupBy(answer.refused, lineOf), Map.groupBy(answer.uncounted, lineOf)]
    for (const line of new Set([...refused.keys(), ...uncounted.keys()])) {
      note(line, ...spokenTrouble({ refused: refused.get(line) ?? [], uncounted: uncounted.get(line) ?? [] }))
    }
  }
}

async function readAll(stream: AsyncIterable<Uint8Array>, onProgress: (bytes: number) => void): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const streamPart of stream) {
    bytes += streamPart.length
    if (bytes > LONGEST_FILE_BYTES) {
      throw wrongUsage(
        `The file has more than ${LONGEST_FILE_BYTES / 1024 ** 2} MiB: import it in parts, by whole traces.`,
      )
    }
    parts.push(streamPart)
    onProgress(streamPart.length)
  }
  return new TextDecoder().decode(Buffer.concat(parts))
}

type Note = (line: number, ...problems: string[]) => void

/** Reads one JSON value, or one from each line. */
function readFile(text: string, format: SpanFormat, report: ImportReport, note: Note): LineSpan[] {
  const whole = parsed(text)
  if (whole !== undefined) return readValue(whole, 1)
  return text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return []
    const value = parsed(line)
    if (value !== undefined) return readValue(value, index + 1)
    report.lines += 1
    note(index + 1, 'it is not valid JSON')
    return []
  })

  /** The spans of a value. Reads a list's items one by one, so that one faulty item does not affect the others. */
  function readValue(value: unknown, line: number): LineSpan[] {
    if (Array.isArray(value)) return value.flatMap((item) => readValue(item, line))
    report.lines += 1
    try {
      return spansOf(format, value).map((span) => ({ ...span, line }))
    } catch (error) {
      if (!(error instanceof SpanFault)) throw error
      note(line, error.message)
      return []
    }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const textAt = ({ span }: SourceSpan, name: string): string => {
  const value = member(span, name)
  return typeof value === 'string' || typeof value === 'number' ? String(value).toLowerCase() : ''
}
const traceOf = (span: SourceSpan): string => textAt(span, 'traceId')
const endOf = (span: SourceSpan): number => Number(textAt(span, 'endTimeUnixNano'))
const isFailed = ({ span: { status } }: SourceSpan): boolean =>
  [2, 'STATUS_CODE_ERROR'].includes((status as { code?: string | number } | undefined)?.code ?? 0)

/** Adds a root to a trace without one, which ends its run. Returns whether it did. */
function closeTrace(spans: LineSpan[]): boolean {
  const trace = spans.find(({ isTrace }) => isTrace)
  const others = spans.filter((one) => one !== trace)
  const last = others.toSorted((a, b) => endOf(a) - endOf(b)).at(-1)
  if (trace !== undefined) {
    for (const one of others) if (textAt(one, 'parentSpanId') === '') one.span['parentSpanId'] = trace.span['spanId']
    if (last !== undefined) {
      trace.span['endTimeUnixNano'] = last.span['endTimeUnixNano']
      if (isFailed(last)) trace.span['status'] = last.span['status']
    }
    return false
  }
  if (others.some((one) => textAt(one, 'parentSpanId').replaceAll('0', '') === '')) return false
  const ids = new Set(others.map((one) => textAt(one, 'spanId')))
  const topmost = others.filter((one) => !ids.has(textAt(one, 'parentSpanId'))).toSorted((a, b) => endOf(a) - endOf(b))
  const root = topmost.at(-1)
  if (root === undefined) return false
  const { parentSpanId: _, parent_span_id: __, ...span } = root.span
  root.span = span
  return true
}

/** Gives a span without a service or agent the agent of the command line. */
function named(one: LineSpan, agentName: string): LineSpan {
  const resource = (one.resource ?? {}) as { attributes?: unknown }
  const attributes = Array.isArray(resource.attributes) ? (resource.attributes as { key?: unknown }[]) : []
  if (attributes.some(({ key }) => key === 'service.name')) return one
  return { ...one, resource: { ...resource, attributes: [...attributes, ...keyValues({ 'service.name': agentName })] } }
}

interface LineEvent {
  event: OtlpEvent
  line: number
}

/** Reads spans together. On a fault, splits them in halves until the faulty one is alone. */
function eventsOf(spans: readonly LineSpan[], note: Note): LineEvent[] {
  const resourceSpans = spans.map(({ resource, scope, span }) => ({ resource, scopeSpans: [{ scope, spans: [span] }] }))
  const read = readSpans(Buffer.from(JSON.stringify({ resourceSpans })), 'json')
  if (typeof read === 'string' && spans.length > 1) {
    const half = spans.length >> 1
    return [...eventsOf(spans.slice(0, half), note), ...eventsOf(spans.slice(half), note)]
  }
  if (typeof read === 'string') {
    note(spans[0]?.line ?? 1, read === 'too_many' ? 'its span has too many values' : 'its span cannot be read')
    return []
  }
  return read.flatMap((sent, index) => {
    const line = spans[index]?.line ?? 1
    const events = spanEvents(sent)
    if (!(events instanceof Unreadable)) return events.map((event) => ({ event, line }))
    note(line, `span ${[events.id, JSON.stringify(events.name)].join(' ').trim()}: ${events.reason}`)
    return []
  })
}

function eventInput({ namesAgent: _, ...event }: OtlpEvent, agentId: string | null): EventInput {
  return {
    ...event,
    ...(event.agentId === undefined && agentId !== null ? { agentId } : {}),
    payload: fitPayload(event.payload).payload,
  }
}
