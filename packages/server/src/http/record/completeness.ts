import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { completenessSums, placeOf, toSum, type Sum } from '../../domain/record/completeness-sums.ts'
import { isoTime } from '../../storage/engine/iso-time.ts'
import type { GapFilter, RunPlace } from '../../storage/runs/runs.ts'
import { waitForTurn } from '../web/turns.ts'
import { windowOf } from '../runs/hours.ts'
import { readPage } from '../web/paging.ts'
import { firstRows } from '../../storage/engine/page.ts'
import type { OperatorDeps } from '../web/serve.ts'

const RUNS_AT_ONCE = 100
const RECORDERS_IN_TURN = 250

export function completenessRoutes({ serve, storage }: OperatorDeps): void {
  serve('readCompleteness', async ({ query, environment: { id }, walk }) => {
    const window = windowOf(query)
    const { by, agentId } = query
    const sums = completenessSums(by)
    const { rows, nextCursor, addedTo } = await readPage(
      walk,
      async ({ limit, after }) => {
        const last = await eachRun(id, { agentId, ...window }, sums.add)
        return { ...firstRows(sums.after(after), limit, bytesOf), addedTo: last }
      },
      placeOf,
    )
    return { items: rows.map(toSum), nextCursor, lookedTo: isoTime(addedTo) }
  })

  /** Returns the start of the last run, if there may be more. */
  async function eachRun(
    environmentId: string,
    filter: GapFilter,
    add: ReturnType<typeof completenessSums>['add'],
  ): Promise<number | null> {
    let [recorders, inTurn] = [0, 0]
    let after: RunPlace | null = null
    for (;;) {
      const { rows, more } = await storage.listGaps(environmentId, filter, { limit: RUNS_AT_ONCE, after })
      for (const run of rows) {
        const added = add(run)
        recorders += added
        inTurn += added
        if (inTurn < RECORDERS_IN_TURN) continue
        inTurn = 0
        await waitForTurn()
      }
      const last = rows.at(-1)
      if (!more || last === undefined) return null
      if (recorders >= LIMITS.summedRecorders) return last.startedAt
      after = last
    }
  }
}

const bytesOf = (sum: Sum): number => Buffer.byteLength(JSON.stringify(toSum(sum)))
