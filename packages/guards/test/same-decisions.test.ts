/** The shared decisions: the SDK, the MCP guard, the hook of a coding agent and the server's simulation decide alike. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { readRecord } from '@tacho/guards/hook/record.ts'
import { runHook } from '@tacho/guards/hook/run-hook.ts'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import type { DecisionVectors } from '../../policy/vectors/decisions.ts'
import { eventually } from '../../server/test/setup/eventually.ts'
import { Tacho, ToolBlockedError } from '@tacho/sdk'
import { startGuardedServer, type GuardedServer } from './guarded-server.ts'
import { API_KEY } from '../../cli/test/tacho.ts'

const PROGRAM = fileURLToPath(new URL('../../cli/bin/tacho', import.meta.url))
const SCRIPTED = fileURLToPath(new URL('mcp/scripted-server.ts', import.meta.url))
const FILE = new URL('../../policy/vectors/decisions.json', import.meta.url)
const { agent, policies, calls } = JSON.parse(readFileSync(FILE, 'utf8')) as DecisionVectors
/** The expected decisions, by call. Only calls that a policy matched are compared. */
const expected = new Map(
  calls
    .filter(({ policyIds }) => policyIds.length > 0)
    .map(({ toolName, input, action, policyIds }) => [inputHash(toolName, input), `${action} ${policyIds.join()}`]),
)

/** A long timeout, for two hundred calls, a quarter of which need an approval. */
const SLOW = { timeout: 900_000 }

