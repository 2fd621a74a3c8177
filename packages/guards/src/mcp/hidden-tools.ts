/** Decides which tools are hidden from a client. */
import { compileCondition } from '@tacho/policy/compile.ts'
import { decide, type Policy } from '@tacho/policy/decide.ts'
import { fieldsOf } from '@tacho/policy/language/fields.ts'
import type { VariableName } from '@tacho/policy/language/variables.ts'

/** Variables with the same value for every call of a tool in a connection. */
const FIXED: ReadonlySet<VariableName> = new Set(['tool.name', 'tool.server', 'agent.id', 'agent.name'])

export interface Agent {
  readonly id: string
  readonly name: string
  /** The server that has the agent's tools. */
  readonly server?: string | undefined
}

/**
 * A tool is hidden if a policy blocks each of its calls: its action is BLOCK, and its condition matches and reads only the
 * tool's name, its server and the agent. A condition that also reads the input, the time or the run does not hide the tool.
 */
export function toolHider(policies: readonly Policy[], agent: Agent): (toolName: string) => boolean {
  const fixed = policies.filter(({ condition }) => {
    const compiled = compileCondition(condition)
    return compiled.ok && fieldsOf(compiled.condition).variables.every((name) => FIXED.has(name))
  })
  return (toolName) =>
    fixed.length > 0 &&
    decide(fixed, { tool: { name: toolName, server: agent.server }, agent, now: 0 }).action === 'BLOCK'
}
