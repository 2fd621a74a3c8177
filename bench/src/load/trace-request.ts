/** An OTLP request in protobuf: a trace as large as a batch of events. */
import { randomBytes } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { KeyValueSchema, ResourceSchema, ScopeSchema, SpanSchema } from '@tacho/server/domain/record/otlp/otlp_pb.ts'
import { BATCH_EVENTS, EVENT_BYTES } from './events.ts'

const TRACE_ID = Buffer.alloc(16, 0xee)
const TEXT = 'The customer asks for a refund of an order that arrived damaged. '

/** A request in which `renew` replaces the trace id, without encoding the request again. */
export function createTraceRequest(): { body: Buffer; renew(body: Buffer): void } {
  const body = traceRequest()
  const places = placesOf(body, TRACE_ID)
  return {
    body,
    renew(copy) {
      const traceId = randomBytes(16)
      for (const place of places) traceId.copy(copy, place)
    },
  }
}

/** Spans as an instrumented model client sends them, padded to the size of an event. */
function traceRequest(): Buffer {
  const begun = BigInt(Date.now() - 60_000) * 1_000_000n
  const make = (filler: string): Uint8Array => {
    const spans = Array.from({ length: BATCH_EVENTS }, (_, index) =>
      create(SpanSchema, {
        traceId: TRACE_ID,
        spanId: spanId(index),
        parentSpanId: index === 0 ? new Uint8Array() : spanId(0),
        name: 'Decide what to do next',
        startTimeUnixNano: begun + BigInt(index) * 1_000_000n,
        endTimeUnixNano: begun + BigInt(index + 1) * 1_000_000n,
        attributes: [
          text('gen_ai.operation.name', index % 4 === 1 ? 'chat' : 'invoke_agent'),
          text('gen_ai.request.model', 'gpt-5-mini'),
          integer('gen_ai.usage.input_tokens', 1204n),
          integer('gen_ai.usage.output_tokens', 96n),
          text('gen_ai.agent.name', 'Support agent'),
          text('input.value', filler),
        ],
      }),
    )
    const scope = toBinary(ScopeSchema, create(ScopeSchema, { name: 'bench' }))
    const scopeSpans = group(
      scope,
      spans.map((span) => toBinary(SpanSchema, span)),
    )
    const resource = create(ResourceSchema, { attributes: [text('service.name', 'shop')] })
    const resourceSpans = group(toBinary(ResourceSchema, resource), [scopeSpans])
    return new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(resourceSpans).finish()
  }
  const missing = EVENT_BYTES - Math.ceil(make('').length / BATCH_EVENTS)
  return Buffer.from(make(TEXT.repeat(Math.ceil(missing / TEXT.length)).slice(0, missing)))
}

/** A resource with its scopes, or a scope with its spans: the shared part has field number 1, and each member 2. */
function group(shared: Uint8Array, members: readonly Uint8Array[]): Uint8Array {
  const writer = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(shared)
  for (const member of members) writer.tag(2, WireType.LengthDelimited).bytes(member)
  return writer.finish()
}

const text = (key: string, value: string) =>
  create(KeyValueSchema, { key, value: { value: { case: 'stringValue', value } } })
const integer = (key: string, value: bigint) =>
  create(KeyValueSchema, { key, value: { value: { case: 'intValue', value } } })

function spanId(index: number): Uint8Array {
  const id = Buffer.alloc(8, 0x11)
  id.writeUInt32BE(index + 1)
  return id
}

function placesOf(bytes: Buffer, marker: Buffer): number[] {
  const places: number[] = []
  for (let at = bytes.indexOf(marker); at !== -1; at = bytes.indexOf(marker, at + marker.length)) places.push(at)
  if (places.length !== BATCH_EVENTS) throw new Error(`${places.length} trace ids found`)
  return places
}
