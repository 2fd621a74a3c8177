/** Combines policies, detectors and the configuration's state into one decision about a call. Pure. */
import type { Action, Decision } from '../policies.ts'
import type { Detection } from './detectors.ts'

export interface Verdict {
  /** The strictest of all. */
  readonly action: Action
  /** Why the call is held up; `null` if nothing holds it up. */
  readonly cause: 'policy' | 'loop' | 'budget' | 'not_configured' | null
  /** Policies that matched, strictest first. */
  readonly policyIds: readonly string[]
  /** From the strictest policy; null if the decision does not come from a policy. */
  readonly policyId: string | null
  /** A sentence without any input value; null if nothing matched. */
  readonly reason: string | null
}

const STRICTNESS: readonly Action[] = ['ALLOW', 'WARN', 'REQUIRE_APPROVAL', 'BLOCK']
const CAUSES = { LOOP_DETECTED: 'loop', BUDGET_EXCEEDED: 'budget' } as const

/** @param isConfigured false: policies were never loaded, and the guard must fail closed. */
export function judge(decision: Decision, detections: readonly Detection[], isConfigured: boolean): Verdict {
  const policyIds = decision.matched.map(({ policyId }) => policyId)
  if (!isConfigured) {
    const reason = 'no policies are loaded yet, and this tool must not run without them'
    return { action: 'BLOCK', cause: 'not_configured', policyIds, policyId: null, reason }
  }
  const [first] = decision.matched
  const reason = first ? `policy "${first.name}"${first.failed ? ' (its condition failed)' : ''}` : null
  let verdict: Verdict = {
    action: decision.action,
    cause: first ? 'policy' : null,
    policyIds,
    policyId: first?.policyId ?? null,
    reason,
  }
  for (const { type, action, message } of detections) {
    if (STRICTNESS.indexOf(action) <= STRICTNESS.indexOf(verdict.action)) continue
    verdict = { action, cause: CAUSES[type], policyIds, policyId: null, reason: message }
  }
  return verdict
}
