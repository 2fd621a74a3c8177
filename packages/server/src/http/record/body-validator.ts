/**
 * Validates small bodies directly and large ones on a thread, because parsing 1 MiB of JSON can take 30 ms.
 *
 *   none --large body--> running --it runs out of memory, or fails--> none: that body is refused, others get a new thread
 *                           └──close──> none: all are rejected
 *
 * A thread gets one body to work on and the next one. The others wait, and workspaces take turns.
 */
import { Worker } from 'node:worker_threads'
import { waitForTurn } from '../web/turns.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { moduleUrl } from '../../program/program.ts'
import { validateBatch, type ValidationContext, type BatchValidation } from '../../domain/record/event.ts'
import type {
  ValidatedTelemetry,
  TelemetryFormat,
  TelemetryValidation,
} from '../../domain/record/otlp/telemetry-validation.ts'
import { buffersOf, packTelemetry, type PackedTelemetry } from '../../domain/record/otlp/packed-telemetry.ts'
import type { Encoding } from '../../domain/record/otlp/read-request.ts'
import type { ReadImport } from '../../domain/data/import.ts'
import { type Holder, TurnsByWorkspace } from '../../storage/engine/turns-by-workspace.ts'
import type { SchemaFault } from '../../domain/web/schema-faults.ts'

/** Up to these sizes, even the slowest body is validated within a few milliseconds. */
const DIRECT_BYTES = { batch: 128 * 1024, telemetry: 32 * 1024 }
/** Telemetry of more bytes takes seconds, so it has a separate thread for which other telemetry does not wait. */
const BULK_BYTES = 2 * 1_048_576
const BODIES_IN_THREAD = 2

/** Several times what the largest body takes. Above this limit, the thread ends, not the process. */
const HEAP_MEGABYTES = 256
const TOO_MUCH_MEMORY = {
  ok: false,
  code: 'body_too_large',
  detail: 'The body takes too much memory when it is decoded; send smaller requests',
} as const

export type BodyValidator = ReturnType<typeof createBodyValidator>

interface BodyTask {
  body: Uint8Array
  format: (TelemetryFormat & { maxPayloadBytes: number }) | null
  context: ValidationContext
}
/** A separate task: the lines of an import contain JSON as text, with as many values as fit in a line. */
interface ImportTask {
  importBody: Uint8Array
  workspaceId: string
}
/** A task for the thread, because patterns that ignore case take 50 ms to compile. */
interface ConditionTask {
  condition: string
  ofLabels: boolean
}
interface MetricsTask {
  metricsBody: Uint8Array
  encoding: Encoding
}
type Task = BodyTask | ImportTask | ConditionTask | MetricsTask
export type ValidationTask = Task & { id: number }
type ValidationResult = number | BatchValidation | TelemetryAnswer | ReadImport | SchemaFault[]
type TelemetryAnswer = PackedTelemetry | Exclude<TelemetryValidation, ValidatedTelemetry>
export interface ValidationAnswer {
  id: number
  validated: ValidationResult
}

export async function performTask(task: Task): Promise<ValidationResult> {
  if ('importBody' in task) {
    const { readImportBody } = await import('../../domain/data/import.ts')
    return readImportBody(task.importBody, task.workspaceId)
  }
  if ('condition' in task) {
    const { conditionFaults } = await import('../../domain/policies/policy.ts')
    return conditionFaults(task.condition, task.ofLabels)
  }
  if ('metricsBody' in task) {
    const { dataPointsIn } = await import('../../domain/record/otlp/reply.ts')
    return dataPointsIn(task.metricsBody, task.encoding)
  }
  const { body, format, context } = task
  if (format) {
    // Imported on first use, because most installations never need protobuf.
    const { validateTelemetry } = await import('../../domain/record/otlp/telemetry-validation.ts')
    const validated = validateTelemetry(format, body, context)
    return validated.ok ? packTelemetry(validated) : validated
  }
  return validateBatch(Buffer.from(body.buffer, body.byteOffset, body.byteLength), context)
}

/** Returns the buffers that move between threads instead of being copied. */
export function buffersIn(validated: ValidationResult): ArrayBuffer[] {
  if (typeof validated !== 'object' || !('batch' in validated)) return []
  if ('parts' in validated) return buffersOf(validated)
  return validated.batch.body === null ? [] : [validated.batch.body.buffer as ArrayBuffer]
}

/** Factor by which the limit of a telemetry request exceeds the default. The memory that one may take grows with it. */
export const telemetryScale = (maxBytes: number): number => Math.max(1, maxBytes / LIMITS.otlpBytes)

