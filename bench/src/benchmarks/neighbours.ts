/**
 * The worst allowed request to every endpoint, from the routes' tables: how long it blocks the event loop, and how long
 * a quiet tenant waits.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { SCOPES } from '@tacho/contract/web/route.ts'
import { populate } from '../../../packages/server/test/setup/route-samples.ts'
import type { Answer, Request, Service } from '../../../packages/server/test/setup/service.ts'
import { startChild } from '../child.ts'
import { onBoth } from '../engines/on-both.ts'
import type { Loud, Sent } from '../load/loud.ts'
import { startLoad } from '../load/start.ts'
import type { Quiet, QuietTimes } from '../load/quiet.ts'
import { ALL_ROWS, worstRequests } from '../load/worst-bodies.ts'
import { below, row, type Row } from '../result.ts'
import type { Server } from '../server.ts'
import { spreadOf, timesOf } from '../stats.ts'
import { figure } from '../text.ts'
import { fillTenant } from './full-tenant.ts'

/** The rule of docs/limits.md. */
const HELD_MS = 50
const IDLE_MS = 2_000
/** How long to measure after an answer, for work that the request left behind. */
const AFTER_MS = 30

/** Endpoints that end or remove what the requests of other rows need. They run in a separate tenant. */
const ENDS = /^(remove|revoke|archive|delete|end|restore)/

const FLAGS = ['--operator-rate-limit', '1000000', '--rate-limit', '1000000', '--webhook-networks', '127.0.0.0/8']

interface Found {
  /** The longest turn of all its requests, and the request that caused it. */
  heldMs: number
  kind: string
  p99: number
  worst: number
}

export const neighbours = onBoth({
  sqlite: ['neighbours', 'Neighbours'],
  postgres: ['postgres-neighbours', 'Neighbours, on PostgreSQL'],
  about:
    'Each endpoint of the routes tables gets its worst allowed requests, one after the other: most values, deepest, longest texts, most escapes and names, \
most faults, worst compression, smallest chunks, widest filters, furthest cursors. Held is the processor time of the longest turn of the event loop, as the median of the rounds. \
A quiet tenant records ten events again and again beside it.',
  async measure(setting, engine) {
    const { plan, say } = setting
    const isQuick = plan.size === 'quick'
    const only = process.env['NEIGHBOURS']
    const store = await engine.createStore('store')
    await using server = await store.start(FLAGS, { probe: true })
    await using loud = startChild<Loud, Sent>(new URL('../load/loud.ts', import.meta.url))
    await using quiet = startChild<Quiet, QuietTimes>(new URL('../load/quiet.ts', import.meta.url))
    const service = serviceOf(server)
    const [own, spent] = [await populate(service, 'loud'), await populate(service, 'spent')]
    {
      await using load = startLoad()
      await fillTenant(server, load, own, plan)
    }
    const { environmentId } = await service.newTenant('quiet')
    const quietKey = { 'x-api-key': await service.newKey({ scopes: [...SCOPES], environmentId }) }
    const beside = async (work: () => Promise<unknown>): Promise<number[]> => {
      await quiet.call({ begin: true, url: server.url, headers: quietKey })
      try {
        await work()
      } finally {
        await sleep(AFTER_MS)
      }
      return (await quiet.call({ begin: false })).took
    }
    await beside(() => sleep(200))
    await server.heldMs()
    const idleTook = await beside(() => sleep(isQuick ? 50 : IDLE_MS))
    const idle = { heldMs: await server.heldMs(), worst: Math.max(...idleTook), ...timesOf(idleTook) }
    // A quick run tries every sixth endpoint: bench/test/worst-bodies.test.ts makes the bodies of all.
    const rows = ALL_ROWS.filter(({ name }, at) => (only ? new RegExp(only).test(name) : !isQuick || at % 6 === 0))
    const found = new Map<string, Found>()
    for (const each of rows) {
      const key = `${each.prefix} ${each.name}`
      const { ids, apiKey } = ENDS.test(each.name) ? spent : own
      const headers = {
        'x-service-client-id': 'loud',
        ...(each.prefix === '/openapi/v1' ? { 'x-api-key': apiKey } : server.operatorHeaders),
        ...(each.name === 'mcp' && { accept: 'application/json, text/event-stream' }),
      }
      const requests = worstRequests(each)
        .take(isQuick ? 1 : Infinity)
        .toArray()
      const held: number[][] = requests.map(() => [])
      const statuses: number[] = []
      const took = await beside(async () => {
        for (let round = 0; round < plan.rounds; round++) {
          for (const at of requests.keys()) {
            await server.heldMs()
            const { status } = await loud.call({ url: server.url, row: key, request: at, headers, ids })
            await sleep(AFTER_MS)
            held[at]?.push(await server.heldMs())
            statuses[at] = status
          }
        }
      })
      const medians = held.map((times) => spreadOf(times).median)
      const heldMs = Math.max(...medians)
      const kind = requests[medians.indexOf(heldMs)]?.kind ?? ''
      found.set(key, { heldMs, kind, p99: timesOf(took).p99, worst: Math.max(...took) })
      say(
        `${key}: ${requests.map((one, at) => `${one.kind} ${figure(medians[at] ?? 0)} (${statuses[at]})`).join(', ')}; quiet p99 ${figure(timesOf(took).p99)}, worst ${figure(Math.max(...took))}`,
      )
    }
    return { rows: resultRows(found, idle), notes: [], table: tableOf(found, idle) }
  },
})

