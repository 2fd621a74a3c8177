/**
 * What happened after approvals were asked for, judged from what a run recorded (docs/decisions, "What happened after an
 * approval"). Times of clients are not compared with the server's: only when an event was stored is.
 */
import { CALL_VERDICTS, type CallVerdict, type JudgedCall } from '@tacho/contract/operator/aftermath.ts'
import type { ApprovalRow, ToolEventRow } from '../storage/approvals.ts'
import type { RunRow } from '../storage/runs.ts'
import { isoTime } from './run.ts'
import { uuidv5 } from '../storage/uuid.ts'

export interface CallJudgement {
  call: ToolEventRow
  verdict: CallVerdict
  approval: ApprovalRow | null
  /** The id that the call named, also where there is no such approval. */
  approvalId: string | null
  linkedBy: JudgedCall['linkedBy']
}

/**
 * Judges the tool calls that have to do with approvals; all others are left out.
 * @param run external id of the run
 * @param approvals those of the run, the oldest first, and those that its calls name
 * @param events tool calls and policy decisions of the run, in the order of the timeline
 */
export function judgeCalls(run: string, approvals: ApprovalRow[], events: ToolEventRow[]): CallJudgement[] {
  const calls = events.filter(({ kind }) => kind === 'TOOL_CALL')
  const decided = policyDecisions(events)
  const ofRun = approvals.filter(({ runId }) => runId === run)
  const byId = new Map(approvals.map((approval) => [approval.id, approval]))
  const used = new Set<string>()
  const judged = new Map<ToolEventRow, CallJudgement>()

  const judge = (call: ToolEventRow, approval: ApprovalRow, linkedBy: JudgedCall['linkedBy']) => {
    const verdict = verdictOf(run, call, approval, used.has(approval.id))
    used.add(approval.id)
    judged.set(call, { call, verdict, approval, approvalId: approval.id, linkedBy })
  }
  const unjudged = () => calls.filter((call) => !judged.has(call))
  const unused = ({ id }: ApprovalRow) => !used.has(id)

  for (const call of calls) {
    if (call.approvalId === null) continue
    const approval = byId.get(call.approvalId)
    if (approval) judge(call, approval, 'approvalId')
    else
      judged.set(call, {
        call,
        verdict: 'unknown_approval',
        approval: null,
        approvalId: call.approvalId,
        linkedBy: 'none',
      })
  }
  for (const call of unjudged()) {
    const same = ofRun.filter(({ toolName, inputHash }) => toolName === call.toolName && inputHash === call.inputHash)
    const approval = same.find(unused) ?? same.at(-1)
    if (approval) judge(call, approval, 'inputHash')
  }
  for (const call of unjudged()) {
    const asked = ofRun.find(
      (approval) => approval.toolName === call.toolName && approval.createdAt <= call.receivedAt && unused(approval),
    )
    const own = decided.about(call)
    // A policy that has judged this very input says more than an approval of another one.
    if (asked && (call.inputHash === null || own === null)) judge(call, asked, 'toolName')
    else if (own === 'required' || (own === null && decided.requires(call.toolName))) {
      judged.set(call, { call, verdict: 'without_approval', approval: null, approvalId: null, linkedBy: 'none' })
    }
  }
  return calls.flatMap((call) => judged.get(call) ?? [])
}

function verdictOf(run: string, call: ToolEventRow, approval: ApprovalRow, usedBefore: boolean): CallVerdict {
  const { status, decidedAt, expiresAt } = approval
  if (approval.runId !== null && approval.runId !== run) return 'other_run'
  if (call.toolName !== null && call.toolName !== approval.toolName) return 'other_tool'
  if (call.inputHash !== null && call.inputHash !== approval.inputHash) return 'other_input'
  const settledAt = status === 'EXPIRED' ? expiresAt : (decidedAt ?? Infinity)
  if (call.receivedAt < settledAt) return 'before_decision'
  if (status === 'REJECTED') return 'after_rejection'
  if (status === 'EXPIRED') return 'after_expiry'
  return usedBefore ? 'ran_again' : 'as_approved'
}

/** What policies decided in the run: about one tool and input, and about tools whatever their input. */
function policyDecisions(events: ToolEventRow[]) {
  const required = new Set<string>()
  const other = new Set<string>()
  const keyOf = ({ toolName, inputHash }: Pick<ToolEventRow, 'toolName' | 'inputHash'>) =>
    JSON.stringify([toolName, inputHash])
  for (const event of events) {
    if (event.kind !== 'POLICY_DECISION' || event.toolName === null) continue
    if (event.action === 'REQUIRE_APPROVAL') required.add(keyOf(event))
    else other.add(keyOf(event))
  }
  return {
    about(call: ToolEventRow): 'required' | 'other' | null {
      if (required.has(keyOf(call))) return 'required'
      return other.has(keyOf(call)) ? 'other' : null
    },
    requires: (toolName: string | null) => required.has(keyOf({ toolName, inputHash: null })),
  }
}

export function toJudgedCall(
  { id }: RunRow,
  { call, verdict, approval, approvalId, linkedBy }: CallJudgement,
): JudgedCall {
  return {
    eventId: call.eventId,
    id: uuidv5(id, call.eventId),
    label: call.label,
    timestamp: isoTime(call.time),
    receivedAt: isoTime(call.receivedAt),
    toolName: call.toolName,
    inputHash: call.inputHash,
    verdict,
    message: CALL_VERDICTS[verdict],
    approvalId,
    linkedBy,
    hashChecked: approval !== null && call.inputHash !== null,
    outcome: call.outcome,
  }
}
