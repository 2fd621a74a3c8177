import type { Trial } from '../domain/policy-trial.ts'
import type { TimelinePlace } from '../storage/events.ts'
import type { ToolCallRow } from '../storage/simulations.ts'
import type { Storage } from '../storage/storage.ts'

const PAGE_STEPS = 1_000
const PAGE_BYTES = 1_048_576
/** An evicted run is read again from its start. */
const RUNS_FOLLOWED = 10_000

export function readSteps(
  storage: Pick<Storage, 'listRunSteps'>,
  environmentId: string,
  taker: Pick<Trial, 'addSteps' | 'forgetRuns'>,
) {
  /** The last delivered step per run, most recently used last. */
  const followed = new Map<string, TimelinePlace | null>()

  async function readUpTo(run: string, before: TimelinePlace): Promise<void> {
    let after = followed.get(run) ?? null
    for (;;) {
      const page = { limit: PAGE_STEPS, pageBytes: PAGE_BYTES, after, before }
      const steps = await storage.listRunSteps(environmentId, run, page)
      const last = steps.at(-1)
      if (last === undefined) break
      taker.addSteps(run, steps)
      after = { time: last.time, seq: last.seq }
    }
    followed.delete(run)
    followed.set(run, after)
  }

  function forgetOldest(): void {
    const oldest = followed.keys().take(Math.max(0, followed.size - RUNS_FOLLOWED))
    const evicted = [...oldest]
    for (const run of evicted) followed.delete(run)
    if (evicted.length > 0) taker.forgetRuns(evicted)
  }

  return {
    async readBefore(calls: ToolCallRow[]): Promise<void> {
      forgetOldest()
      // Calls are in time order, so the last call of a run remains.
      const lastOf = new Map(calls.map(({ run, time, seq }) => [run, { time, seq }]))
      for (const [run, before] of lastOf) await readUpTo(run, before)
    },
  }
}
