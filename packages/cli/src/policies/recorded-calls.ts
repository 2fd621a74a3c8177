/**
 * Compares conditions with an environment's labels and, by simulations, with its recorded calls: finds labels that no
 * rule gives, fields that no call has, and tools that were never called. Changes nothing in force.
 */
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import { type Fields, fieldsOf } from '@tacho/policy/language/fields.ts'
import { unknownLabels } from '@tacho/server/domain/policies/policy.ts'
import { Refused, type OperatorClient } from '../engine/operator-client.ts'
import { Stop } from '../engine/stop.ts'
import { printable } from '../engine/output.ts'
import { runSimulation } from './simulation.ts'

/** Days of calls to compare: enough for tools that are called rarely. */
const DAYS = 30
/** Longest wait for the comparison, because a deployment waits for it. */
const WAIT_MS = 15_000

export interface Compared {
  environmentId: string
  /** Environment in which the policy would be in force. */
  environment: string
  policy: string
  condition: string
  /** Labels that the environment will have; undefined: those that it has. */
  labels?: readonly ToolLabel[] | undefined
}

/** Run simulations one after the other: the server queues only a few. */
export async function warningsOf(
  client: OperatorClient,
  environmentId: string,
  condition: string,
  { until = Number.POSITIVE_INFINITY, labels }: { until?: number; labels?: readonly ToolLabel[] | undefined } = {},
): Promise<string[]> {
  const compiled = compileCondition(condition)
  if (!compiled.ok) return []
  const { condition: tree } = compiled
  const rules =
    tree.readsHistory || tree.names.has('tool.labels')
      ? (labels ?? (await client.readToolLabels({ params: { environmentId } })).labels)
      : []
  const label = unknownLabels(compiled.condition, rules)
  const ofLabels = label === null ? [] : [label]
  if (!readsCalls(fieldsOf(compiled.condition))) return ofLabels
  const body = { condition, action: 'ALLOW', severity: 'LOW', days: DAYS } as const
  const simulation = await runSimulation(client, environmentId, body, until)
  // The simulation knows only the labels that the environment has now.
  const warnings = (simulation.result?.warnings ?? []).filter(({ code }) => code !== 'unknown_label')
  return [...ofLabels, ...warnings.map(({ message }) => message)]
}

const readsCalls = ({ inputPaths, toolNames, variables }: Fields): boolean =>
  inputPaths.length > 0 || toolNames.length > 0 || variables.includes('tool.input')

/** Prints warnings on stderr and never stops: a policy may be deployed before the first call of its tool. */
export async function warnOf(client: OperatorClient, compared: readonly Compared[]): Promise<string[]> {
  const until = Date.now() + WAIT_MS
  const warnings: string[] = []
  for (const { environmentId, environment, policy, condition, labels } of compared) {
    const place = `${printable(policy)} in ${printable(environment)}`
    try {
      const messages = await warningsOf(client, environmentId, condition, { until, labels })
      warnings.push(...messages.map((message) => `${place}: ${printable(message)}`))
    } catch (error) {
      if (!(error instanceof Refused) && !(error instanceof Stop)) throw error
      warnings.push(`${place}: not compared with recorded calls: ${printable(error.message)}`)
    }
  }
  for (const warning of warnings) process.stderr.write(`Warning: ${warning}\n`)
  return warnings
}
