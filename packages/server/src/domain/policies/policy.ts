import type { Policy, PolicyVersion } from '@tacho/contract/policies/policy.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import type { Condition } from '@tacho/policy/evaluation/condition.ts'
import { HISTORY_LABELS } from '@tacho/policy/history/run-history.ts'
import { childrenOf, dottedName, literalText, loopOf, type Node } from '@tacho/policy/language/syntax.ts'
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import type { GrantRule } from '@tacho/contract/engine/words.ts'
import type { Simulation } from '@tacho/contract/policies/simulation.ts'
import type { PolicyRow, PolicyVersionRow, SimulationRow } from '../../storage/policies/policies.ts'
import type { SchemaFault } from '../web/schema-faults.ts'
import { isoOf, pick } from '../web/shown.ts'
import { nearestName } from '../web/text.ts'

export function toPolicy(row: PolicyRow): Policy {
  const { id: policyId, workspaceId, newest } = row
  return { policyId, workspaceId, ...isoOf(row, 'createdAt', 'archivedAt'), newest: toPolicyVersion(newest) }
}

export function toPolicyVersion(row: PolicyVersionRow): PolicyVersion {
  return {
    ...pick(row, 'policyId', 'name', 'description', 'condition', 'severity', 'action', 'onError', 'author', 'note'),
    approvers: approversOf(row),
    grants: row.grants ?? grantsBySeverity(row.severity),
    template: row.template,
    version: String(row.number),
    ...isoOf(row, 'createdAt', 'importedAt'),
    ...(row.damaged && { damaged: true as const }),
  }
}

/** Number of people who must approve. */
export const approversOf = ({ approvers }: Pick<PolicyVersionRow, 'approvers'>) => (approvers === 2 ? 2 : 1)

export const grantsBySeverity = (severity: string): GrantRule => (severity === 'CRITICAL' ? 'never' : 'allow')

export function conditionFaults(condition: string, ofLabels = false): SchemaFault[] {
  const compiled = compileCondition(condition, ofLabels)
  if (compiled.ok) return []
  return compiled.faults.map(({ message, position: { line, column } }) => ({
    path: '/condition',
    message: `${line}:${column}: ${message}`,
  }))
}

export function toSimulation(row: SimulationRow): Simulation {
  return { ...row, ...isoOf(row, 'createdAt', 'endedAt') }
}

const LABELS_NAMED = 3

/**
 * A warning about labels that a condition names and no rule gives: such a part of a condition never matches. Null: every
 * label has a rule. Clients can also set labels in code, so this refuses nothing.
 */
export function unknownLabels({ root }: Pick<Condition, 'root'>, rules: readonly ToolLabel[]): string | null {
  const labels = rules.flatMap(({ output = [], does = [] }) => [...output, ...does])
  const known = new Set<string>([...labels, ...Object.values(HISTORY_LABELS)])
  const unknown = [...namedLabels(root)].filter((label) => !known.has(label))
  if (unknown.length === 0) return null
  const names = unknown.slice(0, LABELS_NAMED).join(', ')
  const near = unknown.map((label) => nearestName(label, [...known])).find((name) => name !== null)
  const hint = near === undefined ? '; only a client that sets labels in code can match' : `; did you mean ${near}?`
  return `No rule gives the ${unknown.length === 1 ? 'label' : 'labels'} ${names}${hint}`
}

/** The labels in `"money" in tool.labels`, and in `origin(x).exists(o, o in ["user", "ours"])`. */
function namedLabels(node: Node, loopNames: readonly string[] = [], found = new Set<string>()): Set<string> {
  if (node.kind === 'binary' && ['in', '=='].includes(node.operator)) {
    const { left, right } = node
    const isOne = node.operator === 'in' ? isLabels(right) : loopNames.includes(dottedName(right) ?? '')
    const isLoop = loopNames.includes(dottedName(left) ?? '')
    const listed = isOne ? [left] : isLoop ? (right.kind === 'list' ? right.elements : [right]) : []
    for (const text of listed.map(literalText)) if (text !== undefined) found.add(text)
  }
  const isLoop = node.kind === 'method' && loopOf(node) !== undefined && isLabels(node.receiver)
  const loopName = isLoop ? dottedName(node.values[0] ?? node) : undefined
  const inner = loopName === undefined ? loopNames : [...loopNames, loopName]
  for (const child of childrenOf(node)) namedLabels(child, inner, found)
  return found
}

/** `tool.labels`, `run.labels`, the labels of an earlier call in a loop (`c.labels`), and `origin(…)`. */
function isLabels(node: Node): boolean {
  if (node.kind === 'call') return node.name === 'origin'
  return node.kind === 'field' && node.key === 'labels' && node.object.kind === 'name'
}
