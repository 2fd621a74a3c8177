/** Orders calls by storage time: client clocks are not comparable (docs/decisions/0024-approvals.md). */
import { CALL_VERDICTS, type CallVerdict, type JudgedCall } from '@tacho/contract/approvals/aftermath.ts'
import type { Hindsight } from '@tacho/contract/engine/words.ts'
import type { ApprovalRow, ToolEventRow } from '../../storage/approvals/approvals.ts'
import type { RunRow } from '../../storage/runs/runs.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { uuidv5 } from '../../storage/engine/uuid.ts'
import { pick } from '../web/shown.ts'

export interface LinkedCall {
  call: ToolEventRow
  verdict: CallVerdict
  approval: ApprovalRow | null
  /** The id that the call names, even if no such approval exists. */
  approvalId: string | null
  linkedBy: JudgedCall['linkedBy']
}

/** `approvals`: those of the run, oldest first, and those that its calls name. `events`: in timeline order. */
export function linkCalls(runId: string, approvals: ApprovalRow[], events: ToolEventRow[]): LinkedCall[] {
  const calls = events.filter(({ kind, neverRan }) => kind === 'TOOL_CALL' && !neverRan)
  const decided = policyDecisions(events)
  const ofRun = approvals.filter((approval) => approval.runId === runId)
  const byId = new Map(approvals.map((approval) => [approval.id, approval]))
  const used = new Set<string>()
  const linked = new Map<ToolEventRow, LinkedCall>()

  const link = (call: ToolEventRow, approval: ApprovalRow, linkedBy: JudgedCall['linkedBy']) => {
    const verdict = verdictOf(runId, call, approval, used.has(approval.id))
    used.add(approval.id)
    linked.set(call, { call, verdict, approval, approvalId: approval.id, linkedBy })
  }
  const markUnlinked = (call: ToolEventRow, verdict: CallVerdict) =>
    linked.set(call, { call, verdict, approval: null, approvalId: call.approvalId, linkedBy: 'none' })
  const unlinked = () => calls.filter((call) => !linked.has(call))
  const unused = ({ id }: ApprovalRow) => !used.has(id)
  const placeOf = new Map(events.map((event, place) => [event, place]))
  const askedAt = new Map<string | null, number>()
  for (const [place, { kind, approvalId }] of events.entries())
    if (kind === 'POLICY_DECISION' && !askedAt.has(approvalId)) askedAt.set(approvalId, place)

  for (const call of calls) {
    if (call.approvalId === null) continue
    const approval = byId.get(call.approvalId)
    if (approval) link(call, approval, 'approvalId')
    else markUnlinked(call, 'unknown_approval')
  }
  const sameInput = Map.groupBy(ofRun, keyOf)
  const next = new Map<string, number>()
  for (const call of unlinked()) {
    const key = keyOf(call)
    const same = sameInput.get(key) ?? []
    let at = next.get(key) ?? 0
    while (at < same.length && !unused(same[at]!)) at++
    next.set(key, at)
    const approval = same[at] ?? same.at(-1)
    if (approval) link(call, approval, 'inputHash')
  }
  const open = ofRun.filter(unused).map((approval) => ({ approval, askedAt: askedAt.get(approval.id) ?? -1 }))
  const openOfTool = Map.groupBy<string | null, (typeof open)[number]>(open, ({ approval }) => approval.toolName)
  for (const call of unlinked()) {
    const left = openOfTool.get(call.toolName) ?? []
    const place = placeOf.get(call) ?? 0
    // A call before the recorded request in the timeline is older, even if one batch stored both later.
    const at = left.findIndex((one) => one.approval.createdAt <= call.receivedAt && place > one.askedAt)
    const asked = left[at]?.approval
    const callDecision = decided.about(call)
    // A policy decision about this exact input is stronger evidence than an approval of another input.
    if (asked && (call.inputHash === null || callDecision === null)) {
      left.splice(at, 1)
      link(call, asked, 'toolName')
    } else if (callDecision === 'required' || (callDecision === null && decided.requires(call.toolName))) {
      markUnlinked(call, 'without_approval')
    }
  }
  return calls.flatMap((call) => linked.get(call) ?? [])
}

