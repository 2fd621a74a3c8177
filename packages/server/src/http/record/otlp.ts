/** OTLP 1.9. If a part cannot be stored, the whole request is refused: exporters retry it, and nothing counts twice. */
import type { BatchResult } from '@tacho/contract/record/event.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { OTLP_ROUTES, type OtlpSignal } from '@tacho/contract/web/protocol-routes.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { batchResult } from '../../domain/record/event.ts'
import type { Signal } from '../../domain/record/otlp/telemetry-validation.ts'
import type { PackedTelemetry, TelemetryPart } from '../../domain/record/otlp/packed-telemetry.ts'
import type { Encoding } from '../../domain/record/otlp/read-request.ts'
import type { PartialSuccess } from '../../domain/record/otlp/reply.ts'
import type { EventVerdict } from '../../storage/record/events.ts'
import { tenantOf } from '../tenants/api-key.ts'
import type { Deps } from '../web/deps.ts'
import { admitEvents, storeBatch } from './events.ts'
import { mediaType, PROTOBUF } from './exporters.ts'
import { holderOf } from '../tenants/rate-limit.ts'
import { refuse, replyError } from '../web/reply-error.ts'
import { bodyHook } from '../web/serve-route.ts'

const PARTS_AT_ONCE = 4

const REJECTED = { traces: 'rejectedSpans', logs: 'rejectedLogRecords', metrics: 'rejectedDataPoints' } as const

export function otlpRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, bodyValidator, memory, metrics, now, config } = deps
  for (const signal of ['traces', 'logs'] as const) {
    addRoute(signal, async (body, encoding, request, reply) => {
      const { workspaceId, environmentId } = tenantOf(request)
      const receivedAt = now()
      const context = { workspaceId, now: receivedAt }
      const validated = await bodyValidator.validateTelemetry(body, { signal, encoding }, context, holderOf(request))
      if (!validated.ok) return replyError(request, reply, refuse(validated.code, validated.detail))
      const { batch, parts, namesAgent } = validated
      const verdicts = await storeParts(parts, namesAgent, (tracePart) =>
        storeBatch(storage, environmentId, receivedAt, tracePart, request),
      )
      const result = batchResult(batch, verdicts)
      metrics.recordBatch(result)
      if (result.retryableEventIds.length > 0) {
        const code = storage.writesRefused() ?? 'storage_unavailable'
        return replyError(request, reply, refuse(code, 'Retry the whole request; nothing is counted twice'))
      }
      if (validated.openTraces.length > 0) {
        // The earliest time at which any environment's rule can end the trace.
        const dueAt = receivedAt + LIMITS.stalledMinutesMin * 60_000
        // If the queue fails, the stalled rule ends the runs.
        await storage.queueTraceEnds(environmentId, validated.openTraces, dueAt).catch(() => undefined)
      }
      return answer(reply, signal, encoding, partialSuccess(validated, result, signal))
    })
  }
  addRoute('metrics', async (body, encoding, request, reply) => {
    const rejected = await bodyValidator.dataPoints(body, encoding, holderOf(request))
    return answer(reply, 'metrics', encoding, { rejected, errorMessage: 'Metrics are not kept. Send traces and logs.' })
  })

  function addRoute(
    signal: OtlpSignal,
    handle: (body: Buffer, encoding: Encoding, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>,
  ): void {
    const route = OTLP_ROUTES[signal]
    app.route({
      method: 'POST',
      url: route.path,
      config: { route },
      onRequest: bodyHook(
        { maxBytes: config.otlpMaxBytes, memory, binaryType: PROTOBUF, isOfExporter: true },
        admitEvents(storage),
      ),
      handler: (request, reply) => {
        const encoding = mediaType(request.headers) === PROTOBUF ? 'protobuf' : 'json'
        return handle(request.bodyBytes ?? Buffer.alloc(0), encoding, request, reply)
      },
    })
  }
}

async function storeParts(
  parts: readonly TelemetryPart[],
  isFirstAlone: boolean,
  store: (part: TelemetryPart) => Promise<EventVerdict[] | null>,
): Promise<EventVerdict[] | null> {
  const verdicts: EventVerdict[] = []
  for (let at = 0, atOnce = isFirstAlone ? 1 : PARTS_AT_ONCE; at < parts.length; at += atOnce, atOnce = PARTS_AT_ONCE) {
    for (const stored of await Promise.all(parts.slice(at, at + atOnce).map(store))) {
      if (stored === null) return null
      verdicts.push(...stored)
    }
  }
  return verdicts
}

/** Warnings are a partial success that rejects nothing (OTLP 1.9, "Partial Success"). */
function partialSuccess({ batch, itemOf, unreadable }: PackedTelemetry, result: BatchResult, signal: Signal) {
  const { rejections, warnings = [] } = result
  const rejected = new Set(rejections.map(({ index }) => itemOf[index])).size + unreadable.length
  const faults = [
    ...unreadable.map(({ id, name, reason }) => faultText(signal, id, name, reason)),
    ...[...rejections, ...warnings].map(({ eventId, index, message }) =>
      faultText(signal, eventId ?? '', labelAt(batch, index), message),
    ),
  ]
  if (faults.length === 0) return null
  const more = faults.length > FAULTS_NAMED ? [`and ${faults.length - FAULTS_NAMED} more`] : []
  return { rejected, errorMessage: [...faults.slice(0, FAULTS_NAMED), ...more].join('; ') }
}

const FAULTS_NAMED = 10

function labelAt({ events, indexes }: PackedTelemetry['batch'], index: number): string {
  return events[indexes.indexOf(index)]?.label ?? ''
}

function faultText(signal: Signal, id: string, name: string, reason: string): string {
  const item = signal === 'traces' ? 'span' : 'log record'
  return `${[item, id, name === '' ? '' : JSON.stringify(name)].filter((labelPart) => labelPart !== '').join(' ')}: ${reason}`
}

async function answer(
  reply: FastifyReply,
  signal: OtlpSignal,
  encoding: Encoding,
  partial: PartialSuccess | null,
): Promise<FastifyReply> {
  if (encoding === 'protobuf') {
    const { protobufReply } = await import('../../domain/record/otlp/reply.ts')
    return reply.type(PROTOBUF).send(protobufReply(partial))
  }
  // Integers of 64 bits are texts in protobuf's JSON.
  const rejectedItems = partial && { [REJECTED[signal]]: String(partial.rejected), errorMessage: partial.errorMessage }
  return reply
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(rejectedItems ? { partialSuccess: rejectedItems } : {}))
}
