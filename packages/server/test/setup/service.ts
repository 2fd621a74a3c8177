/** A real server on a temporary store, called over HTTP like any client does. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Pool, type Dispatcher } from 'undici'
import type { BatchResult, EventPage } from '@tacho/contract/record/event.ts'
import type { CreatedApiKey } from '@tacho/contract/tenants/api-key.ts'
import type { Scope } from '@tacho/contract/web/route.ts'
import type { RunDetail, RunPage } from '@tacho/contract/runs/run.ts'
import { readConfig, requestMemory, type Flags, type RequestMemory } from '../../src/config/config.ts'
import { newApiKey, newOperatorToken } from '../../src/domain/people/credential.ts'
import { startServer } from './start-server.ts'

/** Headers that `fetch` adds. */
const LIKE_FETCH = { accept: '*/*', 'user-agent': 'node' }

export interface Answer<Body = unknown> {
  status: number
  headers: Headers
  text: string
  /** The parsed body; null if there is none. */
  body: Body
}

export interface Request {
  method?: string
  headers?: Record<string, string>
  /** A text or buffer is sent unchanged, everything else as JSON. */
  body?: unknown
}

export interface Service {
  url: string
  directory: string
  apiKey: string
  operatorToken: string
  environmentId: string
  /** Sends a request to any path, without a key. Follows no redirects. The text of a stream is empty. */
  call<Body = unknown>(path: string, request?: Request): Promise<Answer<Body>>
  /** Sends a request to the public API, by default with the first key. */
  api<Body = unknown>(path: string, request?: Request): Promise<Answer<Body>>
  /** Sends a request to the operator API. */
  operator<Body = unknown>(path: string, request?: Request): Promise<Answer<Body>>
  record(events: unknown, key?: string): Promise<Answer<BatchResult>>
  /** Creates a key of another environment or with other scopes. */
  newKey(given: {
    scopes: Scope[]
    name?: string
    environmentId?: string
    requestsPerSecond?: number
    allowedAddresses?: string[]
  }): Promise<string>
  /** Creates another workspace with one environment. */
  newTenant(name: string): Promise<{ workspaceId: string; environmentId: string }>
  /** Stops the server; the store stays until `close`. */
  stop(): Promise<void>
  close(): Promise<void>
}

export type { BatchResult, EventPage, RunDetail, RunPage }

type Start = typeof startServer

export async function startService(
  flags: Flags = {},
  now: () => number = Date.now,
  variables: Record<string, string> = {},
  memory: Partial<RequestMemory> = {},
  start: Start = startServer,
): Promise<Service> {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-test-'))
  // A second server on the store of another gets the credentials of the first.
  const apiKey = variables['TACHO_INIT_API_KEY'] ?? newApiKey(randomBytes).text
  const operatorToken = variables['TACHO_INIT_OPERATOR_TOKEN'] ?? newOperatorToken(randomBytes).text
  const read = readConfig(
    { port: '0', dataDir: directory, logLevel: 'silent', operatorRateLimit: '100000', ...flags },
    { TACHO_INIT_API_KEY: apiKey, TACHO_INIT_OPERATOR_TOKEN: operatorToken, ...variables },
  )
  assert.ok(read.ok, read.ok ? '' : read.faults.join('\n'))
  const server = await start(read.config, { now, memory: { ...requestMemory(), ...memory } })
  // This client takes a third of the processor time of `fetch`, which matters for tests with thousands of requests.
  const client = new Pool(server.url)

  const call: Service['call'] = async <Body>(target: string, { method, headers = {}, body }: Request = {}) => {
    const raw = body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
    const { pathname, search } = new URL(target, server.url)
    const reply = await client.request({
      path: pathname + search,
      method: (method ?? (body === undefined ? 'GET' : 'POST')) as Dispatcher.HttpMethod,
      headers: { ...LIKE_FETCH, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: raw ? (body as string) : JSON.stringify(body) }),
    })
    const { 'content-type': type, 'content-length': length } = reply.headers
    // A stream without a length never ends.
    const isStream = String(type).startsWith('text/event-stream') && length === undefined
    if (isStream) reply.body.on('error', () => undefined).destroy()
    const text = isStream ? '' : await reply.body.text()
    const received = new Headers()
    for (const [name, values = []] of Object.entries(reply.headers)) {
      for (const value of [values].flat()) received.append(name, value)
    }
    const json = /\bjson\b/.test(received.get('content-type') ?? '') && text !== ''
    return { status: reply.statusCode, headers: received, text, body: (json ? JSON.parse(text) : null) as Body }
  }
  const api: Service['api'] = (target, { headers, ...rest } = {}) =>
    call(`/openapi/v1${target}`, { ...rest, headers: { 'x-api-key': apiKey, ...headers } })
  const operator: Service['operator'] = (target, { headers, ...rest } = {}) =>
    call(`/operator/v1${target}`, { ...rest, headers: { authorization: `Bearer ${operatorToken}`, ...headers } })

  interface Named {
    id: string
  }
  const [workspace] = (await operator<{ items: Named[] }>('/workspaces')).body.items
  const environments = await operator<{ items: Named[] }>(`/workspaces/${workspace?.id}/environments`)
  const environmentId = environments.body.items[0]?.id ?? ''

  return {
    url: server.url,
    directory,
    apiKey,
    operatorToken,
    environmentId,
    call,
    api,
    operator,
    record: (events, key = apiKey) => api('/events/batch', { body: events, headers: { 'x-api-key': key } }),
    async newKey({ environmentId: of = environmentId, ...given }) {
      const { status, body } = await operator<CreatedApiKey>(`/environments/${of}/keys`, {
        body: { name: 'k', ...given },
      })
      assert.equal(status, 201)
      return body.key
    },
    async newTenant(name) {
      const { status, body: made } = await operator<Named>('/workspaces', { body: { name } })
      assert.equal(status, 201, `a workspace named ${name}`)
      const { body } = await operator<Named>(`/workspaces/${made.id}/environments`, { body: { name: 'production' } })
      return { workspaceId: made.id, environmentId: body.id }
    },
    stop: () => server.close(),
    async close() {
      await server.close()
      await client.destroy()
      rmSync(directory, { recursive: true })
    },
  }
}

/** Starts the server from its sources even if there is a build, for a test that changes a limit. */
export async function startFromSources(flags?: Flags): Promise<Service> {
  const { startServer: start } = await import('../../src/process/main.ts')
  return startService(flags, undefined, undefined, undefined, start)
}

let count = 0

/** A valid event with the current time and a new id. */
export function event(change: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    eventId: `event-${++count}`,
    clientId: 'client',
    runId: 'run',
    agentName: 'agent',
    eventType: 'AGENT_STEP',
    label: 'step',
    timestamp: Date.now(),
    ...change,
  }
}
