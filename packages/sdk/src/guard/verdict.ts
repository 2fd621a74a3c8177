/** Combines policies, detectors and the state of the configuration into one decision about a call. Pure. */
import type { Action, Decision } from '../policies.ts'
import type { Detection } from './detectors.ts'

export interface Verdict {
  readonly action: Action
  /** Null if the call may run. */
  readonly cause: 'policy' | 'loop' | 'budget' | 'not_configured' | null
  /** Policies that matched, strictest first. */
  readonly policyIds: readonly string[]
  /** From the strictest policy; null if the decision does not come from a policy. */
  readonly policyId: string | null
  readonly policyVersion: string | null
  /** Versions of every policy that matched. */
  readonly policyVersions: Readonly<Record<string, string>>
  /** Reason without any input value; null if nothing matched. */
  readonly reason: string | null
  /** The condition of the deciding policy failed. */
  readonly isFailure: boolean
  readonly failures: Decision['failures']
  /** The deciding policy's message to the model; null if it has none. */
  readonly policyMessage: string | null
}

const STRICTNESS: readonly Action[] = ['ALLOW', 'WARN', 'REQUIRE_APPROVAL', 'BLOCK']
const CAUSES = { LOOP_DETECTED: 'loop', BUDGET_EXCEEDED: 'budget' } as const

/** @param isConfigured false: policies were never loaded, and the guard must fail closed. */
export function combineVerdict(decision: Decision, detections: readonly Detection[], isConfigured: boolean): Verdict {
  const { failures } = decision
  const policyIds = decision.matched.map(({ policyId }) => policyId)
  const policyVersions = Object.fromEntries(decision.matched.map(({ policyId, version }) => [policyId, version]))
  const none = {
    policyIds,
    policyVersions,
    policyId: null,
    policyVersion: null,
    isFailure: false,
    failures,
    policyMessage: null,
  }
  if (!isConfigured) {
    const reason = 'no policies are loaded yet, and this tool must not run without them'
    return { ...none, action: 'BLOCK', cause: 'not_configured', reason }
  }
  const [first] = decision.matched
  const policyMessage =
    decision.matched.find(({ effect, message }) => effect === decision.action && message)?.message ?? null
  const policyText = policyMessage === null ? '' : `: ${policyMessage}`
  const failed = first?.failure === undefined ? '' : ` (its condition could not be evaluated: ${first.failure})`
  // Replace quotes in the name, because the name is in quotes.
  const reason = first ? `policy "${first.name.replaceAll('"', "'")}"${failed}${policyText}` : null
  let verdict: Verdict = {
    ...none,
    action: decision.action,
    cause: first ? 'policy' : null,
    policyId: first?.policyId ?? null,
    policyVersion: first?.version ?? null,
    reason,
    isFailure: first?.failed ?? false,
    policyMessage,
  }
  for (const { type, action, message } of detections) {
    if (STRICTNESS.indexOf(action) <= STRICTNESS.indexOf(verdict.action)) continue
    verdict = { ...none, action, cause: CAUSES[type], reason: message }
  }
  return verdict
}
