/**
 * The part of an answer that reports rejected items. For metrics, it has the number of their data points, because no
 * metric is stored.
 */
import { create, toBinary } from '@bufbuild/protobuf'
import { ReplySchema } from './otlp_pb.ts'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { attempt } from '../../web/text.ts'
import { hasMoreValues } from '../../web/json-body.ts'
import { otlpJson } from './read-json.ts'
import type { Encoding } from './read-request.ts'

export interface PartialSuccess {
  rejected: number
  errorMessage: string
}

export function protobufReply(partial: PartialSuccess | null): Buffer {
  const partialSuccess = partial && { ...partial, rejected: BigInt(partial.rejected) }
  return Buffer.from(toBinary(ReplySchema, create(ReplySchema, partialSuccess ? { partialSuccess } : {})))
}

/**
 * Field numbers on the way to a data point in opentelemetry-proto: groups, their scopes, metrics, their kind, and the
 * points.
 */
const FIELDS: readonly ReadonlySet<number>[] = [[1], [2], [2], [5, 7, 9, 10, 11], [1]].map((fields) => new Set(fields))
const MEMBERS: readonly (readonly string[])[] = [
  ['resourceMetrics', 'resource_metrics'],
  ['scopeMetrics', 'scope_metrics'],
  ['metrics'],
  ['gauge', 'sum', 'histogram', 'exponentialHistogram', 'exponential_histogram', 'summary'],
  ['dataPoints', 'data_points'],
]

/** Counts the data points in a request of metrics, up to the first fault. */
export function dataPointsIn(body: Uint8Array, encoding: Encoding): number {
  if (encoding === 'protobuf') return pointsInMessage(body, 0)
  if (hasMoreValues(body, LIMITS.otlpValues, { names: false })) return 0
  return pointsInJson(
    attempt(() => otlpJson(body)),
    0,
  )
}

function pointsInMessage(bytes: Uint8Array, level: number): number {
  let points = 0
  attempt(() => {
    const reader = new BinaryReader(bytes)
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag()
      const isOnTheWay = wireType === WireType.LengthDelimited && FIELDS[level]?.has(field) === true
      if (!isOnTheWay) reader.skip(wireType, field)
      else if (level === FIELDS.length - 1) {
        reader.skip(wireType, field)
        points += 1
      } else points += pointsInMessage(reader.bytes(), level + 1)
    }
  })
  return points
}

function pointsInJson(value: unknown, level: number): number {
  if (Array.isArray(value)) {
    return level === MEMBERS.length
      ? value.length
      : value.reduce((sum: number, one) => sum + pointsInJson(one, level), 0)
  }
  const names = isObject(value) ? (MEMBERS[level] ?? []) : []
  return names.reduce((sum, name) => sum + pointsInJson((value as Record<string, unknown>)[name], level + 1), 0)
}
