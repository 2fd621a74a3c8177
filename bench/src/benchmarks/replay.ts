/** The strict replay of a long tape, by an agent with the SDK. */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import type { Benchmark } from '../benchmark.ts'
import { startChild } from '../child.ts'
import { writeLongTape, type Replayed } from '../load/replayed-agent.ts'
import { below, row } from '../result.ts'
import { inTurn } from '../rounds.ts'

const CALLS = 10_000

export const replay: Benchmark = {
  name: 'replay',
  title: 'A tape of 30,000 events',
  part: 'process',
  about: [
    '10,000 guarded calls, each with a decision, its beginning and its end, and texts of 450 B. An agent of the TypeScript SDK makes them one after another: the host \
answers them by HTTP, many at a time, takes the events of the replay, and compares both at the end. Host and agent are processes.',
    'Processor time and memory are those of the host, with reading the tape. The agent’s own work is only in the time from the file to the verdict: it decides \
each call and records it.',
    'The bare limit: the same fetch sends as many requests of this length, one after another, to a server in its own process that answers at once with as long a text.',
  ],
  run: async (setting) => {
    const calls = setting.plan.size === 'quick' ? 100 : CALLS
    const file = path.join(setting.place, 'long.jsonl')
    writeLongTape(file, calls)
    const found = await inTurn(setting, {
      host: async () => {
        // A new process, because its peak memory covers its whole life.
        await using host = startChild<{ file: string; calls: number }, Replayed>(
          new URL('../load/replayed-agent.ts', import.meta.url),
        )
        const { events, ...figures } = await host.call({ file, calls })
        if (events <= 3 * calls) throw new Error(`${events} events arrived`)
        return figures
      },
      bare: async () => ({ seconds: await exchanges(calls) }),
    })
    const { seconds, cpuSeconds, memoryMb } = found.host
    return {
      rows: [
        row('processor time of the host', 's', cpuSeconds, null, below(5)),
        row('memory of the host, peak', 'MB', memoryMb, null, below(300)),
        row('from the file to the verdict', 's', seconds, found.bare.seconds, below(5)),
      ],
      notes: [],
    }
  },
}

async function exchanges(requests: number): Promise<number> {
  const text = 'an answer '.repeat(45)
  const server = http.createServer((request, response) => request.resume().once('end', () => response.end(text)))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const begun = performance.now()
  try {
    for (let sent = 0; sent < requests; sent++) await (await fetch(url, { method: 'POST', body: text })).text()
    return (performance.now() - begun) / 1_000
  } finally {
    server.closeAllConnections()
    server.close()
  }
}
