import type { Policy, PolicyVersion } from '@tacho/contract/policies/policy.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import type { GrantRule } from '@tacho/contract/engine/words.ts'
import type { Simulation } from '@tacho/contract/policies/simulation.ts'
import type { PolicyRow, PolicyVersionRow, SimulationRow } from '../../storage/policies/policies.ts'
import type { SchemaFault } from '../web/schema-faults.ts'
import { isoOf, pick } from '../web/shown.ts'

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
