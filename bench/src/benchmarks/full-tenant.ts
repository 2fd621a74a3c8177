/** Fills a tenant so that its answers become as large as possible. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { PopulatedTenant } from '../../../packages/server/test/setup/route-samples.ts'
import type { startLoad } from '../load/start.ts'
import { newHistory } from '../load/shapes.ts'
import { BATCH_EVENTS } from '../load/events.ts'
import type { Plan } from '../plan.ts'
import type { Server } from '../server.ts'

const HISTORY_EVENTS = 50_000
const LONG_BATCHES = 10
const LARGE_PROMPTS = LIMITS.deployedPromptBytes / LIMITS.promptContentBytes - 1
const POLICIES = 100
const DIFFERENT_LINES = 2_000

export async function fillTenant(
  server: Server,
  load: ReturnType<typeof startLoad>,
  { workspaceId, environmentId, apiKey, ids }: PopulatedTenant,
  plan: Plan,
): Promise<void> {
  const headers = { 'x-api-key': apiKey }
  const isQuick = plan.size === 'quick'
  const requests = Math.min(plan.storedEvents, HISTORY_EVENTS) / BATCH_EVENTS
  const history = newHistory(requests, { ago: 20, days: 19 })
  await load.send({ url: server.url, headers }, { connections: 8, requests, send: { plot: history } })
  for (let batch = 0; batch < (isQuick ? 1 : LONG_BATCHES); batch++) {
    const body = JSON.stringify(longEvents(ids['runId'] ?? '', batch))
    const reply = await fetch(`${server.url}/openapi/v1/events/batch`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
    })
    if (!reply.ok) throw new Error(`A long run: ${reply.status} ${await reply.text()}`)
  }
  const workspace = `/workspaces/${workspaceId}`
  const lines = (version: number) =>
    Array.from({ length: DIFFERENT_LINES }, (_, line) => `Line ${line} of version ${version}. ${'x'.repeat(80)}`).join(
      '\n',
    )
  for (const version of [1, 2]) {
    // The second version is different, so that a comparison with the first is large.
    const content = { content: lines(version), follows: String(version) }
    await server.operator(`${workspace}/prompts/${ids['promptId']}/versions`, content)
  }
  const items: { kind: string; id: string; version: string }[] = []
  for (let n = 0; n < (isQuick ? 1 : LARGE_PROMPTS); n++) {
    const given = { name: `large ${n}`, content: '"'.repeat(LIMITS.promptContentBytes) }
    const { promptId } = await server.operator<{ promptId: string }>(`${workspace}/prompts`, given)
    items.push({ kind: 'prompt', id: promptId, version: '1' })
  }
  for (let n = 0; n < (isQuick ? 1 : POLICIES); n++) {
    const condition = Array.from({ length: 200 }, () => 'tool.name == "a"').join(' || ')
    const policyId = `large-${n}`
    await server.operator(`${workspace}/policies`, { policyId, condition, severity: 'LOW', action: 'WARN' })
    items.push({ kind: 'policy', id: policyId, version: '1' })
  }
  await server.operator(`/environments/${environmentId}/deployments`, { items })
}

function longEvents(runId: string, batch: number): object[] {
  const bytes = Math.floor(LIMITS.batchBytes / BATCH_EVENTS) - 600
  const at = Date.now() - 60_000
  return Array.from({ length: BATCH_EVENTS }, (_, n) => ({
    eventId: `long ${batch} ${n}`,
    clientId: 'loud',
    runId,
    agentName: 'Loud agent',
    eventType: 'TOOL_CALL',
    label: 'refund',
    timestamp: at + batch * BATCH_EVENTS + n,
    payload: { toolName: 'refund', error: 'it failed', input: { text: 'word '.repeat(Math.floor(bytes / 5)) } },
  }))
}
