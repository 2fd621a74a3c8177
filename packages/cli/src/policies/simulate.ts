/** `tacho policies simulate`: simulates a policy or a draft condition. */
import type { PolicyAction, Severity } from '@tacho/contract/policies/runtime-config.ts'
import type { OnError } from '@tacho/contract/engine/words.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { connect, type EnvironmentOptions } from '../engine/options.ts'
import { printJson } from '../engine/output.ts'
import type { FlowQuestion, NewSimulation } from '@tacho/contract/policies/simulation.ts'
import type { ToolLabels } from '@tacho/policy/history/tool-labels.ts'
import { labelsOf } from './apply/read-manifest.ts'
import { wrongUsage } from '../engine/stop.ts'
import { findPlace } from '../tenants/tenants.ts'
import { findItem } from './versioned-item.ts'
import { readVersion } from './list.ts'
import { printFlow, printResult, runSimulation } from './simulation.ts'
import { assertCondition } from './check.ts'
import { sourceOf, type SourceOptions } from './write.ts'

interface SimulateOptions extends EnvironmentOptions, SourceOptions {
  number?: string
  severity?: Severity
  action?: PolicyAction
  onError?: OnError
  days: number
  labels?: string
}

export async function simulatePolicy(policyId: string | undefined, options: SimulateOptions): Promise<void> {
  const source = await sourceOf(options)
  if ((policyId === undefined) === (source === null)) {
    throw wrongUsage('Give a policy, or a condition with --file or --condition.')
  }
  const client = connect(options)
  const place = await findPlace(client, options.environment, '--environment')
  const namedPolicy =
    policyId === undefined ? null : await policyOf(client, place.workspace.id, policyId, options.number)
  const action = options.action ?? namedPolicy?.action
  if (action === undefined) throw wrongUsage('Give --action: what the policy does with a matching call.')
  const severity = options.severity ?? namedPolicy?.severity ?? 'MEDIUM'
  const condition = source ?? namedPolicy?.condition ?? ''
  const onError = options.onError ?? namedPolicy?.onError
  const labels = options.labels === undefined ? undefined : simulatedLabels(await labelsOf(options.labels))
  const body = { condition, action, severity, ...(onError && { onError }), ...labels, days: options.days }
  const simulation = await runSimulation(client, place.environment.id, body)
  if (options.json) printJson(simulation)
  else if (simulation.result) printResult(simulation, simulation.result)
}

interface FlowOptions extends EnvironmentOptions {
  from?: string
  fromLabel?: string
  to?: string
  toLabel?: string
  where?: string
  labels?: string
  days: number
}

/** `tacho policies flow`: finds values of one tool that reached another one, in recorded runs. */
export async function askFlow(options: FlowOptions): Promise<void> {
  const { from: fromTool, fromLabel, to: toTool, toLabel, where = 'true', days } = options
  if ((fromTool === undefined) === (fromLabel === undefined)) throw wrongUsage('Give --from or --from-label.')
  if ((toTool === undefined) === (toLabel === undefined)) throw wrongUsage('Give --to or --to-label.')
  assertCondition('--where', where)
  const labels = options.labels === undefined ? undefined : simulatedLabels(await labelsOf(options.labels))
  const client = connect(options)
  const { environment } = await findPlace(client, options.environment, '--environment')
  const flow = {
    ...(fromTool === undefined ? { fromLabel } : { fromTool }),
    ...(toTool === undefined ? { toLabel } : { toTool }),
  } as FlowQuestion
  const body = { condition: where, action: 'ALLOW', severity: 'LOW', onError: 'ignore', flow, ...labels, days } as const
  const simulation = await runSimulation(client, environment.id, body)
  if (options.json) printJson(simulation)
  else if (simulation.result) printFlow(simulation, simulation.result)
}

async function policyOf(client: OperatorClient, workspaceId: string, policyId: string, version: string | undefined) {
  const { newest } = await findItem(client, workspaceId, 'policy', policyId)
  return readVersion(client, { workspaceId, policyId }, version ?? newest)
}

export function simulatedLabels(labels: readonly ToolLabels[] | null): Pick<NewSimulation, 'toolLabels'> {
  return labels === null ? {} : { toolLabels: labels as NonNullable<NewSimulation['toolLabels']> }
}
