/** Worst requests of OpenTelemetry, as JSON and as protobuf. */
import { gzipSync } from 'node:zlib'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { OtlpSignal } from '@tacho/contract/web/protocol-routes.ts'
import type { WorstRequest } from './worst-own.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const PROTOBUF = { 'content-type': 'application/x-protobuf' }

export function telemetryBodies(signal: OtlpSignal, bytes: number): WorstRequest[] {
  const json = Object.entries(jsonBodies(signal, bytes)).map(([kind, text]) => ({
    kind: `${kind}, JSON`,
    headers: JSON_TYPE,
    body: Buffer.from(text),
  }))
  const values = Buffer.from(`${' '.repeat(bytes - 100)}{}`)
  return [
    ...json,
    { kind: 'gzip, JSON', headers: { ...JSON_TYPE, 'content-encoding': 'gzip' }, body: gzipSync(values) },
    { kind: 'blank lines and a fault, JSON', headers: JSON_TYPE, body: Buffer.from(`${'\n'.repeat(bytes - 1)}x`) },
    { kind: 'most values, protobuf', headers: PROTOBUF, body: nestedLists(2 * LIMITS.otlpValues) },
    { kind: 'beyond the values, protobuf', headers: PROTOBUF, body: nestedLists(bytes - 1_000) },
    { kind: 'chunks of one byte', headers: JSON_TYPE, body: Buffer.from(' '.repeat(4_000)), chunkBytes: 1 },
  ]
}

const RESOURCE = '{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]}'
let sent = 0

function jsonBodies(signal: OtlpSignal, bytes: number): Record<string, string> {
  const now = `${Date.now()}000000`
  const item = (n: number, attributes: string): string =>
    signal === 'traces'
      ? `{"traceId":"${hex(sent * 1e5 + (n % 1_000), 32)}","spanId":"${hex(n + 1, 16)}","name":"step","startTimeUnixNano":"${now}","endTimeUnixNano":"${now}","attributes":[${attributes}]}`
      : `{"timeUnixNano":"${now}","traceId":"${hex(sent * 1e5 + (n % 1_000), 32)}","spanId":"${hex(n + 1, 16)}","body":{"stringValue":"step"},"attributes":[${attributes}]}`
  const [outer, scope, items] =
    signal === 'traces'
      ? ['resourceSpans', 'scopeSpans', 'spans']
      : signal === 'logs'
        ? ['resourceLogs', 'scopeLogs', 'logRecords']
        : ['resourceMetrics', 'scopeMetrics', 'metrics']
  const whole = (count: number, attributes: string, resource = RESOURCE): string => {
    sent++
    return `{"${outer}":[{"resource":${resource},"${scope}":[{"scope":{"name":"bench"},"${items}":[${Array.from({ length: count }, (_, n) => item(n, attributes)).join()}]}]}]}`
  }
  const attribute = (key: string, value: string): string => `{"key":"${key}","value":{"stringValue":"${value}"}}`
  const many = Array.from({ length: 20 }, (_, n) => attribute(`key.${n}`, 'value')).join()
  const room = bytes - 1_000
  return {
    'most items': whole(LIMITS.otlpItems, attribute('k', 'v'.repeat(Math.floor(room / LIMITS.otlpItems) - 400))),
    'most attributes': whole(Math.floor(room / (many.length + 250)), many),
    'longest text': whole(1, attribute('k', 'x'.repeat(room - 1_000))),
    'most escapes': whole(100, attribute('k', '\\u8a9e'.repeat(Math.floor(room / 700)))),
    'texts beyond Latin': whole(100, attribute('k', '語'.repeat(Math.floor(room / 400)))),
    'largest resource': whole(LIMITS.otlpItems - 1, '', `{"attributes":[${attribute('k', 'x'.repeat(3_000))}]}`),
    deepest: whole(1, `{"key":"k","value":${'{"arrayValue":{"values":['.repeat(50_000)}${']}}'.repeat(50_000)}}`),
    'most faults': whole(LIMITS.otlpItems, '{"key":1}'),
  }
}

const hex = (value: number, width: number): string => value.toString(16).padStart(width, '0')

/** One span whose only attribute is a list of empty lists: two bytes each, and several objects when decoded. */
export function nestedLists(bytes: number): Buffer<ArrayBuffer> {
  const field = (number: number, content: Uint8Array): Buffer => {
    const size: number[] = []
    let left = content.length
    for (; left > 127; left >>>= 7) size.push((left & 127) | 128)
    return Buffer.concat([Buffer.from([(number << 3) | 2, ...size, left]), content])
  }
  // AnyValue { array_value { values: AnyValue {} } }: the outer list has an empty value for each two bytes.
  const values = Buffer.alloc(bytes)
  for (let at = 0; at < values.length; at += 2) values[at] = 0x0a
  const attribute = Buffer.concat([field(1, Buffer.from('list')), field(2, field(5, values))])
  const span = Buffer.concat([field(1, Buffer.alloc(16, 1)), field(2, Buffer.alloc(8, 1)), field(9, attribute)])
  return Buffer.from(field(1, field(2, field(2, span))))
}
