/**
 * Standing approvals: a person allows later calls together with one call. Each use is a separate approval.
 *
 *   request --a grant in use may cover it--> held: people are not notified yet
 *     held --covers it: input or tool, or the recorded input has the approved hash and the condition is true--> APPROVED
 *       `--it does not, or nothing shows it within seconds--> people are told
 *
 * A condition is about what the person saw, so it must not depend on a value that is masked here. An input that cannot
 * be compared with the hash fulfils no condition.
 */
import type { ApprovalGrant } from '@tacho/contract/approvals/grant.ts'
import type { RuntimePolicy } from '@tacho/contract/policies/runtime-config.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import { fieldsOf } from '@tacho/policy/language/fields.ts'
import { evaluate } from '@tacho/policy/evaluate.ts'
import { parse } from '@tacho/policy/language/parse.ts'
import { childrenOf, dottedName, literalText, type Node } from '@tacho/policy/language/syntax.ts'
import type { ApprovalRow, GrantRow } from '../../storage/approvals/approvals.ts'
import { entryBy, type AuditEntry } from '../../storage/people/operators.ts'
import type { Storage } from '../../storage/storage.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { isoOf, pick } from '../web/shown.ts'
import { toolsOf } from './asking-policies.ts'
import { checkInput, type ShownInput, wholeInput } from './recorded-input.ts'

const READABLE = new Set<string>(['tool.name', 'tool.input'])

/** Null: the condition reads only what an approver sees. */
export function grantConditionFault(condition: string): string | null {
  const compiled = compileCondition(condition)
  if (!compiled.ok) return null
  const { variables } = fieldsOf(compiled.condition)
  const others: string[] = variables.filter((name) => !READABLE.has(name))
  if (others.length === 0 && compiled.condition.readsHistory) others.push('origin')
  return others.length === 0 ? null : `may read tool.input and tool.name only, not ${others.join(', ')}`
}

/** An input that matches its hash, read once for all conditions. */
interface CheckedInput {
  input: unknown
  sealed: string[]
}

/** Null: the input cannot be compared with the hash. */
export function checkedInput(
  request: Pick<ApprovalRow, 'toolName' | 'inputHash' | 'hashScheme'>,
  shown: ShownInput | null,
): CheckedInput | null {
  if (shown === null || checkInput(request, shown).result !== 'matches') return null
  const sealed = Object.keys((shown.seals as object | null | undefined) ?? {})
  return { input: JSON.parse(shown.json) as unknown, sealed }
}

/** Why a condition is not true of a call; null: it is. The reason says nothing of the input. */
export function faultOfCall(
  condition: string,
  request: Pick<ApprovalRow, 'toolName' | 'inputHash' | 'hashScheme'>,
  shown: ShownInput | null,
): string | null {
  return faultOfChecked(condition, request.toolName, checkedInput(request, shown))
}

function faultOfChecked(condition: string, name: string, checked: CheckedInput | null): string | null {
  const compiled = compileCondition(condition)
  if (!compiled.ok) return 'cannot be compiled'
  if (checked === null) return 'cannot be checked for this call: its input must be recorded and match the approved hash'
  const { input, sealed } = checked
  if (sealed.length > 0 && readsSealed(condition, sealed)) return 'must read no value that is masked'
  const outcome = evaluate(compiled.condition, { tool: { name, input: input as Record<string, unknown> }, now: 0 })
  if (!outcome.ok) return `fails for this call: ${outcome.message}`
  return outcome.matched ? null : 'is not true of this call'
}

/**
 * Whether the condition may depend on a sealed value: it reads the first step of the value's pointer, or the input as a
 * whole.
 */
export function readsSealed(condition: string, pointers: readonly string[]): boolean {
  const compiled = compileCondition(condition)
  if (!compiled.ok || readsWholeInput(parse(condition))) return true
  const read = new Set(
    fieldsOf(compiled.condition).inputPaths.map(([first]) => (first === null ? null : String(first))),
  )
  const firstOf = (pointer: string) => pointer.split('/')[1]?.replaceAll('~1', '/').replaceAll('~0', '~')
  return read.has(null) || pointers.some((pointer) => read.has(firstOf(pointer) ?? null) || pointer === '')
}

function readsWholeInput(node: Node): boolean {
  const isInput = (one: Node) => dottedName(one) === 'tool.input'
  if (isInput(node)) return true
  if ((node.kind === 'field' || node.kind === 'index') && isInput(node.object))
    return node.kind === 'index' && literalText(node.key) === undefined
  if (node.kind === 'binary' && node.operator === 'in' && isInput(node.right))
    return literalText(node.left) === undefined
  return childrenOf(node).some(readsWholeInput)
}

export function toGrant(row: GrantRow, now: number): ApprovalGrant {
  const { granterKind: kind, granterId: id, granterName: name } = row
  const policies = Object.entries(row.policies).map(([policyId, version]) => ({ policyId, version: String(version) }))
  return {
    ...pick(row, 'id', 'approvalId', 'scope', 'toolName', 'runId', 'agentId', 'inputHash', 'condition', 'reason'),
    ...pick(row, 'uses', 'mostUses', 'endedBy'),
    ...isoOf(
      { ...row, endedAt: firstOf(row.endedAt, row.runEndedAt) },
      'createdAt',
      'expiresAt',
      'lastUsedAt',
      'endedAt',
    ),
    policies,
    grantedBy: { kind, id, name },
    state: stateOf(row, now),
  }
}

