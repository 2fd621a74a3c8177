/** `tacho mcp-server` with the official client, on a real server. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { ended, runTacho, startServer, startTacho, type TestServer } from '../../cli/test/tacho.ts'

const PROGRAM = fileURLToPath(new URL('../../cli/bin/tacho', import.meta.url))

let server: TestServer
let client: Client
before(async () => {
  server = await startServer()
  await server.tacho(['demo'])
  const env = { ...(process.env as Record<string, string>), ...server.variables }
  client = new Client({ name: 'tests', version: '1' })
  await client.connect(new StdioClientTransport({ command: PROGRAM, args: ['mcp-server'], env }))
})
after(async () => {
  await client.close()
  await server.stop()
})

interface Result {
  isError?: boolean
  content: { text: string }[]
}

/** The environment of the demo. Name it in each call, because there are several. */
async function demoPlace(): Promise<{ environmentId: string }> {
  const all = await read<{ environmentId: string; name: string }[]>('list_environments')
  const { environmentId = '' } = all.find(({ name }) => name === 'tacho-demo') ?? {}
  return { environmentId }
}

async function call(name: string, args: Record<string, unknown> = {}): Promise<Result> {
  return (await client.callTool({ name, arguments: args })) as Result
}

async function read<Body>(name: string, args: Record<string, unknown> = {}): Promise<Body> {
  const { isError, content } = await call(name, args)
  assert.ok(!isError, content[0]?.text ?? name)
  return JSON.parse(content[0]?.text ?? '') as Body
}

test('every tool but one only reads, says what it is for, and is on the page; all of them are short', async () => {
  const listed = await client.listTools()
  const { tools } = listed
  assert.ok(JSON.stringify(listed).length < 8_000, `${JSON.stringify(listed).length} characters`)
  assert.doesNotMatch(JSON.stringify(tools), /\[\]|null/)
  const page = readFileSync(new URL('../../../docs/mcp.md', import.meta.url), 'utf8')
  assert.ok(tools.length > 15)
  for (const { name, description, annotations, inputSchema } of tools) {
    // The default differs from the endpoint's, so the schema has none: the instructions contain it.
    assert.doesNotMatch(JSON.stringify(inputSchema.properties?.['limit'] ?? {}), /default/, name)
    assert.equal(annotations?.readOnlyHint, name !== 'simulate_policy', name)
    assert.ok((description ?? '').length > 10, name)
    assert.ok(page.includes(`\`${name}\``), name)
  }
})

test('a model finds a run and reads its steps with their payloads', async () => {
  const environment = await demoPlace()
  const { isError, content } = await call('list_runs')
  assert.equal(isError, true)
  assert.match(
    content[0]?.text ?? '',
    /^Give environmentId: there are 2\. [\w-]{36} \(\w+ of the workspace default\), [\w-]{36} \(tacho-demo of /,
  )
  const { items: runs } = await read<{ items: { runId: string }[] }>('list_runs', { ...environment, limit: 2 })
  assert.equal(runs.length, 2)
  const [run] = runs
  assert.ok(run)
  const given = { environmentId: environment.environmentId, runId: run.runId }
  const { items: events } = await read<{ items: { eventId: string }[] }>('list_run_events', given)
  assert.ok(events.length > 2)
  const event = await read<{ payload: object; environment: { name: string } }>('read_event', {
    ...given,
    eventId: events[0]?.eventId,
  })
  assert.equal(typeof event.payload, 'object')
  assert.equal(event.environment.name, 'tacho-demo')
  const uri = `tacho://environments/${environment.environmentId}/runs/${encodeURIComponent(run.runId)}`
  const { contents } = await client.readResource({ uri })
  assert.equal((JSON.parse((contents[0] as { text: string }).text) as { runId: string }).runId, run.runId)
})

test('a run that does not exist is no internal error', async () => {
  const { environmentId } = await demoPlace()
  for (const run of ['none', '%E0%A4%A', encodeURIComponent('a/b')]) {
    const uri = `tacho://environments/${environmentId}/runs/${run}`
    await assert.rejects(client.readResource({ uri }), (error: { code?: number; message: string }) => {
      assert.notEqual(error.code, -32_603, run)
      assert.match(error.message, /not found/i)
      return true
    })
  }
})

test('a long event comes in pieces, and a list has no empty members', async () => {
  const given = { ...(await demoPlace()), runId: 'long-run' }
  const where = ['-e', 'default/tacho-demo', '--scopes', 'events:write']
  const { stdout } = await server.tacho(['keys', 'create', '--name', 'long', ...where])
  const apiKey = /tacho_\w+/.exec(stdout)?.[0] ?? ''
  const payload = { text: `${'ü'.repeat(39_000)}😀${'x'.repeat(60_000)}` }
  const event = {
    eventId: 'long',
    clientId: 'c',
    runId: 'long-run',
    agentName: 'a',
    eventType: 'AGENT_STEP',
    label: 'l',
  }
  const reply = await fetch(`${server.url}/openapi/v1/events/batch`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify([{ ...event, timestamp: Date.now(), payload }]),
  })
  assert.equal(reply.status, 200)
  interface Piece {
    piece: { characters: number; nextOffset?: number }
    text: string
  }
  let text = ''
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const part: Piece = await read<Piece>('read_event', { ...given, eventId: 'long', ...(offset > 0 && { offset }) })
    assert.ok(part.text.length <= 40_000 && part.text.isWellFormed())
    text += part.text
    offset = part.piece.nextOffset
  }
  assert.deepEqual((JSON.parse(text) as { payload: object }).payload, payload)
  const { items } = await read<{ items: object[] }>('list_runs', await demoPlace())
  assert.doesNotMatch(JSON.stringify(items), /null|""|\[\]|\{\}/)
})

