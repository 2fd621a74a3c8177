/** A long tape, replayed strictly by an agent of the SDK. */
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
answers each by HTTP, takes the events of the replay, and compares both at the end. Host and agent are processes.',
    'Processor time and memory are those of the host, with reading the tape. The agent’s own work is only in the time from the file to the verdict: it asks for each \
call, decides it and records it.',
  ],
  run: async (setting) => {
    const calls = setting.plan.size === 'quick' ? 100 : CALLS
    const file = path.join(setting.place, 'long.jsonl')
    writeLongTape(file, calls)
    const found = await inTurn(setting, {
      host: async () => {
        // Its peak is that of its life.
        await using host = startChild<{ file: string; calls: number }, Replayed>(
          new URL('../load/replayed-agent.ts', import.meta.url),
        )
        const { events, ...figures } = await host.call({ file, calls })
        if (events <= 3 * calls) throw new Error(`${events} events arrived`)
        return figures
      },
    })
    const { seconds, cpuSeconds, memoryMb } = found.host
    return {
      rows: [
        row('processor time of the host', 's', cpuSeconds, null, below(5)),
        row('memory of the host, peak', 'MB', memoryMb, null, below(300)),
        row('from the file to the verdict', 's', seconds, null),
      ],
      notes: [],
    }
  },
}
