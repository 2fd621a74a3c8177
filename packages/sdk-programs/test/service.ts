/** The service that a program talks to: deployed policies, and what arrived of each run. */
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { json, startScriptedService } from '@tacho/sdk-conformance/scripted-service.ts'

export interface ArrivedEvent {
  readonly runId: string
  readonly agentName: string
  readonly eventType: string
  readonly label: string
  readonly timestamp: number
  readonly payload: Record<string, unknown>
}

export interface Service {
  /** Environment variables for the program. */
  readonly env: { TACHO_URL: string; TACHO_API_KEY: string }
  /** Blocks the tools of these names from now on. */
  block(...tools: string[]): void
  events(agentName?: string): ArrivedEvent[]
  /** Waits until `isThere` accepts the events of an agent. Returns their labels in order of arrival. */
  until(agentName: string, isThere: (events: ArrivedEvent[]) => boolean): Promise<ArrivedEvent[]>
  /** How often the configuration was requested. */
  requests(): number
}

export async function startService(t: TestContext): Promise<Service> {
  const service = await startScriptedService()
  t.after(service.close)
  let revision = 0
  function block(...tools: string[]) {
    revision++
    const [body, etag] = [bodyOf(revision, tools), `W/"${revision}"`]
    service.script('runtime-config', (response, request) =>
      request.headers['if-none-match'] === etag
        ? void response.writeHead(304, { etag }).end()
        : json(200, body, { etag })(response, request),
    )
  }
  const events = (agentName?: string) =>
    service
      .requests('events')
      .flatMap(({ json: batch }) => batch as ArrivedEvent[])
      .filter((event) => agentName === undefined || event.agentName === agentName)
      // On a slow machine, the first event of a run is late.
      .filter(({ label }) => label !== 'run started')
  block()
  return {
    env: { TACHO_URL: service.url, TACHO_API_KEY: 'key' },
    block,
    events,
    async until(agentName, isThere) {
      while (!isThere(events(agentName))) await sleep(20)
      return events(agentName)
    },
    requests: () => service.requests('runtime-config').length,
  }
}

function bodyOf(revision: number, tools: readonly string[]) {
  const policies = tools.map((tool) => ({
    policyId: `no-${tool}`,
    name: `No ${tool}`,
    description: null,
    version: '1',
    condition: `tool.name == "${tool}"`,
    severity: 'CRITICAL',
    action: 'BLOCK',
  }))
  return { revision: `${revision}`, prompts: [], policies }
}

/** How the run of an agent ended, if it did. */
export function outcomeOf(events: readonly ArrivedEvent[]): unknown {
  return events.find(({ eventType }) => eventType === 'SESSION_OUTCOME')?.payload['status']
}
