/** A real server with policies, and actions of its operators, for tests of guards. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { eventually } from '../../server/test/setup/eventually.ts'
import { operatorClient, Refused, type OperatorClient } from '../../cli/src/engine/operator-client.ts'
import { OPERATOR_TOKEN, startServer, type TestServer } from '../../cli/test/tacho.ts'

export interface PolicyOf {
  condition: string
  action: 'ALLOW' | 'WARN' | 'REQUIRE_APPROVAL' | 'BLOCK'
  severity?: 'LOW' | 'MEDIUM' | 'HIGH' | 'CRITICAL'
}

export interface GuardedServer extends TestServer {
  environmentId: string
  operator: OperatorClient
  /** Replaces the deployed policies, by name. */
  deploy: (policies: Record<string, PolicyOf>) => Promise<void>
  /** Decides the next approval that waits for this tool, and returns its id. */
  decideNext: (toolName: string, decision: 'APPROVED' | 'REJECTED', reason?: string) => Promise<string>
  /** The events of a type in the newest run that has one, with payloads. */
  events: (runId: string) => Promise<RecordedEvent[]>
  runs: () => Promise<{ runId: string; status: string; agent: { name: string } }[]>
}

export interface RecordedEvent {
  eventId: string
  eventType: string
  label: string
  payload: Record<string, unknown>
}

export async function startGuardedServer(): Promise<GuardedServer> {
  const server = await startServer()
  const operator = operatorClient(server.url, OPERATOR_TOKEN)
  const workspace = (await operator.listWorkspaces({})).items[0]
  assert.ok(workspace)
  const environment = (await operator.listEnvironments({ params: { workspaceId: workspace.id } })).items[0]
  assert.ok(environment)
  const environmentId = environment.id
  return {
    ...server,
    environmentId,
    operator,
    async deploy(policies) {
      const named = Object.entries(policies).map(([name, policy]) => [name, { severity: 'HIGH', ...policy }])
      const environments = { [environment.name]: { policies: Object.keys(policies) } }
      const file = path.join(server.directory, 'policies.yaml')
      writeFileSync(file, JSON.stringify({ policies: Object.fromEntries(named), environments }))
      const { code, stderr, stdout } = await server.tacho(['apply', '-f', file, '--yes'])
      assert.equal(code, 0, stderr + stdout)
    },
    async decideNext(toolName, decision, reason) {
      const { id } = await eventually(async () => {
        const { items } = await operator.listApprovals({ params: { environmentId }, query: { status: 'PENDING' } })
        return items.find((approval) => approval.toolName === toolName)
      }, `an approval of ${toolName}`)
      const params = { environmentId, approvalId: id }
      const body = { decision, ...(reason !== undefined && { reason }) }
      // The decision is refused if the input arrives in between. Then decide again, as a person would.
      const decide = () => operator.decideApproval({ params, body }).then(() => true, isOfChangedInput)
      await eventually(decide, `a decision on ${toolName}`)
      return id
    },
    async events(runId) {
      const { stdout, code, stderr } = await server.tacho(['runs', 'show', runId, '--full', '--json'])
      assert.equal(code, 0, stderr)
      return (JSON.parse(stdout) as { events: RecordedEvent[] }).events
    },
    async runs() {
      const { items } = await operator.listOperatorRuns({ params: { environmentId }, query: { limit: 100 } })
      return items
    },
  }
}

function isOfChangedInput(error: unknown): false {
  if (error instanceof Refused && error.message.includes('is not the one that was shown')) return false
  throw error
}
