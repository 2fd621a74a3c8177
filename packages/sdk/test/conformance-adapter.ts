/** The TypeScript SDK behind the conformance kit's protocol (docs/sdk/conformance.md). */
import { createInterface } from 'node:readline'
import { Tacho, ToolBlockedError, type GuardRules, type IssueReport, type Run, type RunHandle } from '../src/index.ts'

interface Client {
  tacho: Tacho
  run: Run
  /** Inputs of waiting calls, for `changeInput`. */
  inputs: Map<string, Record<string, unknown>>
}

interface Request {
  id: number
  op: string
  client: string
  [argument: string]: unknown
}

const clients = new Map<string, Client>()

async function called(
  { tacho, run }: Client,
  name: string,
  rules: GuardRules,
  act: (tool: (taken: Record<string, unknown>) => Promise<unknown>) => Promise<unknown>,
) {
  let ran = false
  let got: unknown
  const tool = tacho.guard((taken: Record<string, unknown>) => ([ran, got] = [true, taken]), { name, ...rules })
  try {
    const output = await run.within(() => act(tool))
    return { ran, input: got, output }
  } catch (error) {
    if (error instanceof ToolBlockedError) return { ran, code: error.code, approvalId: error.approvalId }
    throw error
  }
}

const OPERATIONS: Record<string, (client: Client, request: Request) => unknown> = {
  record({ run }, { event }) {
    type Given = { eventType?: string; label?: string; payload?: Record<string, unknown> }
    const { eventType = 'AGENT_STEP', label = 'step', payload } = event as Given
    return run.record({ type: eventType, label, payload })
  },
  score({ run, tacho }, { score }) {
    const { runId, name, value, ...given } = score as { runId?: string; name: string; value: number }
    return runId === undefined ? run.score(name, value, given) : tacho.score(runId, name, value, given)
  },
  flush: ({ tacho }, { timeoutMs }) => tacho.flush(timeoutMs as number),
  refresh: ({ tacho }) => tacho.configuration.refresh(),
  configuration({ tacho }) {
    const { current } = tacho.configuration.state
    return {
      revision: current?.revision ?? null,
      prompts: Object.fromEntries(current?.prompts.map(({ name, content }) => [name, content]) ?? []),
      policyIds: current?.policies.map(({ policyId }) => policyId) ?? [],
    }
  },
  call({ run, inputs, ...client }, { callId, toolName, input, approvalTimeoutMs, approvalWaitMs }) {
    const given = input as Record<string, unknown>
    inputs.set(callId as string, given)
    const rules = {
      approvalTimeoutMs: approvalTimeoutMs as number,
      ...(approvalWaitMs !== undefined && { approvalWaitMs: approvalWaitMs as number }),
    }
    return called({ run, inputs, ...client }, toolName as string, rules, (tool) => tool(given))
  },
  handle: ({ run }) => run.toHandle(),
  proceed: (client, { approvalId, toolName }) =>
    called(client, toolName as string, {}, (tool) => client.tacho.continueCall(approvalId as string, tool)),
  changeInput({ inputs }, { callId, input }) {
    const given = inputs.get(callId as string) ?? {}
    for (const key of Object.keys(given)) delete given[key]
    Object.assign(given, input)
  },
  report: ({ tacho, run }, { record }) => run.within(() => tacho.reportIssue(record as IssueReport)),
  counters({ tacho }) {
    const { recorded, accepted, rejected, dropped, queued } = tacho.counters()
    const total = Object.values(dropped).reduce((sum, count) => sum + count, 0)
    return { recorded, accepted, rejected, dropped: total, queued }
  },
  async stop({ tacho }, { client }) {
    clients.delete(client)
    await tacho.shutdown(0)
  },
}

function start({ client, handle, ...given }: Request): void {
  const { baseUrl, apiKey, clientId, release } = given as Record<string, string>
  const options = { baseUrl, apiKey, clientId, release }
  const guard = { loop: false } as const
  // Diagnostics go to stderr, where the kit searches for the key.
  const tacho = new Tacho({ ...options, guard, flushIntervalMs: 50, onDiagnostic: (said) => console.error(said) })
  const run = handle ? tacho.resume(handle as RunHandle) : tacho.startRun({ agentName: 'conformance' })
  clients.set(client, { tacho, run, inputs: new Map() })
}

async function answer(request: Request): Promise<unknown> {
  if (request.op === 'start') return start(request)
  const client = clients.get(request.client)
  const operation = Object.hasOwn(OPERATIONS, request.op) ? OPERATIONS[request.op] : undefined
  if (!client || !operation) throw new Error(`There is no client or operation for ${request.op}.`)
  return operation(client, request)
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const request = JSON.parse(line) as Request
  answer(request).then(
    (result) => console.log(JSON.stringify({ id: request.id, ok: true, result: result ?? null })),
    (error: unknown) => console.log(JSON.stringify({ id: request.id, ok: false, error: String(error) })),
  )
})
