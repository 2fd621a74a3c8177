/** How long a quiet tenant waits for answers while another tenant sends as much as it can. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startChild } from '../child.ts'
import { onBoth } from '../engines/on-both.ts'
import type { Sent } from '../load/load.ts'
import type { Quiet, QuietTimes } from '../load/quiet.ts'
import { newPlot } from '../load/shapes.ts'
import { CONNECTIONS, startLoad } from '../load/start.ts'
import { row, type Row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import { addTenant } from './sample-ids.ts'
import { timesOf } from '../stats.ts'

const LOUD: Record<string, () => { connections: number; send: Sent }> = {
  'batches of 100 events': () => ({ connections: CONNECTIONS, send: { plot: newPlot('whole-run') } }),
  'spans over OTLP': () => ({ connections: CONNECTIONS, send: { spans: true } }),
  'batches of 1 MB on 40 connections': () => ({ connections: 40, send: { large: true } }),
}

export const loudTenant = onBoth({
  sqlite: ['loud-tenant', 'A loud tenant'],
  postgres: ['postgres-loud-tenant', 'A loud tenant, on PostgreSQL'],
  about:
    'One tenant sends as fast as its connections get answers. Beside it, another tenant records ten events again and again. The bare limit is the \
same quiet tenant alone, in the same round.',
  async measure(setting, engine) {
    const { plan } = setting
    const store = await engine.createStore('store')
    await using server = await store.start()
    await using load = startLoad()
    await using quiet = startChild<Quiet, QuietTimes>(new URL('../load/quiet.ts', import.meta.url))
    const headers = await addTenant(server, 'quiet')
    const besideOf = async (work: () => Promise<unknown>) => {
      await quiet.call({ begin: true, url: server.url, headers })
      try {
        await work()
      } finally {
        await sleep(20)
      }
      const { took } = await quiet.call({ begin: false })
      const { p50, p99 } = timesOf(took)
      return { p50, p99, worst: Math.max(...took) }
    }
    const rows: Row[] = []
    const { seconds } = plan
    for (const [name, loud] of Object.entries(LOUD)) {
      const given = loud()
      const { alone, beside, by } = await inTurn(setting, {
        alone: () => besideOf(() => sleep(seconds * 1_000)),
        async beside() {
          let perSecond = 0
          const found = await besideOf(async () => {
            const { answered, seconds: took } = await load.send(server, { ...given, seconds })
            perSecond = answered / took
          })
          return { ...found, perSecond }
        },
        // The rate of the loud tenant alone.
        async by() {
          const { answered, seconds: took } = await load.send(server, { ...given, seconds })
          return { perSecond: answered / took }
        },
      })
      rows.push(
        row(`${name}: quiet tenant, p50`, 'ms', beside.p50, alone.p50),
        row(`${name}: quiet tenant, p99`, 'ms', beside.p99, alone.p99),
        row(`${name}: quiet tenant, worst`, 'ms', beside.worst, alone.worst),
        row(`${name}: requests of the loud tenant`, '/s', beside.perSecond, by.perSecond),
      )
    }
    return { rows, notes: [] }
  },
})
