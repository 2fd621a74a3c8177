/** Prometheus metrics. Labels have fixed values and never name a tenant, because /metrics needs no key. */
import type { Server } from 'node:http'
import { monitorEventLoopDelay, type ELDHistogram } from 'node:perf_hooks'
import { SPOOL_TROUBLES, type SpoolTrouble } from '@tacho/contract/engine/words.ts'
import type { BatchResult } from '@tacho/contract/record/event.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Storage } from '../../storage/storage.ts'
import type { InForce } from '../../storage/approvals/approvals.ts'
import { DERIVATIONS } from '../../domain/policies/derived-decision.ts'
import { WORK_KINDS, type WorkBacklog } from '../../storage/engine/work.ts'
import type { BodyMemory } from './read-body.ts'
import type { ReplyMemory } from './reply-memory.ts'
import { within } from './turns.ts'

export type Metrics = ReturnType<typeof createMetrics>

export interface MetricsSources {
  version: string
  storage: Storage
  memory: BodyMemory
  replies: ReplyMemory
  workers?: { gather(own: Registry): Promise<string> } | null
  process?: ProcessFacts | undefined
}

/** Facts are null if the system does not provide them. */
export interface ProcessFacts {
  openDescriptors(): number | null
  maxDescriptors(): number | null
  droppedLines(): number
}

const UNKNOWN_PROCESS: ProcessFacts = { openDescriptors: () => null, maxDescriptors: () => null, droppedLines: () => 0 }

const LOOK_MS = 20

export function createMetrics(sources: MetricsSources) {
  const registry = new Registry()
  const requests = new Histogram({
    name: 'tacho_http_request_duration_seconds',
    help: 'Time from the request line to the end of the reply',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [registry],
  })
  const events = new Counter({
    name: 'tacho_events_total',
    help: 'Events by verdict; accepted includes events stored before',
    labelNames: ['verdict'],
    registers: [registry],
  })
  const rejections = new Counter({
    name: 'tacho_event_rejections_total',
    help: 'Permanently rejected batch items, by reason',
    labelNames: ['code'],
    registers: [registry],
  })
  const spools = new Counter({
    name: 'tacho_client_spool_trouble_total',
    help: 'Batches with which a client said that its spool was full, or that it cannot use it (failed)',
    labelNames: ['trouble'],
    registers: [registry],
  })
  // Start at 0, because an increase is visible only after an earlier value.
  for (const trouble of SPOOL_TROUBLES) spools.inc({ trouble }, 0)
  const removed = new Counter({
    name: 'tacho_retention_removed_total',
    help: 'Rows that retention has removed, by what they are',
    labelNames: ['what'],
    registers: [registry],
  })
  const freed = new Counter({
    name: 'tacho_retention_freed_bytes_total',
    help: 'Bytes in the file of the store that retention has freed',
    registers: [registry],
  })
  const derived = new Counter({
    name: 'tacho_decisions_derived_total',
    help: 'Recorded decisions that the service judged again, by what that gave; unknown: it cannot be derived',
    labelNames: ['result'],
    registers: [registry],
  })
  for (const result of DERIVATIONS) derived.inc({ result }, 0)
  const meters = metersIn(registry)
  const open = { connections: 0 }
  meters.gauge('tacho_http_connections', 'Open connections of clients', () => open.connections)
  storeMetrics(meters, sources.storage)
  processMetrics(meters, sources)
  new Gauge({
    name: 'tacho_build_info',
    help: 'Always 1; labels name the version',
    labelNames: ['version', 'node'],
    registers: [registry],
    aggregator: 'first',
  }).set({ version: sources.version, node: process.versions.node }, 1)
  workMetrics(registry, sources.storage)

  return {
    registry,
    processFacts: sources.process ?? UNKNOWN_PROCESS,
    text: () => sources.workers?.gather(registry) ?? registry.metrics(),
    recordBatch(result: BatchResult): void {
      events.inc({ verdict: 'accepted' }, result.accepted)
      events.inc({ verdict: 'retryable' }, result.retryableEventIds.length)
      events.inc({ verdict: 'rejected' }, result.rejections.length)
      for (const { code } of result.rejections) rejections.inc({ code })
    },
    recordSpoolTrouble: (trouble: SpoolTrouble) => spools.inc({ trouble }),
    recordRetention(rows: Record<string, number>, bytes: number | null): void {
      for (const [what, count] of Object.entries(rows)) removed.inc({ what }, count)
      freed.inc(bytes ?? 0)
    },
    recordDerived: (result: string, decisions: number) => derived.inc({ result }, decisions),
    countConnections(server: Server): void {
      server.on('connection', (socket) => {
        open.connections++
        socket.once('close', () => open.connections--)
      })
    },
    recordRequest: (labels: { method: string; route: string; status: number }, seconds: number) =>
      requests.observe(labels, seconds),
  }
}

