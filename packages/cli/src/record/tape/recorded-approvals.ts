/** What came of the approvals of a tape: a stop, or the end of the caller, may come between the decision and the call. */
import { STOP_POLICY } from '@tacho/contract/engine/words.ts'
import type { ApprovalStep, Tape } from './tape.ts'

/** By id of the policy: how many approvals were decided before the stop first blocked a call. */
export function stopsOf({ steps }: Tape): Map<string, number> {
  const stops = new Map<string, number>()
  let approvals = 0
  for (const step of steps) {
    if (step.kind === 'approval') approvals++
    const policies = step.kind === 'decision' ? step.policies : []
    for (const id of policies) if (id.startsWith(STOP_POLICY) && !stops.has(id)) stops.set(id, approvals)
  }
  return stops
}

/** Approved, and neither run nor judged again: because of a stop, the service let nothing run, or the caller was gone. */
export function approvalsThatRanNothing({ steps }: Tape): Set<ApprovalStep> {
  const approvals = steps.filter((step) => step.kind === 'approval' && step.status === 'APPROVED')
  const ranNothing = new Set<ApprovalStep>()
  if (approvals.length === 0) return ranNothing
  const [asked, last] = [new Map<number, string>(), new Map<string, number>()]
  for (const step of steps) {
    if (step.kind !== 'tool' && step.kind !== 'decision') continue
    const call = JSON.stringify([step.tool, step.input])
    // An approval stands where its decision does.
    if (step.kind === 'decision') asked.set(step.from, call)
    last.set(call, step.from)
  }
  for (const approval of approvals) {
    const call = asked.get(approval.from)
    if (call !== undefined && (last.get(call) ?? 0) <= approval.from) ranNothing.add(approval as ApprovalStep)
  }
  return ranNothing
}
