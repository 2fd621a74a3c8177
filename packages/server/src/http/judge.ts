/** Validates small bodies directly and large ones on a thread, because parsing 1 MiB of JSON can take 30 ms. */
import { Worker } from 'node:worker_threads'
import { waitForTurn } from './turns.ts'
import { moduleUrl } from '../program/module-url.ts'
import { PendingCalls } from '../threads/pending-calls.ts'
import { judgeBatch, type JudgeContext, type Judgement } from '../domain/event.ts'
import type { Signal, TelemetryJudgement } from '../domain/otlp/judge.ts'
import type { Encoding } from '../domain/otlp/read-request.ts'

/** Up to these sizes, even the slowest body is validated within a few milliseconds. */
const DIRECT_BYTES = { batch: 128 * 1024, telemetry: 32 * 1024 }

export interface Judge {
  judge(body: Buffer, context: JudgeContext): Promise<Judgement>
  judgeTelemetry(body: Buffer, format: TelemetryFormat, context: JudgeContext): Promise<TelemetryJudgement>
  close(): Promise<void>
}

export interface TelemetryFormat {
  signal: Signal
  encoding: Encoding
}

/** What is done with a body, here or on the thread. `format` is null for a batch of events. */
export interface JudgeTask {
  id: number
  body: Uint8Array
  format: TelemetryFormat | null
  context: JudgeContext
}
type Judged = Judgement | TelemetryJudgement
export interface JudgeAnswer {
  id: number
  judged: Judged
}

export async function performTask({ body, format, context }: Omit<JudgeTask, 'id'>): Promise<Judged> {
  if (format) {
    // Loaded with the first request: most installations never need protobuf.
    const { judgeTelemetry } = await import('../domain/otlp/judge.ts')
    return judgeTelemetry(format.signal, format.encoding, body, context)
  }
  return judgeBatch(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString(), context)
}

export function createJudge(directBytes: typeof DIRECT_BYTES = DIRECT_BYTES): Judge {
  // Each has its own thread: a span takes several times as long as an event, and batches must not wait for spans.
  const batches = createLane(directBytes.batch)
  const telemetry = createLane(directBytes.telemetry)
  return {
    judge: async (body, context) => (await batches.perform({ body, format: null, context })) as Judgement,
    judgeTelemetry: async (body, format, context) =>
      (await telemetry.perform({ body, format, context })) as TelemetryJudgement,
    async close() {
      await Promise.all([batches.close(), telemetry.close()])
    },
  }
}

function createLane(directBytes: number) {
  const calls = new PendingCalls<Judged>()
  let thread: Worker | null = null

  // Start the thread for the first large body: most installations never need it.
  function start(): Worker {
    const started = new Worker(moduleUrl('judge-thread', import.meta.url))
    started.unref()
    started.on('message', ({ id, judged }: JudgeAnswer) => calls.resolve(id, judged))
    started.once('error', (error) => end(error instanceof Error ? error : new Error(String(error))))
    started.once('exit', () => end(new Error('the validation thread ended')))
    return started
  }

  function end(error: Error): void {
    thread = null
    calls.rejectAll(error)
  }

  return {
    async perform(task: Omit<JudgeTask, 'id'>): Promise<Judged> {
      if (task.body.length <= directBytes) {
        await waitForTurn()
        return performTask(task)
      }
      const judging = (thread ??= start())
      return calls.start((id) => judging.postMessage({ id, ...task } satisfies JudgeTask))
    },
    async close() {
      await thread?.terminate()
    },
  }
}
