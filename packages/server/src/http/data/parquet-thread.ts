/** Parses and compresses in a thread, because both would delay every request. */
import { zstdCompressSync } from 'node:zlib'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { answerCalls } from '../../threads/threads.ts'
import { isErrorEvent } from '@tacho/contract/issues/failure.ts'
import { callCounts, type CallCounts } from '@tacho/contract/record/usage-shapes.ts'
import { knownCost, knownTokens } from '@tacho/contract/runs/run-text.ts'
import { NANOS, usageOf } from '../../domain/record/usage.ts'
import type { StoredEvent } from '../../storage/record/events.ts'

type ParquetType = 'text' | 'texts' | 'time' | 'integer' | 'number' | 'flag'
type ParquetValue = string | string[] | number | boolean | null

interface ParquetColumn<Row> {
  name: string
  type: ParquetType
  valueOf: (row: Row) => ParquetValue
}

export interface ParquetEvent {
  runId: string
  event: StoredEvent
}

interface ReadEvent extends ParquetEvent {
  payload: Record<string, unknown>
  usage: ReturnType<typeof usageOf>
  /** Null: not a model call, or one without a token count. */
  counts: CallCounts | null
}

const column = <Row>(name: string, type: ParquetType, valueOf: (row: Row) => ParquetValue): ParquetColumn<Row> => ({
  name,
  type,
  valueOf,
})

const ofEvent = (name: keyof StoredEvent, type: ParquetType = 'text') =>
  column<ReadEvent>(name, type, ({ event }) => event[name] ?? null)

const EVENT_COLUMNS: readonly ParquetColumn<ReadEvent>[] = [
  column('runId', 'text', ({ runId }) => runId),
  ofEvent('eventId'),
  ofEvent('sessionId'),
  ofEvent('agentId'),
  ofEvent('agentName'),
  ofEvent('clientId'),
  ofEvent('eventType'),
  ofEvent('label'),
  column('timestamp', 'time', ({ event }) => event.time),
  ofEvent('receivedAt', 'time'),
  ofEvent('spanId'),
  ofEvent('parentSpanId'),
  ofEvent('schemaVersion'),
  column('latency', 'number', ({ event }) => (event.latencyMicros === null ? null : event.latencyMicros / 1_000)),
  column('isError', 'flag', ({ event, payload }) => isErrorEvent(event.eventType, payload)),
  column('toolName', 'text', ({ event, payload }) =>
    event.eventType === 'TOOL_CALL' ? textOf(payload['toolName']) : null,
  ),
  column('model', 'text', ({ usage }) => (usage === null || usage.model === '' ? null : usage.model)),
  column('promptTokens', 'integer', ({ counts }) => counts?.promptTokens ?? null),
  column('completionTokens', 'integer', ({ counts }) => counts?.completionTokens ?? null),
  column('totalTokens', 'integer', ({ counts }) => totalOf(counts)),
  column('cost', 'number', ({ usage }) => (usage === null || usage.uncosted !== null ? null : usage.costNanos / NANOS)),
  // A stored payload has at least 2 bytes; 0 means that it was removed.
  column('payload', 'text', ({ event }) => (event.payloadBytes === 0 ? null : event.payload)),
]

/** UTF-8 cannot hold lone surrogates. */
const textOf = (value: unknown): string | null => (typeof value === 'string' ? value.toWellFormed() : null)

function readEvent({ runId, event }: ParquetEvent): ReadEvent {
  const payload = JSON.parse(event.payload) as Record<string, unknown>
  const usage = usageOf(event.eventType, payload)
  return { runId, event, payload, usage, counts: usage && callCounts(payload['usage']) }
}

/** A total is unknown if one of its parts is missing. */
function totalOf(counts: CallCounts | null): number | null {
  if (counts === null) return null
  const { promptTokens, completionTokens, totalTokens, unknown } = counts
  if (totalTokens !== null) return totalTokens
  const isKnown = unknown.length === 0 && (promptTokens ?? completionTokens) !== null
  return isKnown ? (promptTokens ?? 0) + (completionTokens ?? 0) : null
}

const ofRun = (name: keyof OperatorRun, type: ParquetType = 'text') =>
  column<OperatorRun>(name, type, (run) => run[name] as ParquetValue)
type TimeName = 'startedAt' | 'endedAt' | 'lastEventAt' | 'receivedAt' | 'pinnedAt' | 'closedByRuleAt'
const timeOf = (name: TimeName) =>
  column<OperatorRun>(name, 'time', (run) => (run[name] === null ? null : Date.parse(run[name])))

