/** The server under test. */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { newApiKey, newOperatorToken } from '@tacho/server/domain/credential.ts'
import { buildProgram } from '../../scripts/build-program.mjs'
import { startProcess, type ServerProcess, type Usage } from './server-process.ts'

export interface Server extends ServerProcess {
  apiKey: string
  directory: string
  /** The current values of /metrics by name, without labels. */
  metrics(): Promise<Map<string, number>>
  usage(): Promise<Usage>
  /** The one that it creates in an empty store. */
  environmentId(): Promise<string>
  /** Sends a request to the operator API. Throws if it is refused. */
  operator<Body>(path: string, body?: unknown): Promise<Body>
}

/** Every store gets the same credentials, so that a second server can start on it. */
const API_KEY = newApiKey(randomBytes).text
const OPERATOR_TOKEN = newOperatorToken(randomBytes).text

export async function startServer(directory: string, flags: readonly string[] = []): Promise<Server> {
  mkdirSync(directory, { recursive: true })
  const program = path.join(await buildProgram(), 'main.js')
  const started = await startProcess({
    args: [program, 'serve', '--port', '0', '--data-dir', directory, ...flags],
    logFile: path.join(directory, 'log.jsonl'),
    variables: { TACHO_INIT_API_KEY: API_KEY, TACHO_INIT_OPERATOR_TOKEN: OPERATOR_TOKEN },
    readyPath: '/readyz',
  })
  const { url } = started

  async function metrics(): Promise<Map<string, number>> {
    const text = await (await fetch(`${url}/metrics`)).text()
    const lines = text.matchAll(/^(\w+)(?:\{[^}]*\})? (\S+)$/gm)
    return new Map([...lines].map(([, name = '', value]) => [name, Number(value)]))
  }

  async function operator<Body>(target: string, body?: unknown): Promise<Body> {
    const reply = await fetch(`${url}/operator/v1${target}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!reply.ok) throw new Error(`${target}: ${reply.status} ${await reply.text()}`)
    return (await reply.json()) as Body
  }

  async function environmentId(): Promise<string> {
    const workspaces = await operator<{ items: { id: string }[] }>('/workspaces')
    const of = `/workspaces/${workspaces.items[0]?.id}/environments`
    return (await operator<{ items: { id: string }[] }>(of)).items[0]?.id ?? ''
  }

  return {
    ...started,
    apiKey: API_KEY,
    directory,
    metrics,
    operator,
    environmentId,
    async usage() {
      const found = await metrics()
      const read = (name: string): number => found.get(name) ?? Number.NaN
      return {
        megabytes: read('process_resident_memory_bytes') / 1e6,
        cpuSeconds: read('process_cpu_seconds_total'),
      }
    },
  }
}

type Metrics = ReadonlyMap<string, number>

/** Mean events per commit between two reads of /metrics. */
export function eventsPerCommit(before: Metrics, after: Metrics): number {
  return grown('tacho_store_committed_events_total', before, after) / grown('tacho_store_commits_total', before, after)
}

/** Processor time per event between two reads, user and system. */
export function cpuUsPerEvent(before: Metrics, after: Metrics): number {
  const seconds = grown('process_cpu_seconds_total', before, after)
  return (seconds * 1e6) / grown('tacho_store_committed_events_total', before, after)
}

function grown(name: string, before: Metrics, after: Metrics): number {
  return (after.get(name) ?? Number.NaN) - (before.get(name) ?? Number.NaN)
}
