import type { OperatorClient } from './operator-client.ts'
import { connect, type EnvironmentOptions } from './options.ts'

/** A client, and the id of the environment in the options. */
export async function connected(
  options: EnvironmentOptions,
): Promise<{ client: OperatorClient; environmentId: string }> {
  const { findEnvironment } = await import('../tenants/tenants.ts')
  const client = connect(options)
  const { id } = await findEnvironment(client, options.environment)
  return { client, environmentId: id }
}
