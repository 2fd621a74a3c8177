import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createMetrics } from '../../../src/http/web/metrics.ts'
import { BodyMemory } from '../../../src/http/web/read-body.ts'
import { ReplyMemory } from '../../../src/http/web/reply-memory.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { event, startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

/** The samples of /metrics by name and labels. */
async function scrape(): Promise<Map<string, number>> {
  const { status, text, headers } = await service.call('/metrics')
  assert.equal(status, 200)
  assert.match(headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(' ')
      return [line.slice(0, space), Number(line.slice(space + 1))]
    }),
  )
}

test('events are counted by verdict, and refusals by reason', async () => {
  const before = await scrape()
  const stored = event()
  await service.record([stored, stored, event({ label: undefined }), event({ timestamp: 0 })])
  const samples = await scrape()
  const grown = (name: string) => (samples.get(name) ?? 0) - (before.get(name) ?? 0)
  assert.equal(grown('tacho_events_total{verdict="accepted"}'), 2)
  assert.equal(grown('tacho_events_total{verdict="rejected"}'), 2)
  assert.equal(grown('tacho_event_rejections_total{code="missing_field"}'), 1)
  assert.equal(grown('tacho_event_rejections_total{code="timestamp_too_old"}'), 1)
  assert.ok(grown('tacho_store_committed_events_total') >= 1)
})

test('requests are measured by the pattern of their route, so that clients cannot create labels', async () => {
  for (const path of ['/runs/a', '/runs/b?x=1', '/runs/c/events']) await service.api(path)
  await service.call('/no/such/thing')
  await service.call('/nor/this', { method: 'DELETE' })
  const names = [...(await scrape()).keys()].filter((name) =>
    name.startsWith('tacho_http_request_duration_seconds_count'),
  )
  const labelled = (method: string, route: string, status: number) =>
    names.includes(`tacho_http_request_duration_seconds_count{method="${method}",route="${route}",status="${status}"}`)
  assert.ok(labelled('GET', '/openapi/v1/runs/:runId', 404), names.join('\n'))
  assert.ok(labelled('GET', '/openapi/v1/runs/:runId/events', 404))
  assert.ok(labelled('GET', 'none', 404))
  assert.ok(labelled('other', 'none', 404))
  assert.ok(names.every((name) => !name.includes('such')))
})

test('the metrics show the process, the store and the jobs, but no tenant', async () => {
  await service.record([event()])
  const samples = await scrape()
  for (const name of [
    'tacho_store_size_bytes',
    'tacho_store_disk_free_bytes',
    'process_resident_memory_bytes',
    'process_cpu_seconds_total',
    'tacho_body_memory_limit_bytes',
    'tacho_store_commits_total',
  ]) {
    assert.ok((samples.get(name) ?? 0) > 0, name)
  }
  assert.equal(samples.get('tacho_store_writable'), 1)
  for (const name of [
    'tacho_store_queued_bytes',
    'nodejs_eventloop_lag_p99_seconds',
    'nodejs_eventloop_lag_max_seconds',
  ]) {
    assert.ok(Number.isFinite(samples.get(name)), name)
  }
  assert.equal(samples.get('tacho_work_items{kind="review_issue_record"}'), 0)
  assert.equal(samples.get('tacho_work_late_seconds{kind="review_issue_record"}'), 0)
  assert.ok([...samples.keys()].some((name) => name.includes(`node="${process.versions.node}"`)))
  const text = [...samples.keys()].join('\n')
  assert.ok(
    !text.includes(service.environmentId) && !text.includes('tacho_'.concat(service.apiKey.split('_')[1] ?? '')),
  )
})

test('metrics and documents can be turned off', async () => {
  const quiet = await startService({ metrics: 'off', docs: 'off' })
  try {
    for (const path of ['/metrics', '/docs', '/openapi/v1/openapi.json']) {
      assert.equal((await quiet.call(path)).status, 404, path)
    }
  } finally {
    await quiet.close()
  }
})

function metricsOf(acts: Pick<Storage, 'workBacklog' | 'countInForce'>) {
  const storage = {
    ...acts,
    gauges: () => ({
      queuedBytes: 0,
      commits: 0,
      committedEvents: 0,
      actMs: 0,
      damagedPayloads: 0,
      diskFreeBytes: 0,
      storeBytes: 0,
      freeBytes: null,
      commitWaitMs: 0,
    }),
    damage: () => null,
    trouble: () => null,
    clockOffsetMs: () => 0,
    writesRefused: () => null,
    nodes: () => 1,
  } as unknown as Storage
  return createMetrics({ version: '1', storage, memory: new BodyMemory(1), replies: new ReplyMemory(1) })
}

const NOTHING_HOLDS = { stops: 0, grants: 0, grantUses: 0 }

test('any number of concurrent scrapes reads the backlog once', async () => {
  let asked = 0
  const workBacklog = () => {
    asked += 1
    return Promise.resolve([])
  }
  const metrics = metricsOf({ workBacklog, countInForce: () => Promise.resolve(NOTHING_HOLDS) })
  await Promise.all(Array.from({ length: 20 }, () => metrics.text()))
  assert.equal(asked, 1)
})

test('a store that does not answer leaves out its counts, not those of the process', async () => {
  const fails = () => Promise.reject(new Error('no answer'))
  const text = await metricsOf({ workBacklog: fails, countInForce: fails }).text()
  assert.match(text, /^process_cpu_seconds_total \d/m)
  for (const name of ['tacho_work_items', 'tacho_stops_in_effect', 'tacho_grants_in_use', 'tacho_grants_in_use_uses']) {
    assert.doesNotMatch(text, new RegExp(`^${name}[ {]`, 'm'))
  }
})