const firstOf = (one: number | null, other: number | null): number | null =>
  one !== null && other !== null ? Math.min(one, other) : (one ?? other)

/** A publication also ends grants of its policies that were already unusable. Their state shows the earlier reason. */
function stateOf(
  { endedAt, runEndedAt, endedBy, uses, mostUses, expiresAt }: GrantRow,
  now: number,
): ApprovalGrant['state'] {
  if (endedBy !== null) return 'revoked'
  if (uses >= mostUses) return 'used_up'
  if (endedAt !== null) return runEndedAt !== null && runEndedAt <= endedAt ? 'run_ended' : 'policy_changed'
  if (expiresAt <= Math.min(now, runEndedAt ?? now)) return 'expired'
  return runEndedAt === null ? 'in_use' : 'run_ended'
}

type Acts = Pick<
  Storage,
  'findGrantsFor' | 'useGrant' | 'announceHeld' | 'readConfiguration' | 'findLinkedInputs' | 'findApproval'
>

/** Returns the request with its new state. */
export async function applyGrants(
  storage: Acts,
  row: ApprovalRow,
  { now, workspaceId }: { now: number; workspaceId: string | null },
): Promise<ApprovalRow> {
  const { environmentId, id, heldUntil, status, inputEventId } = row
  if (status !== 'PENDING' || heldUntil === null) return row
  const grants = await storage.findGrantsFor(row, now)
  const asking = grants.length === 0 ? null : await askingPolicies(storage, row)
  const shown = grants.some(({ scope }) => scope === 'condition') ? await wholeInput(storage, row) : null
  const checked = checkedInput(row, shown)
  for (const grant of asking === null ? [] : grants) {
    if (asking?.some((policyId) => !Object.hasOwn(grant.policies, policyId))) continue
    if (grant.condition !== null) {
      // Let other requests run in between, because many conditions on a large input take seconds.
      await new Promise(setImmediate)
      if (faultOfChecked(grant.condition, row.toolName, checked) !== null) continue
    }
    const use = { grantId: grant.id, policyIds: asking ?? [], inputEventId, now }
    const approved = await storage.useGrant(environmentId, id, use, [auditOf(row, grant, workspaceId, now)])
    if (approved !== null) return approved
  }
  // Wait for the recorded decision, which may show more: the input, or which policies asked.
  const isConditional = grants.some(({ scope }) => scope === 'condition') && row.recordsInput !== 0
  const mayShowMore = grants.length > 0 && inputEventId === null && (row.policyVersions === null || isConditional)
  if (mayShowMore && now < heldUntil) return row
  await storage.announceHeld(environmentId, [id], now)
  return (await storage.findApproval(environmentId, id)) ?? row
}

const HELD_AT_ONCE = 200

/** Applies grants to held requests whose time is over, and notifies people of the others. */
export async function applyHeld(
  storage: Acts & Pick<Storage, 'listHeldApprovals' | 'findTenant'>,
  environmentId: string,
  now: number,
): Promise<void> {
  const held = await storage.listHeldApprovals(environmentId, now, HELD_AT_ONCE)
  const { environment } = held.length === 0 ? { environment: null } : await storage.findTenant(environmentId)
  for (const row of held) await applyGrants(storage, row, { now, workspaceId: environment?.workspaceId ?? null })
}

/**
 * The policies that the recorded decision names. Before it is recorded: all deployed policies that may require approval
 * for this tool. Null: unknown.
 */
async function askingPolicies(
  storage: Acts,
  { environmentId, policyId, policyVersions, toolName }: ApprovalRow,
): Promise<string[] | null> {
  const { text } = await storage.readConfiguration(environmentId, null).catch(() => ({ text: null }))
  if (text === null) return null
  const { policies } = JSON.parse(text) as { policies: RuntimePolicy[] }
  const named = policyVersions === null ? null : (JSON.parse(policyVersions) as Record<string, string>)
  const asking = policies.filter(({ policyId: id, action, condition }) => {
    if (action !== 'REQUIRE_APPROVAL') return false
    return named === null ? (toolsOf(condition)?.includes(toolName) ?? true) : Object.hasOwn(named, id)
  })
  return [...new Set([...asking.map((policy) => policy.policyId), ...(policyId === null ? [] : [policyId])])]
}

function auditOf(row: ApprovalRow, grant: GrantRow, workspaceId: string | null, now: number): AuditEntry {
  const { environmentId, id, toolName, inputHash, agentId, policyId, runId } = row
  const { granterKind, granterId, granterName, reason } = grant
  const call = { grantId: grant.id, toolName, inputHash, agentId, policyId, runId, reason }
  const detail = { ...call, grantedAt: isoTime(grant.createdAt) }
  const act = { action: 'approval.approve.by_grant', targetKind: 'approval', targetId: id, detail }
  const actor = { kind: granterKind, id: granterId, name: granterName }
  return entryBy(actor, { at: now, workspaceId, environmentId }, act, { id })
}