export function createBodyValidator({
  directBytes = DIRECT_BYTES,
  heapMegabytes = HEAP_MEGABYTES,
  telemetryScale: scale = 1,
} = {}) {
  // Separate threads: a span takes several times as long as an event, and batches must not wait for spans.
  const batches = createLane(directBytes.batch, heapMegabytes)
  const telemetry = createLane(directBytes.telemetry, heapMegabytes)
  const bulk = createLane(directBytes.telemetry, Math.ceil(heapMegabytes * scale))
  return {
    validateBatch: async (body: Buffer, context: ValidationContext, holder = holderIn(context)) =>
      (await batches.perform({ body, format: null, context }, holder)) as BatchValidation,
    validateTelemetry: async (
      body: Buffer,
      format: TelemetryFormat,
      context: ValidationContext,
      holder = holderIn(context),
    ) => {
      const lane = body.length > BULK_BYTES ? bulk : telemetry
      const maxPayloadBytes = LIMITS.otlpPayloadBytes * scale
      return (await lane.perform({ body, format: { ...format, maxPayloadBytes }, context }, holder)) as TelemetryAnswer
    },
    readImport: async (importBody: Uint8Array, workspaceId: string, holder: Holder) =>
      (await bulk.perform({ importBody, workspaceId }, holder)) as ReadImport,
    /** Counts the data points of a metrics request. */
    dataPoints: async (metricsBody: Uint8Array, encoding: Encoding, holder: Holder) => {
      const lane = metricsBody.length > BULK_BYTES ? bulk : telemetry
      const counted = await lane.perform({ metricsBody, encoding }, holder)
      return typeof counted === 'number' ? counted : 0
    },
    /** `ofLabels`: the condition belongs to a rule of tool labels, so it may read the output. */
    conditionFaults: async (condition: string, holder: Holder, ofLabels = false) =>
      (await bulk.perform({ condition, ofLabels }, holder)) as SchemaFault[] | typeof TOO_MUCH_MEMORY,
    async close(): Promise<void> {
      await Promise.all([batches.close(), telemetry.close(), bulk.close()])
    },
  }
}

const holderIn = ({ workspaceId }: Pick<ValidationContext, 'workspaceId'>): Holder => ({
  workspace: workspaceId,
  credential: '',
})

function sizeOf(task: Task): number {
  if ('importBody' in task) return task.importBody.length
  if ('condition' in task) return task.condition.includes('matches') ? Infinity : task.condition.length
  return 'metricsBody' in task ? task.metricsBody.length : task.body.length
}

interface Waiting extends PromiseWithResolvers<ValidationResult> {
  task: ValidationTask
  holder: Holder
}

function createLane(directBytes: number, heapMegabytes: number) {
  const queue = new TurnsByWorkspace<Waiting>()
  const sent = new Map<number, Waiting>()
  let thread: Worker | null = null
  let [lastId, isClosed] = [0, false]

  function start(): Worker {
    const resourceLimits = { maxOldGenerationSizeMb: heapMegabytes }
    const started = new Worker(moduleUrl('validation-thread', import.meta.url), { resourceLimits })
    let fault: Error | null = null
    started.unref()
    started.on('message', ({ id, validated }: ValidationAnswer) => {
      sent.get(id)?.resolve(validated)
      sent.delete(id)
      sendNext()
    })
    started.once('error', (error) => (fault = error instanceof Error ? error : new Error(String(error))))
    // Now all answers of the thread have arrived.
    started.once('exit', () => ended(fault))
    return started
  }

  /** The thread failed at the first task. A new thread takes the others. */
  function ended(fault: Error | null): void {
    thread = null
    const [failed, ...others] = sent.values()
    if (failed && !isClosed) {
      sent.delete(failed.task.id)
      if (fault && 'code' in fault && fault.code === 'ERR_WORKER_OUT_OF_MEMORY') failed.resolve(TOO_MUCH_MEMORY)
      else failed.reject(fault ?? new Error('the validation thread ended'))
      for (const { task } of others) post(task)
      sendNext()
      return
    }
    for (const { reject } of sent.values()) reject(fault ?? new Error('the validation thread ended'))
    sent.clear()
    for (let next = queue.shift(() => true); next; next = queue.shift(() => true)) {
      next.reject(fault ?? new Error('the validation thread ended'))
    }
    isClosed = false
  }

  function sendNext(): void {
    while (sent.size < BODIES_IN_THREAD) {
      const next = queue.shift(() => true)
      if (next === null) return
      sent.set(next.task.id, next)
      post(next.task)
    }
  }

  function post(task: ValidationTask): void {
    thread ??= start()
    thread.postMessage(task)
  }

  return {
    async perform(validationTask: Task, holder: Holder): Promise<ValidationResult> {
      if (sizeOf(validationTask) <= directBytes) {
        await waitForTurn(holder)
        return performTask(validationTask)
      }
      const waiting = {
        task: { ...validationTask, id: ++lastId },
        holder,
        ...Promise.withResolvers<ValidationResult>(),
      }
      queue.push(waiting)
      sendNext()
      return waiting.promise
    },
    async close() {
      if (thread === null) return
      isClosed = true
      await thread.terminate()
    },
  }
}
