import { LRUCache } from 'lru-cache'
import type { Trial } from '../../domain/policies/policy-trial.ts'
import type { TimelinePlace } from '../../storage/record/events.ts'
import type { ToolCallRow } from '../../storage/policies/simulations.ts'
import type { Storage } from '../../storage/storage.ts'

const PAGE_STEPS = 1_000
const PAGE_BYTES = 1_048_576
/** An evicted run is read again from its start. */
const RUNS_FOLLOWED = 10_000

export function readSteps(
  storage: Pick<Storage, 'listRunSteps'>,
  environmentId: string,
  taker: Pick<Trial, 'addSteps' | 'forgetRuns'>,
) {
  const followed = new LRUCache<string, { after: TimelinePlace | null }>({
    max: RUNS_FOLLOWED,
    dispose: (_, run, reason) => {
      if (reason === 'evict') taker.forgetRuns([run])
    },
  })

  async function readUpTo(run: string, before: TimelinePlace): Promise<void> {
    let after = followed.get(run)?.after ?? null
    for (;;) {
      const page = { limit: PAGE_STEPS, pageBytes: PAGE_BYTES, after, before }
      const steps = await storage.listRunSteps(environmentId, run, page)
      const last = steps.at(-1)
      if (last === undefined) break
      taker.addSteps(run, steps)
      after = { time: last.time, seq: last.seq }
    }
    followed.set(run, { after })
  }

  return {
    /** For calls that are not after those that were read. */
    startAgain(): void {
      taker.forgetRuns([...followed.keys()])
      followed.clear()
    },
    async readBefore(calls: ToolCallRow[]): Promise<void> {
      // Calls are in time order, so the last call of a run remains.
      const lastOf = new Map(calls.map(({ run, time, seq }) => [run, { time, seq }]))
      for (const [run, before] of lastOf) await readUpTo(run, before)
    },
  }
}
