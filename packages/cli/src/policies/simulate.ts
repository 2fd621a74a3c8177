/** `tacho policies simulate`: simulates a policy or a draft condition. */
import type { PolicyAction, Severity } from '@tacho/contract/policies/runtime-config.ts'
import type { OnError } from '@tacho/contract/engine/words.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { connect, type EnvironmentOptions } from '../engine/options.ts'
import { printJson } from '../engine/output.ts'
import { wrongUsage } from '../engine/stop.ts'
import { findPlace } from '../tenants/tenants.ts'
import { findItem } from './versioned-item.ts'
import { readVersion } from './list.ts'
import { printResult, runSimulation } from './simulation.ts'
import { sourceOf, type SourceOptions } from './write.ts'

interface SimulateOptions extends EnvironmentOptions, SourceOptions {
  number?: string
  severity?: Severity
  action?: PolicyAction
  onError?: OnError
  days: number
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
  const body = { condition, action, severity, ...(onError && { onError }), days: options.days }
  const simulation = await runSimulation(client, place.environment.id, body)
  if (options.json) printJson(simulation)
  else if (simulation.result) printResult(simulation, simulation.result)
}

async function policyOf(client: OperatorClient, workspaceId: string, policyId: string, version: string | undefined) {
  const { newest } = await findItem(client, workspaceId, 'policy', policyId)
  return readVersion(client, { workspaceId, policyId }, version ?? newest)
}
