/**
 * The service derives a recorded decision again, from the recorded facts of its call and the versions that it names.
 *
 *   names versions that were in force here, no detector took part --each condition judged again--> same | differs
 *      `--otherwise, or a condition reads what is not recorded as the client saw it--> cannot be derived, and why
 *
 * It differs only if the conditions that can be judged again are enough to show that. For other conditions, the
 * client's result counts. An input can be used if it has the recorded hash and the condition reads no masked part of
 * it. The past of a run, its usage, labels and session, annotations, risks and the time are not recorded as the client
 * saw them.
 */
import { isObject, textAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import { VERSION_PATTERN } from '@tacho/contract/engine/words.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import { fieldsOf } from '@tacho/policy/language/fields.ts'
import { ACTIONS, decide, type Action, type Policy } from '@tacho/policy/decide.ts'
import type { DecisionRow } from '../../storage/policies/policies.ts'
import { checkedInput, readsSealed } from '../approvals/grant.ts'
import { shownInput } from '../approvals/recorded-input.ts'

export const DERIVATIONS = ['same', 'differs', 'unknown_version', 'unknown_facts'] as const

export interface Difference {
  toolName: string
  /** The policy whose result differs. */
  policyId: string
  recorded: Action
  derived: Action
}

export type Derivation =
  | { result: Exclude<(typeof DERIVATIONS)[number], 'differs'> }
  | ({ result: 'differs' } & Difference)

const VERSION = new RegExp(VERSION_PATTERN)
/** Our clients name fewer policies in one decision. */
const NAMED_MAX = 500

/** The versions that a payload names. Null: it names none, or one of them is not a version. */
export function namedVersions(payload: Json): [policyId: string, number: number][] | null {
  const { policyVersions } = payload
  const entries = isObject(policyVersions) ? Object.entries(policyVersions) : []
  if (entries.length === 0 || entries.length > NAMED_MAX) return null
  const isVersion = (text: unknown): text is string => typeof text === 'string' && VERSION.test(text)
  return entries.every((entry): entry is [string, string] => isVersion(entry[1]))
    ? entries.map(([id, version]) => [id, Number(version)])
    : null
}

/**
 * @param named the versions that the decision names, if they are known.
 * @param inForce all versions that were in force when it was made; null: unknown.
 * @param start the payload of the TOOL_START of the call.
 */
export function deriveDecision(
  row: DecisionRow,
  payload: Json,
  { named, inForce, start }: { named: readonly Policy[]; inForce: readonly Policy[] | null; start: string | null },
): Derivation {
  const recorded = ACTIONS.find((action) => action === payload['action'])
  const { detections, inputProblem, failures = [] } = payload
  const isOthers = (Array.isArray(detections) && detections.length > 0) || typeof inputProblem === 'string'
  if (recorded === undefined || isOthers || !Array.isArray(failures)) return { result: 'unknown_facts' }
  if (named.length !== Object.keys(payload['policyVersions'] as object).length) return { result: 'unknown_version' }
  const failed = new Set(failures.map((failure: unknown) => (isObject(failure) ? failure['policyId'] : null)))
  const judge = judgeAgain(row, payload, start)
  const ids = new Set(named.map(({ policyId }) => policyId))
  const others = (inForce ?? []).filter(({ policyId }) => !ids.has(policyId))
  const matching: Policy[] = []
  let unknown = false
  let policyId: string | null = null
  for (const policy of [...named, ...others]) {
    const wasMatched = ids.has(policy.policyId)
    const matched = failed.has(policy.policyId) ? null : judge(policy)
    unknown ||= matched === null
    if (matched !== null && matched !== wasMatched) policyId ??= policy.policyId
    if (matched ?? wasMatched) matching.push(policy)
  }
  // These policies matched, so let the engine decide as if every condition were true.
  const all = matching.map((policy) => ({ ...policy, condition: 'true' }))
  const { action: derived } = decide(all, { tool: { name: '', input: {} }, now: 0 })
  if (derived !== recorded && policyId !== null)
    return { result: 'differs', toolName: textAt(payload, 'toolName') ?? '', policyId, recorded, derived }
  return { result: unknown || derived !== recorded ? 'unknown_facts' : 'same' }
}

/** Null: the condition reads what is not recorded as the client saw it. */
function judgeAgain(row: DecisionRow, payload: Json, start: string | null): (policy: Policy) => boolean | null {
  const [name, hash, server] = ['toolName', 'inputHash', 'toolServer'].map((member) => textAt(payload, member))
  const request = { toolName: name ?? '', inputHash: hash?.toLowerCase() ?? '', hashScheme: null }
  let seen: ReturnType<typeof checkedInput> | undefined
  const inputOf = () =>
    (seen ??= checkedInput(request, shownInput(row.payload) ?? (start === null ? null : shownInput(start))))
  const known = new Set<string>(['tool.name', 'tool.input', 'run.id'])
  if (server) known.add('tool.server')
  // A sub-agent decides by its own name, which differs from the event's.
  if (payload['agent'] === undefined) known.add('agent.id').add('agent.name')
  return (policy) => {
    const compiled = compileCondition(policy.condition)
    if (!compiled.ok || !name || compiled.condition.readsHistory) return null
    const { variables } = fieldsOf(compiled.condition)
    if (variables.some((variable) => !known.has(variable))) return null
    const checked = variables.includes('tool.input') ? inputOf() : { input: {}, sealed: [] }
    if (!checked || !isObject(checked.input)) return null
    if (checked.sealed.length > 0 && readsSealed(policy.condition, checked.sealed)) return null
    const { matched } = decide([policy], {
      tool: { name, server, input: checked.input },
      agent: { id: row.agentId, name: row.agentName },
      run: { id: row.runId },
      now: row.time,
    })
    return matched.length > 0
  }
}
