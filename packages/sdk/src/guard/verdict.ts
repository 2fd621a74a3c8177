/** What policies, detectors and the state of the configuration mean together for one call. Pure. */
import type { Action, Decision } from '../policies.ts'
import type { Detection } from './detectors.ts'

export interface Verdict {
  /** The strictest of all. */
  readonly action: Action
  /** Why a call that does not simply run is held up; `null` when nothing holds it up. */
  readonly cause: 'policy' | 'loop' | 'budget' | 'not_configured' | null
  /** Policies that matched, strictest first. */
  readonly policyIds: readonly string[]
  /** Of the strictest policy; null when it is not a policy that decides. */
  readonly policyId: string | null
  /** A sentence without any value of the input, null when nothing matched. */
  readonly reason: string | null
}

const STRICTNESS: readonly Action[] = ['ALLOW', 'WARN', 'REQUIRE_APPROVAL', 'BLOCK']
const CAUSES = { LOOP_DETECTED: 'loop', BUDGET_EXCEEDED: 'budget' } as const

/** @param isConfigured false: policies were never loaded, and the guard is to fail closed then. */
export function judge(decision: Decision, detections: readonly Detection[], isConfigured: boolean): Verdict {
  const policyIds = decision.matched.map(({ policyId }) => policyId)
  if (!isConfigured) {
    const reason = 'no policies could be loaded yet, and this tool must not run without them'
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
