/** All benchmarks, in the order of the page. */
import type { Benchmark } from './benchmark.ts'
import { acknowledgement } from './benchmarks/acknowledgement.ts'
import { consolePages } from './benchmarks/console.ts'
import { erasure } from './benchmarks/erasure.ts'
import { failing } from './benchmarks/failing.ts'
import { hook } from './benchmarks/hook.ts'
import { host } from './benchmarks/host.ts'
import { largeRun } from './benchmarks/large-run.ts'
import { configurationWaits, liveConfiguration } from './benchmarks/live-configuration.ts'
import { loudTenant } from './benchmarks/loud-tenant.ts'
import { neighbours } from './benchmarks/neighbours.ts'
import { operations } from './benchmarks/operations.ts'
import { otlp } from './benchmarks/otlp.ts'
import { packed } from './benchmarks/packed.ts'
import { past } from './benchmarks/past.ts'
import { policies } from './benchmarks/policies.ts'
import { pressure } from './benchmarks/pressure.ts'
import { reads, readsFull } from './benchmarks/reads.ts'
import { ingest, mixed } from './benchmarks/recording.ts'
import { replay } from './benchmarks/replay.ts'
import { retention, retentionFull } from './benchmarks/retention.ts'
import { runtimeConfig } from './benchmarks/runtime-config.ts'
import { sdk } from './benchmarks/sdk.ts'
import { searched } from './benchmarks/searched.ts'
import { start } from './benchmarks/start.ts'
import { stored } from './benchmarks/stored.ts'
import { wire } from './benchmarks/wire.ts'
import { workers } from './benchmarks/workers.ts'

const ON_BOTH = [
  failing,
  searched,
  packed,
  stored,
  reads,
  readsFull,
  retention,
  retentionFull,
  erasure,
  pressure,
  neighbours,
  loudTenant,
  operations,
]

export const BENCHMARKS: readonly Benchmark[] = [
  ingest.sqlite,
  mixed.sqlite,
  otlp,
  acknowledgement,
  ...ON_BOTH.map(({ sqlite }) => sqlite),
  largeRun,
  start,
  hook,
  wire,
  replay,
  consolePages,
  runtimeConfig,
  configurationWaits,
  policies,
  past,
  sdk,
  host,
  ingest.postgres,
  mixed.postgres,
  ...ON_BOTH.map(({ postgres }) => postgres),
  workers,
  liveConfiguration,
]
