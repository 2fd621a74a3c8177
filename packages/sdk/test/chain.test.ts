/** End to end on both engines: agent, service, and a person at a terminal. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { EventRow } from '@tacho/contract/record/event.ts'
import type { ApprovalCard, ApprovalDetail } from '@tacho/contract/approvals/operator-approval.ts'
import type { Run } from '@tacho/contract/runs/run.ts'
import { API_KEY, ended, OPERATOR_TOKEN, startServer, type TestServer } from '../../cli/test/tacho.ts'
import { testDatabases, type TestDatabases } from '../../server/test/setup/postgres-server.ts'
import { Tacho, ToolBlockedError, type BlockCode, type TachoOptions } from '../src/index.ts'

const AGENT = { agentId: 'support', agentName: 'Support agent' }

interface Items<Item> {
  items: Item[]
}

function chain(start: () => Promise<TestServer>) {
  let server: TestServer
  let environment: string
  let isStopped = false
  before(async () => {
    server = await start()
    const workspaces = await operator<Items<{ id: string }>>('/workspaces')
    const environments = await operator<Items<{ id: string }>>(`/workspaces/${workspaces.items[0]?.id}/environments`)
    environment = `/environments/${environments.items[0]?.id}`
    const condition = 'tool.name == "transfer" && tool.input.amount > 100.0'
    const create = ['policies', 'create', 'transfers', '--condition', condition, '--severity', 'HIGH']
    await text(...create, '--action', 'REQUIRE_APPROVAL')
    await text('policies', 'deploy', 'transfers')
  })
  after(() => (isStopped ? undefined : server.stop()))

  async function text(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await server.tacho(args)
    assert.equal(code, 0, stderr)
    return stdout
  }

  /** Calls the operator API. The answers are those of a command, without the time that a command takes to start. */
  async function operator<Body>(path: string, body?: object): Promise<Body> {
    const reply = await fetch(`${server.url}/operator/v1${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    assert.ok(reply.ok, `${path}: ${reply.status}`)
    return (await reply.json()) as Body
  }

  const decide = (id: string, decision: 'APPROVED' | 'REJECTED') =>
    operator(`${environment}/approvals/${id}/decision`, { decision })

  /** The id of the pending approval for this tool, once its input is visible. */
  async function pending(toolName: string): Promise<string> {
    for (;;) {
      const list = `${environment}/approvals?status=PENDING&toolName=${toolName}`
      const { items } = await operator<Items<ApprovalCard>>(list)
      const id = items[0]?.id
      const detail = id && (await operator<ApprovalDetail>(`${environment}/approvals/${id}`))
      if (detail && detail.inputPreview !== null) return detail.id
      await sleep(20)
    }
  }

  async function eventTypes(runId: string): Promise<string[]> {
    const { items } = await operator<Items<EventRow>>(`${environment}/runs/${runId}/events`)
    return items.map(({ eventType }) => eventType)
  }

  // On a slow machine, the client must not give up waiting for its policies.
  const guard = { configurationWaitMs: 60_000 }
  const client = (options: TachoOptions = {}) =>
    new Tacho({ apiKey: API_KEY, baseUrl: server.url, ...AGENT, guard, onDiagnostic: () => undefined, ...options })

  /** Calls a guarded transfer and returns its result. `meanwhile` runs while the approval is pending. */
  async function transfer(
    meanwhile: ((id: string, input: { amount: number }) => Promise<unknown>) | null,
    approvalTimeoutMs = 30_000,
  ): Promise<{ got: unknown[]; code: BlockCode | undefined; runId: string }> {
    const tacho = client()
    const got: unknown[] = []
    const call = tacho.guard((given: { amount: number }) => void got.push(given), {
      name: 'transfer',
      approvalTimeoutMs,
    })
    const run = tacho.startRun()
    const input = { amount: 500 }
    const calling = run
      .within(() => call(input))
      .then(
        () => undefined,
        (error: unknown) => {
          assert.ok(error instanceof ToolBlockedError, String(error))
          return error.code
        },
      )
    // Wait for the pending approval only if `meanwhile` needs it: otherwise it may expire before this test sees it.
    if (meanwhile) await meanwhile(await pending('transfer'), input)
    const code = await calling
    run.end()
    await tacho.shutdown(isStopped ? 1_000 : 60_000)
    return { got, code, runId: run.runId }
  }

  test('the example agent waits until a person sees the input and approves; the timeline shows every step', async () => {
    const example = fileURLToPath(new URL('../../../examples/agents/guarded-refund.ts', import.meta.url))
    const env = { ...process.env, TACHO_URL: server.url, TACHO_API_KEY: API_KEY }
    const agent = spawn(process.execPath, [example, '250'], { env })
    const end = ended(agent)
    const id = await pending('refund')
    const shown = await text('approvals', 'show', id)
    assert.match(shown, /^PENDING +Refund 250 · 1007 +\(refund\)\n/)
    assert.match(shown, /\{"order":"1007","amount":250\}/)
    await text('approvals', 'approve', id, '--reason', 'known customer')
    assert.deepEqual(await end, { code: 0, stdout: 'Refunded 250 for order 1007.\n', stderr: '' })
    assert.match(await text('approvals', 'show', id), /refund \(output\)  The tool ran with the approved input/)
    const { items } = JSON.parse(await text('runs', 'list', '--json')) as { items: Run[] }
    const run = items.find(({ agent: { name } }) => name === 'Support agent')
    assert.equal(run?.status, 'COMPLETED')
    const timeline = await text('runs', 'show', run?.runId ?? '')
    assert.match(timeline, /USER_INPUT[\s\S]*POLICY_DECISION[\s\S]*TOOL_CALL[\s\S]*SESSION_OUTCOME/)
  })

  test('a rejected call does not run, and creates an issue', async () => {
    const { got, code, runId } = await transfer((id) => decide(id, 'REJECTED'))
    assert.deepEqual([got, code], [[], 'approval_rejected'])
    assert.ok(!(await eventTypes(runId)).includes('TOOL_CALL'))
    const issues = `${environment}/issues?detectionType=TOOL_BLOCKED&runId=${runId}`
    while ((await operator<Items<unknown>>(issues)).items.length === 0) await sleep(20)
  })

  test('an approved call runs', async () => {
    const { got, code, runId } = await transfer((id) => decide(id, 'APPROVED'))
    assert.deepEqual([got, code], [[{ amount: 500 }], undefined])
    // On a slow machine, an extra first event reports the start of the run.
    const types = (await eventTypes(runId)).filter((type) => type !== 'AGENT_STEP')
    assert.deepEqual(types, ['POLICY_DECISION', 'TOOL_START', 'TOOL_CALL', 'SESSION_OUTCOME'])
  })

  test('a call whose input changed while a person decided runs with the approved copy', async () => {
    const { got, code } = await transfer((id, input) => {
      input.amount = 5_000_000
      return decide(id, 'APPROVED')
    })
    assert.deepEqual([got, code], [[{ amount: 500 }], undefined])
  })

  test('a call without a decision in time does not run', async () => {
    const { got, code } = await transfer(null, 3_000)
    assert.deepEqual(got, [])
    // The client's deadline and the service's deadline may pass in either order.
    assert.match(String(code), /^approval_(timeout|expired)$/)
  })

  // Last, because it stops the service.
  test('a call does not run if the service stops during the approval', async () => {
    const stop = () => {
      isStopped = true
      return server.stop()
    }
    const { got, code } = await transfer(stop, 10_000)
    assert.deepEqual([got, code], [[], 'approval_timeout'])
  })
}

describe('on the embedded store', () => chain(() => startServer()))

describe('on PostgreSQL', () => {
  let databases: TestDatabases
  chain(async () => {
    databases = await testDatabases()
    const { url } = await databases.create()
    return startServer({ TACHO_DATABASE_URL: url })
  })
  after(() => databases.close())
})
