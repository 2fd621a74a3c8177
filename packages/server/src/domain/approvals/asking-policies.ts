/**
 * Policies that may have asked for a call, and the calls that they blocked. SDKs of this version name all of them in a
 * request, and so does the client's recorded decision. Older SDKs name only one: then every policy in force may have
 * asked too, unless the tool names in its condition show that it is about other tools.
 */
import type { RuntimePolicy } from '@tacho/contract/policies/runtime-config.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import { fieldsOf } from '@tacho/policy/language/fields.ts'
import type { AskingPolicies } from '@tacho/contract/approvals/asking-policies.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import type { CallPlace } from '../../storage/policies/policies.ts'
import type { Storage } from '../../storage/storage.ts'

/** Tools to which the condition's names limit it. Null: any tool. */
export function toolsOf(condition: string): readonly string[] | null {
  const compiled = compileCondition(condition)
  if (!compiled.ok) return null
  const { toolNames, variables } = fieldsOf(compiled.condition)
  // A condition that reads the server may match tools that it does not name.
  return toolNames.length === 0 || variables.includes('tool.server') ? null : toolNames
}

interface NamedTools {
  version: string
  tools: ReadonlySet<string>
}

type ReadConfiguration = (environmentId: string) => Promise<{ body: Buffer }>

/** Compiled once for all requests, by the body of the configuration. */
const compiled = new WeakMap<Buffer, NamedTools[]>()

/** Versions in force that cannot match a tool, as `<policy id> <version>`. */
export function createPoliciesOfOtherTools(read: ReadConfiguration) {
  return async (environmentId: string, toolName: string): Promise<string[]> => {
    // If the configuration cannot be read, every policy may have asked.
    const served = await read(environmentId).catch(() => null)
    if (served === null) return []
    const known = compiled.get(served.body) ?? namedTools(served.body)
    compiled.set(served.body, known)
    return known.flatMap(({ version, tools }) => (tools.has(toolName) ? [] : [version]))
  }
}

function namedTools(body: Buffer): NamedTools[] {
  const { policies } = JSON.parse(body.toString()) as { policies: RuntimePolicy[] }
  return policies.flatMap(({ policyId, version, action, condition }) => {
    const tools = action === 'REQUIRE_APPROVAL' ? toolsOf(condition) : null
    return tools === null ? [] : [{ version: `${policyId} ${version}`, tools: new Set(tools) }]
  })
}

const CALLS_AT_ONCE = 500
const PAGE_BYTES = 2_097_152

/**
 * Counts the recorded calls of a period that a policy blocked, and how many of them only because its condition could
 * not be evaluated. `capped`: the count stopped at its limit.
 */
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

/** The deciding policy comes first. Clients list the conditions that they could not evaluate. */
function blockedBy(payload: string, policyId: string): 'matched' | 'unevaluated' | null {
  if (!payload.includes(JSON.stringify(policyId))) return null
  const decision: unknown = JSON.parse(payload)
  if (!isObject(decision) || decision['action'] !== 'BLOCK') return null
  const { policyIds, failures } = decision
  if (!Array.isArray(policyIds) || policyIds[0] !== policyId) return null
  const failed = Array.isArray(failures) && failures.some((one) => isObject(one) && one['policyId'] === policyId)
  return failed ? 'unevaluated' : 'matched'
}