export function metricsHooks(app: FastifyInstance, { metrics }: { metrics: Metrics }): void {
  metrics.countConnections(app.server)
  app.addHook('onResponse', (request, reply, done) => {
    const labels = { method: methodLabel(request), route: routeLabel(request), status: reply.statusCode }
    metrics.recordRequest(labels, reply.elapsedTime / 1000)
    done()
  })
}

export function metricsRoutes(app: FastifyInstance, { metrics }: { metrics: Metrics }): void {
  app.get('/metrics', async (_request, reply) => {
    return reply.type(metrics.registry.contentType).send(await metrics.text())
  })
}

export function routeLabel(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'none'
}

function methodLabel({ method }: FastifyRequest): string {
  return ['GET', 'HEAD', 'POST'].includes(method) ? method : 'other'
}

function storeMetrics({ gauge, counter }: Meters, storage: Storage): void {
  gauge('tacho_store_queued_bytes', 'Bytes of events waiting for a commit', () => storage.gauges().queuedBytes)
  gauge('tacho_store_size_bytes', 'Size of the store including its log', () => storage.gauges().storeBytes, 'max')
  gauge('tacho_store_disk_free_bytes', 'Free disk space at the store', () => storage.gauges().diskFreeBytes, 'min')
  gauge(
    'tacho_store_free_bytes',
    'Bytes in the file of the store that are free for new rows',
    () => storage.gauges().freeBytes,
  )
  counter(
    'tacho_store_damaged_payloads_total',
    'Reads of payloads that do not match their checksums',
    () => storage.gauges().damagedPayloads,
  )
  counter(
    'tacho_store_damaged_settings_total',
    'Reads of policies, prompts, settings, keys and roles that do not match their checksums',
    () => storage.gauges().damagedSettings,
  )
  gauge(
    'tacho_store_damaged',
    '1 if the store has found its own structures damaged, otherwise 0',
    () => (storage.damage() === null ? 0 : 1),
    'max',
  )
  const writable = () => (storage.writesRefused() === null && storage.trouble() === null ? 1 : 0)
  gauge('tacho_store_writable', '1 if every worker accepts writes, otherwise 0', writable, 'min')
  gauge(
    'tacho_store_commit_wait_seconds',
    'How long the oldest write has waited for its commit',
    () => storage.gauges().commitWaitMs / 1000,
    'max',
  )
  gauge(
    'tacho_store_clock_offset_seconds',
    "How far the store's clock is ahead of this machine's",
    () => storage.clockOffsetMs() / 1000,
    'max',
  )
  gauge('tacho_nodes', 'Processes serving the store, on all machines', () => storage.nodes(), 'max')
  counter('tacho_store_commits_total', 'Commits of events', () => storage.gauges().commits)
  counter(
    'tacho_store_committed_events_total',
    'Committed events, including duplicates',
    () => storage.gauges().committedEvents,
  )
}

/** Anyone can scrape, so the backlog is read at most once per interval. */
const BACKLOG_KEPT_MS = 1_000
const BACKLOG_WAIT_MS = 500

