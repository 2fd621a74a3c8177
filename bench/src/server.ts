/** The server under test. */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { newApiKey, newOperatorToken } from '@tacho/server/domain/people/credential.ts'
import { buildProgram } from '../../scripts/build-program.mjs'
import { startProcess, type Usage } from './server-process.ts'

export type Server = Awaited<ReturnType<typeof startServer>>

/** All stores get the same credentials, so that a second server can start on one. */
const { id: API_KEY_ID, text: API_KEY } = newApiKey(randomBytes)
const OPERATOR_TOKEN = newOperatorToken(randomBytes).text
const OPERATOR_HEADERS = { authorization: `Bearer ${OPERATOR_TOKEN}` }
export { API_KEY_ID }

/** The tenant that a server creates at its first start. */
export const FIRST_TENANT = {
  initWorkspace: 'default',
  initEnvironment: 'development',
  initApiKey: API_KEY,
  initOperatorToken: OPERATOR_TOKEN,
  initOperatorEmail: null,
}

let built: Promise<string> | undefined

export async function startServer(directory: string, flags: readonly string[] = [], { probe = false } = {}) {
  mkdirSync(directory, { recursive: true })
  const program = path.join(await (built ??= buildProgram()), 'main.js')
  const started = await startProcess({
    args: [program, 'serve', '--port', '0', '--data-dir', directory, ...flags],
    logFile: path.join(directory, 'log.jsonl'),
    variables: { TACHO_DRAIN_DELAY: '0s', TACHO_INIT_API_KEY: API_KEY, TACHO_INIT_OPERATOR_TOKEN: OPERATOR_TOKEN },
    readyPath: '/readyz',
    probe,
  })
  const { url } = started

  /** The current values of /metrics by name, without labels. */
  async function metrics(): Promise<Map<string, number>> {
    const text = await (await fetch(`${url}/metrics`)).text()
    const lines = text.matchAll(/^(\w+)(?:\{[^}]*\})? (\S+)$/gm)
    return new Map([...lines].map(([, name = '', value]) => [name, Number(value)]))
  }

  /** Sends a request to the operator API. Throws if it is refused. */
  async function operator<Body>(target: string, body?: unknown): Promise<Body> {
    const reply = await fetch(`${url}/operator/v1${target}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...OPERATOR_HEADERS, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!reply.ok) throw new Error(`${target}: ${reply.status} ${await reply.text()}`)
    return (await reply.json()) as Body
  }

  /** Ids that the server creates in an empty store. */
  async function home(): Promise<{ workspaceId: string; environmentId: string }> {
    const firstOf = async (target: string) => (await operator<{ items: { id: string }[] }>(target)).items[0]?.id ?? ''
    const workspaceId = await firstOf('/workspaces')
    return { workspaceId, environmentId: await firstOf(`/workspaces/${workspaceId}/environments`) }
  }

  async function usage(): Promise<Usage> {
    const found = await metrics()
    const read = (name: string): number => found.get(name) ?? Number.NaN
    return { megabytes: read('process_resident_memory_bytes') / 1e6, cpuSeconds: read('process_cpu_seconds_total') }
  }

  return {
    ...started,
    headers: { 'x-api-key': API_KEY },
    operatorToken: OPERATOR_TOKEN,
    operatorHeaders: OPERATOR_HEADERS,
    directory,
    metrics,
    operator,
    home,
    usage,
  }
}

type Metrics = ReadonlyMap<string, number>

/** Between two readings of /metrics: processor time per event, user and system, and mean events per commit. */
export function spentBetween(before: Metrics, after: Metrics): { cpuUs: number; perCommit: number } {
  const events = grown('tacho_store_committed_events_total', before, after)
  return {
    cpuUs: (grown('process_cpu_seconds_total', before, after) * 1e6) / events,
    perCommit: events / grown('tacho_store_commits_total', before, after),
  }
}

function grown(name: string, before: Metrics, after: Metrics): number {
  return (after.get(name) ?? Number.NaN) - (before.get(name) ?? Number.NaN)
}
