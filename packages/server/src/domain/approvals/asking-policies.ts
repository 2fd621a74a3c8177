/**
 * Which policies may have asked for a call. The SDKs of this version name all of them in a request, and so does the
 * client's recorded decision. Older SDKs name one: then each policy in force may have asked too, unless the names in
 * its condition show that it means other tools.
 */
import type { RuntimePolicy } from '@tacho/contract/policies/runtime-config.ts'
import { compileCondition, fieldsOf } from '@tacho/policy/compile.ts'

/** Null: any tool, as far as the names in a condition say. */
export function toolsOf(condition: string): readonly string[] | null {
  const compiled = compileCondition(condition)
  if (!compiled.ok) return null
  const { toolNames, variables } = fieldsOf(compiled.condition)
  // A condition that reads the server names tools without it.
  return toolNames.length === 0 || variables.includes('tool.server') ? null : toolNames
}

interface NamedTools {
  version: string
  tools: ReadonlySet<string>
}

type ReadConfiguration = (environmentId: string) => Promise<{ body: Buffer }>

export type PoliciesOfOtherTools = ReturnType<typeof createPoliciesOfOtherTools>

/** By the body of a configuration, which is compiled once for all requests. */
const compiled = new WeakMap<Buffer, NamedTools[]>()

/** Versions in force that cannot mean a tool, as `<policy id> <version>`. */
export function createPoliciesOfOtherTools(read: ReadConfiguration) {
  return async (environmentId: string, toolName: string): Promise<string[]> => {
    // If the configuration cannot be read, each policy may have asked.
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