interface Idle {
  heldMs: number
  p99: number
  worst: number
}

function resultRows(found: ReadonlyMap<string, Found>, idle: Idle): Row[] {
  const all = [...found.values()]
  const most = (of: (one: Found) => number): number[] => [Math.max(...all.map(of))]
  return [
    row(
      'the longest turn of all endpoints, beside none',
      'ms',
      most(({ heldMs }) => heldMs),
      [idle.heldMs],
      below(HELD_MS),
    ),
    row(
      'quiet tenant, the largest p99 of all endpoints',
      'ms',
      most(({ p99 }) => p99),
      [idle.p99],
    ),
  ]
}

/** Rows in the table: the endpoints with the longest turns. */
const SHOWN = 25

function tableOf(found: ReadonlyMap<string, Found>, idle: Idle): string[] {
  const rows = [...found].toSorted(([, a], [, b]) => b.heldMs - a.heldMs)
  const others = rows.slice(SHOWN).map(([, one]) => one)
  const most = (of: (one: Found) => number): string => figure(Math.max(...others.map(of)))
  return [
    '| Endpoint | Its worst request | Event loop held | Quiet tenant, p99 | Worst |',
    '|---|---|---|---|---|',
    `| none | | ${figure(idle.heldMs)} | ${figure(idle.p99)} | ${figure(idle.worst)} |`,
    ...rows.slice(0, SHOWN).map(([key, { heldMs, kind, p99, worst }]) => {
      return `| \`${key.trim()}\` | ${kind} | ${figure(heldMs)} | ${figure(p99)} | ${figure(worst)} |`
    }),
    ...(others.length === 0
      ? []
      : [
          `| the ${others.length} others | | up to ${most(({ heldMs }) => heldMs)} | up to ${most(({ p99 }) => p99)} | up to ${most(({ worst }) => worst)} |`,
        ]),
  ]
}

/** The service, in the form in which the tests call it. */
function serviceOf(server: Server): Service {
  const call = async <Body>(target: string, { method, headers = {}, body }: Request = {}): Promise<Answer<Body>> => {
    const reply = await fetch(server.url + target, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await reply.text()
    return { status: reply.status, headers: reply.headers, text, body: (text ? JSON.parse(text) : null) as Body }
  }
  const operator: Service['operator'] = (target, request = {}) =>
    call(`/operator/v1${target}`, { ...request, headers: { ...server.operatorHeaders, ...request.headers } })
  const newKey: Service['newKey'] = async ({ environmentId, ...given }) =>
    (await operator<{ key: string }>(`/environments/${environmentId}/keys`, { body: { name: 'k', ...given } })).body.key
  const newTenant: Service['newTenant'] = async (name) => {
    const { id: workspaceId } = (await operator<{ id: string }>('/workspaces', { body: { name } })).body
    const made = await operator<{ id: string }>(`/workspaces/${workspaceId}/environments`, {
      body: { name: 'production' },
    })
    return { workspaceId, environmentId: made.body.id }
  }
  const api: Service['api'] = (target, { headers, ...rest } = {}) =>
    call(`/openapi/v1${target}`, { ...rest, headers: { ...server.headers, ...headers } })
  return { url: server.url, call, api, operator, newKey, newTenant } as Service
}