const RUN_COLUMNS: readonly ParquetColumn<OperatorRun>[] = [
  ofRun('id'),
  ofRun('runId'),
  ofRun('status'),
  timeOf('startedAt'),
  timeOf('endedAt'),
  ofRun('sessionId'),
  ofRun('userId'),
  ofRun('agentId'),
  column('agentName', 'text', ({ agent }) => agent.name),
  // A count that the list of unknown counts names is null: with zeros, a mean would be too small.
  column('promptTokens', 'integer', ({ usage }) => knownTokens(usage) && usage.promptTokens),
  column('completionTokens', 'integer', ({ usage }) => knownTokens(usage) && usage.completionTokens),
  column('totalTokens', 'integer', ({ usage }) => knownTokens(usage)),
  column('cost', 'number', knownCost),
  ofRun('estimatedCost', 'number'),
  ofRun('priceTable'),
  ofRun('unpricedCalls', 'integer'),
  ofRun('eventCount', 'integer'),
  ofRun('errorCount', 'integer'),
  ofRun('tools', 'texts'),
  ofRun('models', 'texts'),
  ofRun('policyIds', 'texts'),
  ofRun('promptVersionIds', 'texts'),
  ofRun('tags', 'texts'),
  ofRun('loops', 'texts'),
  column('metadata', 'text', ({ metadata }) => (Object.keys(metadata).length === 0 ? null : JSON.stringify(metadata))),
  timeOf('lastEventAt'),
  timeOf('receivedAt'),
  timeOf('pinnedAt'),
  ofRun('payloadsRemoved', 'integer'),
  ofRun('title'),
  ofRun('answer'),
  ...(['errorClass', 'message', 'place', 'name', 'eventId'] as const).map((name) =>
    column<OperatorRun>(
      `failure${name[0]?.toUpperCase()}${name.slice(1)}`,
      'text',
      ({ failure }) => failure?.[name] ?? null,
    ),
  ),
  column('completeness', 'text', ({ completeness }) => completeness.state),
  ...(['recorded', 'rejected', 'dropped', 'missing'] as const).map((name) =>
    column<OperatorRun>(`${name}Events`, 'integer', ({ completeness }) => completeness[name]),
  ),
  ofRun('differingRetries', 'integer'),
  timeOf('closedByRuleAt'),
  column('scores', 'text', ({ scores }) => (scores.length === 0 ? null : JSON.stringify(scores))),
]

export type ParquetTable = 'events' | 'runs'
export type ParquetRows = readonly ParquetEvent[] | readonly OperatorRun[]

export interface ParquetTask {
  file: number
  table: ParquetTable
  rows: ParquetRows | 'end' | 'forget'
}

type Writer = ReturnType<typeof createTableWriter<never>>

const writers = new Map<number, Writer>()

function writerOf(file: number, table: ParquetTable): Writer {
  const writer = writers.get(file) ?? newWriter(table)
  writers.set(file, writer)
  return writer
}

function newWriter(table: ParquetTable): Writer {
  if (table === 'runs') return createTableWriter(RUN_COLUMNS) as Writer
  const writer = createTableWriter(EVENT_COLUMNS)
  return { add: (rows: readonly ParquetEvent[]) => writer.add(rows.map(readEvent)), end: writer.end }
}

answerCalls(perform, ({ buffer }) => [buffer])

function perform({ file, table, rows }: ParquetTask): Uint8Array<ArrayBuffer> {
  if (rows === 'forget') {
    writers.delete(file)
    return new Uint8Array()
  }
  const writer = writerOf(file, table)
  return rows === 'end' ? writer.end() : writer.add(rows as readonly never[])
}

type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number]

/** Bounded, because readers keep a row group in memory. */
const GROUP_ROWS = 50_000
const GROUP_CHARS = 4 * 1_048_576

function createTableWriter<Row>(columns: readonly ParquetColumn<Row>[]) {
  const bytes = new ByteWriter()
  const schema = [{ name: 'root', num_children: columns.length }, ...columns.flatMap(elementsOf)]
  const compressors = { ZSTD: (data: Uint8Array) => zstdCompressSync(data) }
  const file = new ParquetWriter({ writer: bytes, schema, codec: 'ZSTD', compressors, createdBy: 'tacho' })
  let group: ParquetValue[][] = columns.map(() => [])
  let [rowCount, chars] = [0, 0]

  function writeGroup(): void {
    if (rowCount === 0) return
    const columnData = columns.map(({ name, type }, index) => {
      const values = group[index] ?? []
      const data = type === 'integer' || type === 'time' ? values.map(toBigInt) : values
      return { name, data, offsetIndex: false, statistics: type !== 'texts' }
    })
    void file.write({ columnData, rowGroupSize: rowCount })
    group = columns.map(() => [])
    rowCount = chars = 0
  }

  function taken(): Uint8Array<ArrayBuffer> {
    const written = bytes.getBytes().slice()
    // Continue at the writer's offset in the file.
    bytes.index = 0
    return written
  }

  return {
    add(rows: readonly Row[]): Uint8Array<ArrayBuffer> {
      for (const row of rows) {
        for (const [index, { valueOf }] of columns.entries()) {
          const value = valueOf(row)
          group[index]?.push(value)
          if (typeof value === 'string') chars += value.length
        }
        rowCount += 1
        if (rowCount >= GROUP_ROWS || chars >= GROUP_CHARS) writeGroup()
      }
      return taken()
    },
    end(): Uint8Array<ArrayBuffer> {
      writeGroup()
      // Needs no await, because a writer in memory is synchronous.
      void file.finish()
      return taken()
    },
  }
}

const toBigInt = (value: ParquetValue): bigint | null => (typeof value === 'number' ? BigInt(value) : null)

const TYPES: Readonly<Record<Exclude<ParquetType, 'texts'>, Omit<SchemaElement, 'name'>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  // Without the logical type, readers treat the times as local, and so count days differently in each zone.
  time: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
  integer: { type: 'INT64' },
  number: { type: 'DOUBLE' },
  flag: { type: 'BOOLEAN' },
}

function elementsOf({ name, type }: { name: string; type: ParquetType }): SchemaElement[] {
  if (type !== 'texts') return [{ name, ...TYPES[type], repetition_type: 'OPTIONAL' }]
  return [
    { name, converted_type: 'LIST', repetition_type: 'OPTIONAL', num_children: 1 },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    { name: 'element', ...TYPES.text, repetition_type: 'OPTIONAL' },
  ]
}