let server: GuardedServer
let directory: string
let rejecter: NodeJS.Timeout
before(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'tacho-same-'))
  server = await startGuardedServer()
  const named = policies.map(({ policyId, condition, severity, action, onError }) => [
    policyId,
    { condition, severity, action, ...(onError && { onError }) },
  ])
  await server.deploy(Object.fromEntries(named))
  // A person rejects every approval at once.
  const params = { environmentId: server.environmentId }
  const reject = async (): Promise<void> => {
    const { items } = await server.operator.listApprovals({ params, query: { status: 'PENDING' } })
    const ids = items.map(({ id }) => id)
    const one = (approvalId: string) =>
      server.operator.decideApproval({ params: { ...params, approvalId }, body: { decision: 'REJECTED' } })
    await Promise.all(ids.map(one))
  }
  rejecter = setInterval(() => void reject().catch(() => undefined), 250)
})
after(async () => {
  clearInterval(rejecter)
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** The recorded decisions of a run, when the last one has arrived. */
async function assertDecided(runId: string): Promise<void> {
  const decided = await eventually(async () => {
    const events = await server.events(runId)
    const payloads = events.filter(({ eventType }) => eventType === 'POLICY_DECISION').map(({ payload }) => payload)
    // Skip decisions that are recorded only because a condition failed.
    const found = payloads.filter(({ policyIds }) => (policyIds as string[]).length > 0)
    return found.length >= expected.size ? found : null
  }, `the decisions of ${runId}`)
  const told = decided.map(({ inputHash: hash, action, policyIds }) => [
    String(hash),
    `${String(action)} ${(policyIds as string[]).join()}`,
  ])
  assert.deepEqual(Object.fromEntries(told), Object.fromEntries(expected))
}

test('simulation: each policy hits exactly its calls', SLOW, async () => {
  const tacho = new Tacho({ apiKey: API_KEY, baseUrl: server.url })
  await tacho.run({ runId: 'recorded', agentId: agent.id, agentName: agent.name }, (run) => {
    for (const { toolName, input } of calls) run.toolCall({ toolName, input, output: null })
  })
  await tacho.shutdown(60_000)
  const params = { environmentId: server.environmentId }
  for (const { policyId, condition, severity, action, onError } of policies) {
    const body = { condition, severity, action, ...(onError && { onError }), days: 1 } as Parameters<
      typeof server.operator.createSimulation
    >[0]['body']
    const { id } = await server.operator.createSimulation({ params, body })
    const { result } = await eventually(async () => {
      const simulation = await server.operator.readSimulation({ params: { ...params, simulationId: id } })
      return simulation.status === 'DONE' ? simulation : null
    }, `the simulation of ${policyId}`)
    const own = calls.filter(({ policyIds }) => policyIds.includes(policyId))
    assert.deepEqual([result?.calls, result?.hits], [calls.length, own.length], policyId)
    for (const { toolName, hits } of result?.tools ?? []) {
      assert.equal(hits, own.filter((call) => call.toolName === toolName).length, `${policyId} ${toolName}`)
    }
  }
})

test('the SDK: each guarded call', SLOW, async () => {
  const guard = { loop: false, whenUnconfigured: 'block', configurationWaitMs: 60_000 } as const
  const tacho = new Tacho({ apiKey: API_KEY, baseUrl: server.url, guard })
  await tacho.run({ runId: 'by-sdk', agentId: agent.id, agentName: agent.name }, () =>
    Promise.all(
      calls.map(async ({ toolName: name, input, action }) => {
        const tool = tacho.guard(() => 'ran', { name, input: () => input })
        const ran = await tool().catch((error: unknown) => error)
        if (action === 'ALLOW' || action === 'WARN') assert.equal(ran, 'ran')
        else assert.ok(ran instanceof ToolBlockedError, `${action} ${name}`)
      }),
    ),
  )
  await tacho.shutdown(60_000)
  await assertDecided('by-sdk')
})

test('the MCP guard: each tools/call', SLOW, async () => {
  const env = { ...(process.env as Record<string, string>), ...server.variables, TACHO_STATE_DIR: directory }
  const args = ['mcp-guard', '--agent', agent.id, '--', process.execPath, SCRIPTED]
  const client = new Client({ name: 'same', version: '1' })
  await client.connect(new StdioClientTransport({ command: PROGRAM, args, env, stderr: 'ignore' }))
  await Promise.all(
    calls.map(async ({ toolName: name, input, action }) => {
      const { isError = false } = await client.callTool({ name, arguments: input })
      assert.equal(isError, action === 'BLOCK' || action === 'REQUIRE_APPROVAL', `${action} ${name}`)
    }),
  )
  await client.close()
  const run = await eventually(async () => {
    const own = (await server.runs()).filter(({ runId }) => !['recorded', 'by-sdk', 'by-hook'].includes(runId))
    return own.find(({ status }) => status === 'COMPLETED')
  }, 'the run of the guard')
  await assertDecided(run.runId)
})

test('the hook of a coding agent: each PreToolUse', SLOW, async () => {
  process.env['TACHO_STATE_DIR'] = path.join(directory, 'hook')
  const account = { apiKey: API_KEY, url: server.url }
  const options = {
    agent: 'claude-code',
    approvalTimeoutMs: 30_000,
    unconfigured: 'deny',
    isProject: false,
    isManaged: false,
  } as const
  const hook = async (fields: object): Promise<string> => {
    const record = readRecord('claude-code', JSON.stringify({ session_id: 'by-hook', ...fields }))
    assert.ok(record)
    return runHook(account, record, options)
  }
  // A hook waits a second for policies, which a busy machine may not keep. The start of a session tries again.
  const begin = { hook_event_name: 'SessionStart', source: 'startup' }
  await eventually(async () => (await hook(begin)) === '', 'the policies of the hook')
  const queue = [...calls.entries()]
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [index, { toolName, input, action }] = next
      const call = { tool_name: toolName, tool_input: input, tool_use_id: `t-${index}` }
      const answer = await hook({ hook_event_name: 'PreToolUse', ...call })
      const said = answer === '' ? 'ALLOW' : answer.includes('systemMessage') ? 'WARN' : 'denied'
      assert.equal(said, action === 'ALLOW' || action === 'WARN' ? action : 'denied', toolName)
    }
  }
  await Promise.all(Array.from({ length: 8 }, work))
  await hook({ hook_event_name: 'Stop' })
  await assertDecided('by-hook')
})
