/** Reads what people decided about the calls of one policy, and returns the condition found from that. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Proposal, ProposedCondition } from '@tacho/contract/approvals/proposal.ts'
import { shareInterval } from '@tacho/contract/runs/statistics.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import { checkedInput } from '../../domain/approvals/grant.ts'
import { linkedInputs, shownInput } from '../../domain/approvals/recorded-input.ts'
import { proposedCondition, type DecidedCall } from '../../domain/policies/proposed-condition.ts'
import type { ApprovalPage, ApprovalRow } from '../../storage/approvals/approvals.ts'
import { HOUR_MS, isoTime } from '../../storage/engine/times.ts'
import { isStorableText } from '../../domain/web/text.ts'
import { NO_POLICY } from '../policies/policies.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'
import { foundOr } from '../web/reply-error.ts'
import { createTurnsOfWorkspaces } from '../web/turns.ts'

const [PAGE, INPUTS_AT_ONCE] = [500, 50]
const HOURS = 720
/** With fewer decisions, one or two rejections would determine the proposal. */
const FEW = 10

export function proposalRoutes({ serve, storage, now }: OperatorDeps): void {
  const takeTurn = createTurnsOfWorkspaces(1, 'proposals')

  serve('proposeCondition', async ({ params: { policyId }, query: { hours = HOURS }, environment, reply }) => {
    const policy = isStorableText(policyId) ? await storage.findPolicy(environment.workspaceId, policyId) : null
    const since = now() - hours * HOUR_MS
    const { newest } = foundOr(policy, NO_POLICY)
    const inForce = (await storage.findVersionsInForce(environment.id, 'policy', policyId, now())).now
    const version =
      inForce === null ? null : await storage.findPolicyVersion(environment.workspaceId, policyId, inForce)
    const narrowed = version ?? newest
    return takeTurn(reply, async () => {
      const { rows, capped } = await decidedRows(environment.id, policyId, since)
      const { calls, isCut } = await withInputs(environment.id, rows)
      const countOf = (isRejected: boolean, some = calls) =>
        some.filter((call) => call.isRejected === isRejected).length
      const unread = calls.filter(({ input }) => input === null)
      const outcome = await propose(calls, narrowed.damaged ? null : narrowed.condition)
      const proposal: Proposal = {
        policyId,
        version: String(narrowed.number),
        since: isoTime(since),
        capped: capped || isCut,
        approved: countOf(false),
        rejected: countOf(true),
        withoutInput: { approved: countOf(false, unread), rejected: countOf(true, unread) },
        ...outcome,
      }
      return proposal
    })
  })

  /** Requests that a person decided here, newest first. */
  async function decidedRows(environmentId: string, policyId: string, from: number) {
    const rows: ApprovalRow[] = []
    let after: ApprovalPage['after'] = null
    for (let looked = 0; looked < LIMITS.proposalDecisions; looked += PAGE) {
      const page = await storage.listApprovals(
        environmentId,
        { policyId, from, isClosed: true },
        { limit: PAGE, after },
      )
      const isByPerson = ({ status, grantId, importedAt }: ApprovalRow) =>
        status !== 'EXPIRED' && grantId === null && importedAt === null
      rows.push(...page.rows.filter(isByPerson))
      const last = page.rows.at(-1)
      if (!page.more || last === undefined) return { rows, capped: false }
      after = { time: last.createdAt, id: last.id }
    }
    return { rows, capped: true }
  }

  async function withInputs(environmentId: string, rows: readonly ApprovalRow[]) {
    const calls: DecidedCall[] = []
    const until = performance.now() + LIMITS.proposalMs
    for (let at = 0; at < rows.length; at += INPUTS_AT_ONCE) {
      if (performance.now() > until) return { calls, isCut: true }
      const some = rows.slice(at, at + INPUTS_AT_ONCE)
      const inputs = await linkedInputs(storage, environmentId, some)
      for (const row of some) {
        const recorded = inputs.get(row.id)
        const checked = recorded ? checkedInput(row, shownInput(recorded.payload)) : null
        const { toolName, status } = row
        const isPlain = typeof checked?.input === 'object' && checked.input !== null && !Array.isArray(checked.input)
        const input = isPlain ? (checked.input as Record<string, unknown>) : null
        calls.push({ toolName, isRejected: status === 'REJECTED', input, sealed: checked?.sealed ?? [] })
      }
    }
    return { calls, isCut: false }
  }
}

type Outcome = Pick<Proposal, 'proposed' | 'why' | 'caveats'>

async function propose(calls: readonly DecidedCall[], present: string | null): Promise<Outcome> {
  const nothing = (why: string): Outcome => ({ proposed: null, why, caveats: [] })
  const rejected = calls.filter(({ isRejected }) => isRejected)
  const approved = calls.length - rejected.length
  if (present === null) return nothing('The stored version is damaged')
  if (rejected.length === 0)
    return nothing('Nobody rejected a call of it in this time, so nothing shows what must be asked')
  if (approved === 0) return nothing('Nobody approved a call of it in this time: it asks about nothing too much')
  const foundCondition = await proposedCondition(calls)
  if (foundCondition === null)
    return nothing(
      rejected.some(({ input }) => input === null)
        ? 'The inputs of some rejected calls are not recorded as they were judged, so no condition on inputs is known to keep them'
        : 'No limit of a number and no list of texts, alone or two together, parts the rejected calls from approved ones',
    )
  const condition = `(${present}\n) && ${foundCondition.addition}`
  if (!compileCondition(condition).ok) return nothing('The condition would be too long, together with the present one')
  const notAsked = calls.filter(({ isRejected }, at) => !isRejected && !foundCondition.asks[at]).length
  const [low, high] = shareInterval({ part: notAsked, whole: approved })
  const proposed: ProposedCondition = {
    condition,
    addition: foundCondition.addition,
    stillAsked: approved - notAsked,
    notAsked,
    share: notAsked / approved,
    low,
    high,
    leftOut: foundCondition.leftOut,
  }
  return { proposed, why: null, caveats: caveatsOf(proposed, foundCondition.differentRejected, calls) }
}

function caveatsOf({ leftOut }: ProposedCondition, different: number, calls: readonly DecidedCall[]): string[] {
  const rejected = calls.filter(({ isRejected }) => isRejected).length
  // The condition missed none of these calls. This is the lower end of the 95 % interval for calls like these.
  const keptPercent = Math.floor(100 * 0.05 ** (1 / different))
  const unread = calls.filter(({ input, sealed }) => input === null || sealed.length > 0).length
  return [
    `It keeps all ${rejected} rejected calls because it was made from them. With 95 % confidence, it asks about at least ${keptPercent} % of calls to come that people would reject, if they are like these`,
    ...(different < FEW ? [`${different} ${different < rejected ? 'different ' : ''}rejected calls are few`] : []),
    ...(leftOut.kept < leftOut.calls
      ? [
          `${leftOut.calls - leftOut.kept} of ${leftOut.calls} rejected calls would not have been asked about, had the search not known them`,
        ]
      : []),
    ...(unread > 0
      ? [`${unread} calls have no recorded input, or masked values: they count as asked where that is not known`]
      : []),
    'People may have approved what they should not have: nobody looked at these calls again',
  ]
}
