import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { linkCalls, toJudgedCall, type LinkedCall } from '../../domain/approvals/aftermath.ts'
import { isUuid } from '../../storage/engine/uuid.ts'
import type { ToolEventRow } from '../../storage/approvals/approvals.ts'
import type { TimelinePlace } from '../../storage/record/events.ts'
import type { RunRow } from '../../storage/runs/runs.ts'
import { NO_APPROVAL, runOfApproval } from './operator-approvals.ts'
import { namedApprovals } from './decide.ts'
import type { ApprovalReader } from './approval-reader.ts'
import { foundOr } from '../web/reply-error.ts'
import { mapInTurns } from '../web/turns.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

/** Each page takes a reader about ten milliseconds. */
const PAGE = { limit: 500, pageBytes: LIMITS.pageBytes }
const MOST_PAGES = 10
const MOST_APPROVALS = 500
const MOST_OTHERS = 200
const CALLS_IN_TURN = 250

export function aftermathRoutes({ serve, storage, now }: OperatorDeps, { current }: ApprovalReader): void {
  serve('readApprovalAftermath', async ({ params, environment }) => {
    const row = foundOr(await current.find(environment.id, params.approvalId), NO_APPROVAL)
    const [approval] = await namedApprovals(storage, environment.id, [row], now())
    if (!approval) throw new Error('An approval is missing')
    const run = await runOfApproval(storage, row)
    if (run === null) return { approval, calls: [], run: null, truncated: false }
    const { linked, truncated } = await look(environment.id, run)
    const own = linked.filter(({ approvalId }) => approvalId === row.id)
    return { approval, calls: await writtenOut(run, own), run: run.id, truncated }
  })

  serve('listRunApprovals', async ({ environment, run }) => {
    const { linked, approvals, truncated } = await look(environment.id, run)
    return {
      approvals: await namedApprovals(storage, environment.id, approvals, now()),
      calls: await writtenOut(run, linked),
      run: run.id,
      truncated,
    }
  })

  async function look(environmentId: string, run: RunRow) {
    const read = () => storage.listApprovalsOfRun(environmentId, run.runId, MOST_APPROVALS)
    const { rows: approvals, more } = await current.read(environmentId, read)
    const { events, truncated } = await toolEvents(environmentId, run)
    const known = new Set(approvals.map(({ id }) => id))
    const named = events.flatMap(({ approvalId }) => (approvalId && isUuid(approvalId) ? [approvalId] : []))
    const unknown = [...new Set(named)].filter((id) => !known.has(id))
    const others = await current.read(environmentId, async () => {
      const rows = await storage.findApprovals(environmentId, unknown.slice(0, MOST_OTHERS))
      return { rows, more: unknown.length > MOST_OTHERS }
    })
    const linked = linkCalls(run.runId, [...approvals, ...others.rows], events)
    return { linked, approvals, truncated: truncated || more || others.more }
  }

  const writtenOut = (run: RunRow, linked: readonly LinkedCall[]) =>
    mapInTurns(linked, CALLS_IN_TURN, (each) => toJudgedCall(run, each))

  async function toolEvents(
    environmentId: string,
    run: RunRow,
  ): Promise<{ events: ToolEventRow[]; truncated: boolean }> {
    const events: ToolEventRow[] = []
    let after: TimelinePlace | null = null
    for (let page = 0; page < MOST_PAGES; page++) {
      const { rows, more } = await storage.listToolEvents(environmentId, run.id, { ...PAGE, after })
      events.push(...rows)
      const last = rows.at(-1)
      if (!more || !last) return { events, truncated: false }
      after = { time: last.time, seq: last.seq }
    }
    return { events, truncated: true }
  }
}
