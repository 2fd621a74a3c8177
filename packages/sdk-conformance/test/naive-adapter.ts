/** An SDK that breaks rules in the ways that are most likely. */
import { createHash, randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

interface Client {
  baseUrl: string
  apiKey: string
  clientId: string
  queue: Record<string, unknown>[]
  configuration: { revision: string; prompts: { name: string; content: string }[]; policies: { policyId: string }[] }
}

type Request = { id: number; op: string; client: string } & Record<string, unknown>

const clients = new Map<string, Client>()

async function send({ baseUrl, apiKey }: Client, method: string, path: string, body?: unknown): Promise<Response> {
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' }
  return fetch(`${baseUrl}/openapi/v1${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

/** Sends the whole queue at once, repeatedly, with new ids. */
async function flush(client: Client): Promise<void> {
  for (let attempt = 0; attempt < 3 && client.queue.length > 0; attempt++) {
    const batch = client.queue.map((event) => ({ ...event, ...(attempt > 1 && { eventId: randomUUID() }) }))
    const reply = await send(client, 'POST', '/events/batch', batch).catch(() => null)
    const answer = (await reply?.json().catch(() => ({ success: true }))) as { success?: boolean } | undefined
    if (answer?.success) client.queue = []
  }
}

async function refresh(client: Client): Promise<void> {
  const reply = await send(client, 'GET', '/runtime-config')
  client.configuration = (await reply.json()) as Client['configuration']
}

/** Runs the tool unless the approval is REJECTED. */
async function call(client: Client, { toolName, input }: Request): Promise<{ ran: boolean }> {
  const inputHash = createHash('sha256').update(JSON.stringify(input)).digest('hex')
  const body = { clientRequestId: randomUUID(), toolName, input, inputHash, timeoutMs: 60_000 }
  const created = (await (await send(client, 'POST', '/firewall-approvals', body)).json()) as { id: string }
  for (let poll = 0; poll < 3; poll++) {
    const reply = await send(client, 'GET', `/firewall-approvals/${created.id}`)
    const { status } = (await reply.json()) as { status: string }
    if (status === 'REJECTED') return { ran: false }
    if (status !== 'PENDING') return { ran: true }
    await sleep(100)
  }
  return { ran: true }
}

const OPERATIONS: Record<string, (client: Client, request: Request) => unknown> = {
  record({ clientId, queue }, { event }) {
    const eventId = randomUUID()
    const required = { runId: 'run', agentName: 'naive', eventType: 'AGENT_STEP', label: 'step', timestamp: Date.now() }
    queue.push({ eventId, clientId, ...required, ...(event as object) })
    return eventId
  },
  flush,
  refresh,
  configuration: ({ configuration: { revision, prompts, policies } }) => ({
    revision,
    prompts: Object.fromEntries(prompts.map(({ name, content }) => [name, content])),
    policyIds: policies.map(({ policyId }) => policyId),
  }),
  call,
  changeInput: () => undefined,
  async report(client, { record }) {
    const named = () => ({ clientRecordId: randomUUID(), ...(record as object) })
    for (let attempt = 0; attempt < 4; attempt++) {
      const reply = await send(client, 'POST', '/issue-records', named()).catch(() => null)
      if (reply?.ok) return
    }
  },
  counters: () => ({ recorded: 1, accepted: 0, rejected: 0, dropped: 0, queued: 0 }),
  stop: ({ clientId }) => void clients.delete(clientId),
}

async function answer({ op, client: name, ...request }: Request): Promise<unknown> {
  if (op === 'start') {
    const { baseUrl, apiKey, clientId } = request as unknown as Client
    const configuration = { revision: '', prompts: [], policies: [] }
    clients.set(name, { baseUrl, apiKey, clientId, queue: [], configuration })
    if (process.argv.includes('--tell-key')) console.error(`starting with ${apiKey}`)
    return undefined
  }
  const client = clients.get(name)
  const operation = OPERATIONS[op]
  if (!client || !operation) throw new Error(op)
  return operation(client, { op, client: name, ...request } as Request)
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const request = JSON.parse(line) as Request
  answer(request).then(
    (result) => console.log(JSON.stringify({ id: request.id, ok: true, result: result ?? null })),
    (error: unknown) => console.log(JSON.stringify({ id: request.id, ok: false, error: String(error) })),
  )
})
