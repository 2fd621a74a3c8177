/**
 * Filters and orders runs by the shown cost: the sent costs, and estimates for calls without a cost. Estimates depend
 * on prices, which the store does not apply. So the filter checks here what the store cannot, and the order takes the
 * estimates of the ended runs with the most tokens.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { NANOS } from '../../domain/record/usage.ts'
import { estimatorOf } from '../../prices/price-table.ts'
import type { RunCriteria, RunPage, RunRow, RunsRead } from '../../storage/runs/runs.ts'
import { readUncosted } from '../../storage/runs/usage.ts'
import type { Storage } from '../../storage/storage.ts'

type Deps = Parameters<typeof estimatorOf>[0] & { storage: Pick<Storage, 'listRuns'> }
type Read = Pick<Storage, 'listRuns'>

/** Takes the place of the store where runs are listed: its `listRuns` has the same parameters and result. */
export function shownCosts(deps: Deps, workspaceId: string): Read {
  const { storage } = deps

  async function withCosts(rows: readonly RunRow[]): Promise<(RunRow & { rank: number })[]> {
    const estimator = await estimatorOf(
      deps,
      workspaceId,
      rows.flatMap(({ uncosted }) => readUncosted(uncosted)),
    )
    return rows.map((row) => {
      const { estimatedCost } = estimator.ofCalls(readUncosted(row.uncosted), row.startedAt)
      return { ...row, rank: row.costNanos + Math.round((estimatedCost ?? 0) * NANOS) }
    })
  }

  /** The page continues after the last run that was examined. */
  async function above(environmentId: string, filter: RunCriteria, page: RunPage): Promise<RunsRead> {
    const listedRuns = await storage.listRuns(environmentId, filter, page)
    const least = Math.round(Number(filter.scan?.minCost ?? 0) * NANOS)
    if (least === 0) return listedRuns
    const matchingIds = new Set(
      (await withCosts(listedRuns.rows)).filter(({ rank }) => rank >= least).map(({ id }) => id),
    )
    const rows = listedRuns.rows.filter(({ id }) => matchingIds.has(id))
    const last = listedRuns.lookedTo ?? listedRuns.rows.at(-1)
    if (!listedRuns.more || last === undefined) return { rows, more: false }
    const { startedAt, id, rank } = last
    return { rows, more: true, lookedTo: { startedAt, id, ...(rank !== undefined && { rank }) } }
  }

  async function dearest(environmentId: string, filter: RunCriteria, { limit, after }: RunPage): Promise<RunsRead> {
    const place = after && { rank: after.rank ?? 0, id: after.id }
    const estimated = await estimatedRuns(environmentId, filter)
    const ids = new Set(estimated.map(({ id }) => id))
    const rows = estimated.filter((row) => place === null || inOrder(place, row) < 0)
    const ranked: RunRow[] = []
    let [next, more]: [RunPage['after'], boolean] = [after, true]
    // Last examined run, if the page ended at its bound for examined runs.
    let end: Ranked | null = null
    while (more && end === null && ranked.length <= limit) {
      const page = await storage.listRuns(environmentId, filter, { limit: LIMITS.operatorPageMax, after: next })
      ranked.push(...page.rows.filter(({ id }) => !ids.has(id)))
      next = page.lookedTo ?? page.rows.at(-1) ?? null
      more = page.more && next !== null
      if (page.lookedTo) end = { id: page.lookedTo.id, rank: page.lookedTo.rank ?? 0 }
    }
    const least = Math.round(Number(filter.scan?.minCost ?? 0) * NANOS)
    const all = [...rows, ...ranked.map((row) => ({ ...row, rank: row.costNanos }))]
      .filter((row) => row.rank >= least && (end === null || inOrder(row, end) <= 0))
      .toSorted(inOrder)
    if (all.length > limit || end === null) return { rows: all.slice(0, limit), more: all.length > limit }
    return { rows: all, more: true, lookedTo: { startedAt: 0, ...end } }
  }

  async function estimatedRuns(environmentId: string, filter: RunCriteria) {
    const byTokens = { ...filter, rankedBy: { by: 'tokens', runsLookedAt: LIMITS.runsLookedAt } } as const
    const matchingRuns: RunRow[] = []
    const pages = LIMITS.runsEstimated / LIMITS.operatorPageMax
    let [after, more]: [RunPage['after'], boolean] = [null, true]
    for (let count = 0; more && count < pages; count++) {
      const page: RunsRead = await storage.listRuns(environmentId, byTokens, { limit: LIMITS.operatorPageMax, after })
      matchingRuns.push(...page.rows.filter(({ uncosted }) => uncosted !== null))
      after = page.lookedTo ?? page.rows.at(-1) ?? null
      more = page.more && after !== null
    }
    return withCosts(matchingRuns)
  }

  return {
    listRuns: (environmentId, filter, page) =>
      (filter.rankedBy?.by === 'cost' ? dearest : above)(environmentId, filter, page),
  }
}

type Ranked = Pick<RunRow, 'id'> & { rank: number }

/** The order in which the store returns ranked runs. */
const inOrder = (a: Ranked, b: Ranked): number => b.rank - a.rank || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)