test('a refused call returns a tool error', async () => {
  const unknown = await call('read_run', { ...(await demoPlace()), runId: 'unknown-run' })
  assert.equal(unknown.isError, true)
  assert.match(unknown.content[0]?.text ?? '', /^not_found: /)
  for (const args of [{ limit: 0 }, { limit: 'many' }, { environmentId: 'constructor' }, { statu: 'FAILED' }]) {
    const result = await call('list_runs', args).catch((error: Error) => ({
      isError: true,
      content: [{ text: error.message }],
    }))
    assert.equal(result.isError, true, JSON.stringify(args))
  }
})

test('a misspelt argument is refused with the known names, a wrong value with the allowed ones', async () => {
  const said = async (name: string, args: Record<string, unknown>) => (await call(name, args)).content[0]?.text ?? ''
  assert.match(await said('list_runs', { statu: 'FAILED' }), /no argument "statu"; it has environmentId, .*status/)
  assert.match(
    await said('list_runs', { status: 'FAILD' }),
    /status must be one of RUNNING, COMPLETED, FAILED, CANCELLED/,
  )
  assert.match(await said('list_environments', { all: true }), /no argument "all"; it has none/)
  assert.match(await said('read_run', {}), /runId is missing: it must be a text/)
  for (const [args, words] of [
    [{ limit: 0 }, /limit must be a whole number from 1 to 200/],
    [{ limit: '5' }, /limit must be a whole number from 1 to 200/],
    [{ environmentId: 'production' }, /environmentId must be a UUID, as the lists of other tools have it/],
    [{ from: 'yesterday' }, /from must be a time such as 2026-01-31T12:00:00Z/],
    [{ minCost: '1e3' }, /minCost must be a text with a decimal number such as "0.25"/],
    [{ minLengthMs: 0.5 }, /minLengthMs must be a whole number from 1$/],
    [{ q: '' }, /q must be a text that is not empty, of at most 255 characters/],
  ] as const) {
    assert.match(await said('list_runs', args), words)
  }
})

test('a draft policy is simulated on recorded calls', async () => {
  const given = { ...(await demoPlace()), condition: 'tool.name == "refund"', action: 'BLOCK', days: 30 }
  const { status, result } = await read<{ status: string; result: { calls: number } }>('simulate_policy', given)
  assert.deepEqual([status, result.calls > 0], ['DONE', true])
  assert.match(
    (await call('simulate_policy', { ...given, action: 'STOP' })).content[0]?.text ?? '',
    /action must be one of/,
  )
})

test('a line of 20 MB is refused, and the connection goes on', async () => {
  const child = startTacho(['mcp-server'], server.variables)
  const end = ended(child)
  child.stdin?.write(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"text":"${'x'.repeat(20_000_000)}"}}\n`)
  child.stdin?.end('{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
  const { code, stdout, stderr } = await end
  const replies = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: unknown; error?: { message: string } })
  assert.match(replies[0]?.error?.message ?? '', /at most 1048576 bytes/)
  assert.deepEqual([replies[1]?.id, code, stderr], [2, 0, ''])
})

test('a condition is checked with its faults', async () => {
  assert.deepEqual(await read('check_policy', { condition: 'tool.name == "refund"' }), { ok: true, faults: [] })
  const { ok, faults } = await read<{ ok: boolean; faults: object[] }>('check_policy', { condition: 'tool.name ==' })
  assert.deepEqual([ok, faults.length > 0], [false, true])
})

test('a wrong token ends the command with a sentence', async () => {
  const token = `tacho-operator_00000000wrong000_${'w'.repeat(64)}`
  const { code, stderr } = await runTacho(['mcp-server', '--url', server.url], { TACHO_OPERATOR_TOKEN: token })
  assert.equal(code, 1)
  assert.match(stderr, /token/)
})