function workMetrics(registry: Registry, storage: Storage): void {
  type Reading = { now: number; kinds: WorkBacklog[]; inForce: InForce } | null
  let reading: { at: number; backlog: Promise<Reading> } | null = null
  const backlog = () => {
    if (reading === null || performance.now() - reading.at >= BACKLOG_KEPT_MS) {
      const now = Date.now()
      const reads = Promise.all([storage.workBacklog(now), storage.countInForce(now)])
      // Even if the store does not answer, report the other metrics, which then matter even more.
      reading = {
        at: performance.now(),
        backlog: reads.then(
          ([kinds, inForce]) => ({ now, kinds, inForce }),
          () => null,
        ),
      }
    }
    return reading.backlog
  }
  const gaugeOfStore = (
    name: string,
    help: string,
    labelNames: string[],
    show: (gauge: Gauge, backlog: NonNullable<Reading>) => void,
  ) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      // Describes the store, not this process.
      aggregator: 'max',
      async collect() {
        this.reset()
        // A store that hangs must not delay the other metrics.
        const storeReading = await within(backlog(), BACKLOG_WAIT_MS, null)
        if (storeReading !== null) show(this, storeReading)
        else if (labelNames.length === 0) this.remove()
      },
    })
  const gaugeByKind = (name: string, help: string, read: (found: WorkBacklog, now: number) => number) =>
    gaugeOfStore(name, help, ['kind'], (gauge, { now, kinds }) => {
      for (const kind of WORK_KINDS) gauge.set({ kind }, 0)
      for (const each of kinds) gauge.set({ kind: each.kind }, read(each, now))
    })
  gaugeByKind('tacho_work_items', 'Waiting and running background work items', ({ items }) => items)
  gaugeByKind('tacho_work_late_seconds', 'How long the oldest due item has waited', ({ dueSince }, now) =>
    dueSince === null ? 0 : Math.max(0, now - dueSince) / 1000,
  )
  const gaugeInForce = (name: string, help: string, member: keyof InForce) =>
    gaugeOfStore(name, help, [], (gauge, { inForce }) => gauge.set(inForce[member]))
  gaugeInForce('tacho_stops_in_effect', 'Stops that hold agents, sessions, runs or environments', 'stops')
  gaugeInForce('tacho_grants_in_use', 'Standing approvals that may still approve calls', 'grants')
  gaugeInForce('tacho_grants_in_use_uses', 'Calls that the standing approvals in use have approved', 'grantUses')
}

function processMetrics(
  { gauge, counter }: Meters,
  { memory, replies, process: process_ = UNKNOWN_PROCESS }: MetricsSources,
): void {
  const delay = monitorEventLoopDelay({ resolution: LOOK_MS })
  delay.enable()
  gauge('tacho_body_memory_bytes', 'Bytes of request bodies in memory', () => memory.bytes)
  gauge('tacho_body_memory_limit_bytes', 'Limit for request bodies in memory', () => memory.maxBytes)
  gauge('tacho_reply_memory_bytes', 'Bytes of replies that are being built or are unread', () => replies.bytes)
  gauge('tacho_reply_memory_limit_bytes', 'Limit for replies in memory', () => replies.maxBytes)
  delayGauges(gauge, delay)
  gauge('process_open_fds', 'Open file descriptors', process_.openDescriptors)
  gauge('process_max_fds', 'Limit of open file descriptors', process_.maxDescriptors, 'min')
  counter('tacho_log_lines_dropped_total', 'Log lines that could not be written', process_.droppedLines)
  gauge('process_resident_memory_bytes', 'Resident memory', () => process.memoryUsage.rss())
  const startedAt = () => Date.now() / 1000 - process.uptime()
  gauge('process_start_time_seconds', 'Start time of the oldest worker, in seconds since 1970', startedAt, 'min')
  counter('process_cpu_seconds_total', 'User and system CPU time', () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  })
}

/** The histogram records sample intervals; the excess is the delay. */
function delayGauges(gauge: Meters['gauge'], delay: ELDHistogram): void {
  const seconds = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - LOOK_MS / 1000) || 0
  const p99 = () => seconds(delay.percentile(99))
  gauge('nodejs_eventloop_lag_p99_seconds', '99th percentile of event loop delay since the last scrape', p99, 'max')
  const longest = () => {
    const delaySeconds = seconds(delay.max)
    delay.reset()
    return delaySeconds
  }
  gauge('nodejs_eventloop_lag_max_seconds', 'Longest event loop delay since the last scrape', longest, 'max')
}

type Meters = ReturnType<typeof metersIn>

function metersIn(registry: Registry) {
  const registers = [registry]
  return {
    gauge(name: string, help: string, read: () => number | null, aggregator: 'sum' | 'min' | 'max' = 'sum'): void {
      new Gauge({
        name,
        help,
        registers,
        aggregator,
        collect() {
          this.reset()
          const value = read()
          if (value === null) this.remove()
          else this.set(value)
        },
      })
    },
    counter(name: string, help: string, read: () => number): void {
      new Counter({
        name,
        help,
        registers,
        collect() {
          this.reset()
          this.inc(read())
        },
      })
    },
  }
}
