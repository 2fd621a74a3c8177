/**
 * Labels of tools and of their outputs, which a team defines: such as `untrusted` (written by strangers), `private`, `external`
 * (reaches people or systems outside), `destructive` and `money`.
 */
import { compiled } from '../compiled.ts'
import type { Preparation } from '../evaluation/value.ts'
import { evaluate } from '../evaluate.ts'
import { toolNameOf } from '../language/tool-name.ts'
import type { Facts } from '../language/variables.ts'
import { HISTORY_LABELS } from './run-history.ts'

/** A rule. A tool gets the labels of all rules that match. */
export interface ToolLabels {
  /** Name of the tool, with or without its MCP server; one `*` stands for any characters. */
  readonly tool: string
  /** Labels of its output. */
  readonly output?: readonly string[] | undefined
  /** Labels of what it does. */
  readonly does?: readonly string[] | undefined
  /** The rule holds only where this condition on `tool.input` and `tool.output` is true. */
  readonly when?: string | undefined
}

export interface LabelsOfCall {
  readonly does: readonly string[]
  readonly output: readonly string[]
}

/**
 * The labels of a call. Before it runs, `tool.output` is not known, and neither are the labels that depend on it. A rule whose
 * condition cannot be evaluated gives the label `unknown` instead of its own.
 */
export function labelsOfCall(rules: readonly ToolLabels[], facts: Facts): LabelsOfCall {
  const does = new Set<string>()
  const output = new Set<string>()
  const names = namesOf(facts.tool)
  for (const rule of rules) {
    if (!names.some((name) => isNamed(rule.tool, name))) continue
    const holds = rule.when === undefined ? true : evaluated(rule.when, facts)
    if (holds === false) continue
    for (const label of rule.does ?? []) does.add(holds ? label : HISTORY_LABELS.unknown)
    for (const label of rule.output ?? []) output.add(holds ? label : HISTORY_LABELS.unknown)
  }
  return { does: [...does].toSorted(), output: [...output] }
}

/** Whether a rule is about this tool, in either spelling. */
export function namesTool({ tool }: Pick<ToolLabels, 'tool'>, called: Pick<Facts['tool'], 'name' | 'server'>): boolean {
  return namesOf(called).some((name) => isNamed(tool, name))
}

/** Conditions that cannot be used: their labels are always `unknown`. */
export function faultsOfLabels(rules: readonly ToolLabels[]): string[] {
  return rules.flatMap(({ tool, when }) => {
    const result = when === undefined ? undefined : compiled(when, true)
    const [fault] = result?.ok === false ? result.faults : []
    return fault ? [`${tool}: line ${fault.position.line}, column ${fault.position.column}: ${fault.message}`] : []
  })
}

/** Both spellings of a tool of an MCP server. */
function namesOf({ name, server }: Pick<Facts['tool'], 'name' | 'server'>): string[] {
  const parts = toolNameOf(name, server ?? '')
  return parts.server === '' ? [name] : [`mcp__${parts.server}__${parts.own}`, parts.own]
}

/** Undefined if it cannot be evaluated. */
function evaluated(source: string, facts: Facts): boolean | undefined {
  const result = compiled(source, true)
  if (!result.ok) return undefined
  const outcome = evaluate(result.condition, facts)
  return outcome.ok ? outcome.matched : undefined
}

function isNamed(pattern: string, name: string): boolean {
  // A rule in code may lack a tool.
  const [start = '', end] = String(pattern).split('*')
  if (end === undefined) return name === pattern
  return name.length >= start.length + end.length && name.startsWith(start) && name.endsWith(end)
}

/** A function that prepares a history for the next decision by these policies. Call it when a call has ended. */
export function preparedFor(policies: readonly { readonly condition: string }[]): Preparation {
  let all: readonly Preparation[] | undefined
  return (history) => {
    all ??= policies.flatMap(({ condition }) => {
      const result = compiled(condition)
      return result.ok ? result.condition.preparations : []
    })
    for (const prepare of all) {
      try {
        prepare(history)
      } catch {
        // The decision runs out of steps too.
      }
    }
  }
}

/** Whether a policy needs the past of the run. */
export function readHistory(policies: readonly { readonly condition: string }[]): boolean {
  return policies.some(({ condition }) => {
    const result = compiled(condition)
    return result.ok && result.condition.readsHistory
  })
}
