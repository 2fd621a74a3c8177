import { compiled } from './compiled.ts'
import { type Evaluation, evaluateWith } from './evaluate.ts'
import { factReader } from './input/facts.ts'
import { messageOf } from './message.ts'
import type { FactReader } from './evaluation/value.ts'
import type { Facts } from './language/variables.ts'

/** From least to most strict. */
export const ACTIONS = ['ALLOW', 'WARN', 'REQUIRE_APPROVAL', 'BLOCK'] as const
export type Action = (typeof ACTIONS)[number]

export const SEVERITIES = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const
export type Severity = (typeof SEVERITIES)[number]

/** A policy of the runtime configuration. A newer server may send unknown actions and severities. */
export type Policy = {
  readonly policyId: string
  readonly name: string
  readonly version: string
  readonly condition: string
  readonly severity: string
  readonly action: string
  /** Effect of a condition that cannot be evaluated: `act`: as a match; `ignore`: as no match; absent: by severity. */
  readonly onError?: string | null | undefined
  /** Purpose of the policy, and its message (message.ts). */
  readonly description?: string | null
}

type PolicyName = Pick<Policy, 'policyId' | 'name' | 'version'>

export type Match = PolicyName & {
  readonly severity: string
  /** The action of the policy. */
  readonly action: string
  /** The effective action: `action`, or BLOCK if it is unknown. */
  readonly effect: Action
  /** True if the match comes only from a condition that failed. */
  readonly failed: boolean
  /** Why the condition failed, without line and column. Absent if it did not fail. */
  readonly failure?: string
  /** The policy's message; absent if it has none. */
  readonly message?: string
}

export type PolicyFailure = PolicyName & { readonly message: string; readonly countedAsMatched: boolean }

export type Decision = {
  readonly action: Action
  /** Strictest first, then by policyId and version. */
  readonly matched: readonly Match[]
  /** Conditions that could not be compiled or evaluated, by policyId and version. */
  readonly failures: readonly PolicyFailure[]
}

/**
 * The strictest match wins; without a match the action is ALLOW. The order of policies does not matter, and an additional
 * policy never makes the decision less strict. Never throws.
 *
 * A condition that cannot be compiled or evaluated counts as matched or not as the policy's `onError` says. Without one it
 * counts as matched if the severity is CRITICAL or HIGH, and as not matched if it is MEDIUM or LOW. A condition that reads an
 * unreadable input, or that runs out of steps, always counts as matched: otherwise a padded input would get past it.
 * `failures` lists each of these conditions. Unknown values fail closed: an unknown action counts as BLOCK, an unknown
 * severity as CRITICAL, an unknown `onError` as `act`.
 */
export function decide(policies: readonly Policy[], facts: Facts): Decision {
  const reader = factReader(facts)
  const matched: Match[] = []
  const failures: PolicyFailure[] = []
  for (const policy of policies) {
    const outcome = evaluatePolicy(policy, reader)
    const countedAsMatched = outcome.ok ? outcome.matched : outcome.failsClosed === true || actsOnError(policy)
    if (!outcome.ok) failures.push({ ...nameOf(policy), message: outcome.message, countedAsMatched })
    if (!countedAsMatched) continue
    const { severity, action } = policy
    const failure = outcome.ok ? {} : { failure: outcome.message.replace(PLACE, '') }
    const match = { ...nameOf(policy), severity, action, effect: effectOf(action), failed: !outcome.ok, ...failure }
    const message = messageOf(policy.description)
    matched.push(message === null ? match : { ...match, message })
  }
  matched.sort((a, b) => strictness(b.effect) - strictness(a.effect) || byName(a, b))
  failures.sort(byName)
  return { action: matched[0]?.effect ?? 'ALLOW', matched, failures }
}

function evaluatePolicy({ condition }: Policy, reader: FactReader): Evaluation {
  const result = compiled(condition)
  if (result.ok) return evaluateWith(result.condition, reader)
  const [fault] = result.faults
  const message = fault ? `line ${fault.position.line}, column ${fault.position.column}: ${fault.message}` : ''
  return { ok: false, message }
}

const PLACE = /^line \d+, column \d+: /

/** Whether a condition that cannot be evaluated counts as matched. */
export function actsOnError({ severity, onError }: Pick<Policy, 'severity' | 'onError'>): boolean {
  return onError === undefined || onError === null ? severity !== 'LOW' && severity !== 'MEDIUM' : onError !== 'ignore'
}

function effectOf(action: string): Action {
  return ACTIONS.find((known) => known === action) ?? 'BLOCK'
}

function strictness(action: Action): number {
  return ACTIONS.indexOf(action)
}

function nameOf({ policyId, name, version }: Policy): PolicyName {
  return { policyId, name, version }
}

function byName(a: PolicyName, b: PolicyName): number {
  return compare(a.policyId, b.policyId) || compare(a.version, b.version) || compare(a.name, b.name)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
