/** Which recorded calls a policy blocked, and which of them only because its condition could not be evaluated. */
import type { AskingPolicies } from '@tacho/contract/approvals/asking-policies.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import type { CallPlace } from '../../storage/policies/policies.ts'
import type { Storage } from '../../storage/storage.ts'

const CALLS_AT_ONCE = 500
const PAGE_BYTES = 2_097_152

/** Of the calls since then that a policy held back; `capped`: there are more than are looked at. */
export async function countBlocked(
  storage: Pick<Storage, 'listToolCalls'>,
  environmentId: string,
  policyId: string,
  { from, to }: { from: number; to: number },
): Promise<NonNullable<AskingPolicies['blocks']>> {
  const blocks = { calls: 0, unevaluated: 0, capped: false }
  let looked = 0
  let after: CallPlace | null = null
  for (;;) {
    const limit = Math.min(CALLS_AT_ONCE, LIMITS.heldCallsCounted - looked)
    if (limit <= 0) return { ...blocks, capped: true }
    const page = { kind: 'held' as const, from, to, limit, pageBytes: PAGE_BYTES, after }
    const rows = await storage.listToolCalls(environmentId, page)
    for (const { payload } of rows) {
      const blocked = blockedBy(payload, policyId)
      if (blocked !== null) blocks.calls++
      if (blocked === 'unevaluated') blocks.unevaluated++
    }
    looked += rows.length
    const last = rows.at(-1)
    if (last === undefined) return blocks
    after = last
  }
}

/** The deciding policy stands first. Clients list the conditions that they could not evaluate. */
function blockedBy(payload: string, policyId: string): 'matched' | 'unevaluated' | null {
  if (!payload.includes(JSON.stringify(policyId))) return null
  const decision: unknown = JSON.parse(payload)
  if (!isObject(decision) || decision['action'] !== 'BLOCK') return null
  const { policyIds, failures } = decision
  if (!Array.isArray(policyIds) || policyIds[0] !== policyId) return null
  const failed = Array.isArray(failures) && failures.some((one) => isObject(one) && one['policyId'] === policyId)
  return failed ? 'unevaluated' : 'matched'
}
