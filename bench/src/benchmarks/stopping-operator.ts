/** The operator in these benchmarks: publishes policies, and stops the agent of all clients. */
import type { WaitingAnswer } from '../load/waiting.ts'
import type { Server } from '../server.ts'

/** Asserts that each client decided by the new configuration, with the right result. */
export function assertAll(
  decided: WaitingAnswer['decided'],
  count: number,
  isBlocked: boolean,
): WaitingAnswer['decided'] {
  const right = decided.filter((each) => each.isBlocked === isBlocked)
  if (right.length < count) throw new Error(`${right.length} of ${count} clients decided by the new configuration`)
  return right
}

export const now = (): number => performance.timeOrigin + performance.now()

export type Operator = Awaited<ReturnType<typeof operatorOf>>

/** The operator's actions. Each returns the time of its request. */
export async function operatorOf(server: Server) {
  const { workspaceId, environmentId } = await server.home()
  const policies = `/workspaces/${workspaceId}/policies`
  const environment = `/environments/${environmentId}`
  const version = (limit: number) => ({
    condition: `tool.name == "refund" && tool.input.amount > ${limit}.0`,
    severity: 'HIGH',
    action: 'BLOCK',
  })
  await server.operator(policies, { policyId: 'refunds', ...version(100) })
  let limit = 100
  let stopId = ''
  return {
    async deploy(): Promise<number> {
      await server.operator(`${policies}/refunds/versions`, version(++limit))
      const begun = now()
      await server.operator(`${environment}/deployments`, {
        items: [{ kind: 'policy', id: 'refunds', version: String(limit - 99) }],
      })
      return begun
    },
    async stop(): Promise<number> {
      const begun = now()
      const stop = { scope: 'agent', target: 'support', reason: 'A benchmark' }
      stopId = (await server.operator<{ id: string }>(`${environment}/stops`, stop)).id
      return begun
    },
    async resume(): Promise<number> {
      const begun = now()
      await server.operator(`${environment}/stops/${stopId}/resume`, {})
      return begun
    },
    /** The revision of the configuration that clients get now. */
    async revision(): Promise<string> {
      const reply = await fetch(`${server.url}/openapi/v1/runtime-config`, { headers: server.headers })
      return ((await reply.json()) as { revision: string }).revision
    },
    /** The number of clients that confirmed the newest stop. */
    async confirmed(): Promise<number> {
      return (await server.operator<{ clients: { confirmed: number } }>(`${environment}/stops`)).clients.confirmed
    },
  }
}
