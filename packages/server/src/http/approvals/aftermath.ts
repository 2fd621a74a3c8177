import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { HINDSIGHT_FILTERS } from '@tacho/contract/approvals/approval-filters.ts'
import { HINDSIGHTS } from '@tacho/contract/engine/words.ts'
import { hindsightOf, linkCalls, toJudgedCall, type LinkedCall } from '../../domain/approvals/aftermath.ts'
import { isUuid } from '../../storage/engine/uuid.ts'
import type { ApprovalRow, ToolEventRow } from '../../storage/approvals/approvals.ts'
import type { TimelinePlace } from '../../storage/record/events.ts'
import type { RunRow } from '../../storage/runs/runs.ts'
import { NO_APPROVAL } from './approvals.ts'
import { runOfApproval } from './operator-approvals.ts'
import { namedApprovals } from './decide.ts'
import type { ApprovalReader } from './approval-reader.ts'
import { foundOr } from '../web/reply-error.ts'
import { storedFilter } from '../web/field.ts'
import { NOTHING, readPage } from '../web/paging.ts'
import { createTurnsOfWorkspaces, mapInTurns } from '../web/turns.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

/** Bounds of a page, so that it occupies a reader for only about ten milliseconds. */
const PAGE = { limit: 500, pageBytes: LIMITS.pageBytes }
const MOST_PAGES = 10
/** Pages per run that are read to show a list of approvals. */
const HINDSIGHT_PAGES = 2
const NOT_KNOWN = { hindsight: 'not_known', shown: null } as const
const MOST_APPROVALS = 500
const MOST_OTHERS = 200
const CALLS_IN_TURN = 250

export function aftermathRoutes({ serve, storage, now }: OperatorDeps, { current }: ApprovalReader): void {
  const takeTurn = createTurnsOfWorkspaces(LIMITS.scoreSumsAtOnce, 'lists in hindsight')
  serve('readApprovalAftermath', async ({ params, environment }) => {
    const row = foundOr(await current.find(environment.id, params.approvalId), NO_APPROVAL)
    const [approval] = await namedApprovals(storage, environment.id, [row], now())
    if (!approval) throw new Error('An approval is missing')
    const run = await runOfApproval(storage, row)
    if (run === null) return { approval, calls: [], run: null, truncated: false }
    const { linked, truncated } = await readAftermath(environment.id, run)
    const approvalCalls = linked.filter(({ approvalId }) => approvalId === row.id)
    return { approval, calls: await writtenOut(run, approvalCalls), run: run.id, truncated }
  })

  serve('listRunApprovals', async ({ environment, run }) => {
    const { linked, approvals, truncated } = await readAftermath(environment.id, run)
    return {
      approvals: await namedApprovals(storage, environment.id, approvals, now()),
      calls: await writtenOut(run, linked),
      run: run.id,
      truncated,
    }
  })

  serve('listApprovalHindsight', async ({ query, environment, paging, reply }) => {
    const filter = storedFilter(HINDSIGHT_FILTERS, query)
    if (filter === null) return NOTHING
    const { rows, nextCursor } = await readPage(
      paging,
      (page) =>
        current.read(environment.id, () => storage.listApprovals(environment.id, { ...filter, isClosed: true }, page)),
      ({ createdAt, id }: ApprovalRow) => ({ time: createdAt, id }),
    )
    const approvals = await namedApprovals(storage, environment.id, rows, now())
    const hindsight = await takeTurn(reply, () => inHindsight(environment.id, rows))
    return { items: hindsight.map((each, at) => ({ approval: approvals[at]!, ...each })), nextCursor }
  })

  async function inHindsight(environmentId: string, rows: readonly ApprovalRow[]) {
    const looks = new Map<string, Awaited<ReturnType<typeof readAftermath>> & { run: RunRow }>()
    const hindsightRows = []
    for (const row of rows) {
      const known = looks.get(row.runId ?? '')
      const run = known?.run ?? (await runOfApproval(storage, row))
      const seen = known ?? (run && { run, ...(await readAftermath(environmentId, run, HINDSIGHT_PAGES)) })
      if (seen) looks.set(seen.run.runId, seen)
      const { hindsight, shown } = seen ? hindsightOf(row, seen.linked, seen.events) : NOT_KNOWN
      const word = hindsight === 'not_run' && seen?.truncated ? NOT_KNOWN.hindsight : hindsight
      const call = shown && seen ? toJudgedCall(seen.run, shown) : null
      hindsightRows.push({ hindsight: word, message: HINDSIGHTS[word], call })
    }
    return hindsightRows
  }

  async function readAftermath(environmentId: string, run: RunRow, pages = MOST_PAGES) {
    const read = () => storage.listApprovalsOfRun(environmentId, run.runId, MOST_APPROVALS)
    const { rows: approvals, more } = await current.read(environmentId, read)
    const { events, truncated } = await toolEvents(environmentId, run, pages)
    const known = new Set(approvals.map(({ id }) => id))
    const named = events.flatMap(({ approvalId }) => (approvalId && isUuid(approvalId) ? [approvalId] : []))
    const unknown = [...new Set(named)].filter((id) => !known.has(id))
    const others = await current.read(environmentId, async () => {
      const rows = await storage.findApprovals(environmentId, unknown.slice(0, MOST_OTHERS))
      return { rows, more: unknown.length > MOST_OTHERS }
    })
    const linked = linkCalls(run.runId, [...approvals, ...others.rows], events)
    return { linked, approvals, events, truncated: truncated || more || others.more }
  }

  const writtenOut = (run: RunRow, linked: readonly LinkedCall[]) =>
    mapInTurns(linked, CALLS_IN_TURN, (each) => toJudgedCall(run, each))

  async function toolEvents(
    environmentId: string,
    run: RunRow,
    pages: number,
  ): Promise<{ events: ToolEventRow[]; truncated: boolean }> {
    const events: ToolEventRow[] = []
    let after: TimelinePlace | null = null
    for (let page = 0; page < pages; page++) {
      const { rows, more } = await storage.listToolEvents(environmentId, run.id, { ...PAGE, after })
      events.push(...rows)
      const last = rows.at(-1)
      if (!more || !last) return { events, truncated: false }
      after = { time: last.time, seq: last.seq }
    }
    return { events, truncated: true }
  }
}