function verdictOf(runId: string, call: ToolEventRow, approval: ApprovalRow, usedBefore: boolean): CallVerdict {
  const { status, decidedAt, expiresAt } = approval
  if (approval.runId !== null && approval.runId !== runId) return 'other_run'
  if (call.toolName !== null && call.toolName !== approval.toolName) return 'other_tool'
  if (call.inputHash !== null && call.inputHash !== approval.inputHash) return 'other_input'
  const closedAt = status === 'EXPIRED' ? expiresAt : (decidedAt ?? Infinity)
  if (call.receivedAt < closedAt) return 'before_decision'
  if (status === 'REJECTED') return 'after_rejection'
  if (status === 'EXPIRED') return 'after_expiry'
  return usedBefore ? 'ran_again' : 'as_approved'
}

/** `linked` and `events`: those of the approval's whole run. */
export function hindsightOf(
  approval: ApprovalRow,
  linked: readonly LinkedCall[],
  events: readonly ToolEventRow[],
): { hindsight: Hindsight; shown: LinkedCall | null } {
  const approvalCalls = linked.filter(({ approvalId }) => approvalId === approval.id)
  const ranBefore = approvalCalls.find(({ verdict }) => verdict === 'before_decision')
  if (ranBefore) return { hindsight: 'ran_before', shown: ranBefore }
  const ranAnyway = approvalCalls.find(({ verdict }) => verdict === 'after_rejection' || verdict === 'after_expiry')
  if (ranAnyway) return { hindsight: 'ran_anyway', shown: ranAnyway }
  const ran = approvalCalls.filter(({ verdict }) => verdict === 'as_approved' || verdict === 'ran_again')
  const failed = ran.find(({ call }) => call.outcome === 'error')
  if (failed) return { hindsight: 'failed', shown: failed }
  if (ran[0]) return { hindsight: 'ran', shown: ran[0] }
  const { status, toolName, inputHash, expiresAt, decidedAt } = approval
  const closedAt = status === 'EXPIRED' ? expiresAt : (decidedAt ?? Infinity)
  const isOther = (call: ToolEventRow) => call.inputHash !== null && call.inputHash !== inputHash
  const other = events.find((call) => {
    const { kind, neverRan, outcome } = call
    const hasRun = kind === 'TOOL_CALL' && !neverRan && outcome !== 'error'
    return hasRun && call.toolName === toolName && isOther(call) && call.receivedAt >= closedAt
  })
  const link = other && linked.find(({ call }) => call === other)
  const unlinked = { verdict: 'other_input', approval, approvalId: approval.id, linkedBy: 'toolName' } as const
  if (other) return { hindsight: 'another_way', shown: link ?? { call: other, ...unlinked } }
  return { hindsight: 'not_run', shown: null }
}

const keyOf = ({ toolName, inputHash }: Pick<ToolEventRow, 'toolName' | 'inputHash'>): string =>
  JSON.stringify([toolName, inputHash])

function policyDecisions(events: ToolEventRow[]) {
  const required = new Set<string>()
  const other = new Set<string>()
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
  { call, verdict, approval, approvalId, linkedBy }: LinkedCall,
): JudgedCall {
  return {
    ...pick(call, 'eventId', 'label', 'toolName', 'inputHash', 'outcome'),
    id: uuidv5(id, call.eventId),
    timestamp: isoTime(call.time),
    receivedAt: isoTime(call.receivedAt),
    verdict,
    message: CALL_VERDICTS[verdict],
    approvalId,
    linkedBy,
    hashChecked: approval !== null && call.inputHash !== null,
  }
}
