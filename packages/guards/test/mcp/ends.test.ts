/** How calls end at the MCP guard: the server dies, the client cancels or leaves, the call never reaches its tool. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { startServer } from '../../src/mcp/child-server.ts'
import { fits } from '../../src/mcp/fits.ts'
import { guardServer } from '../../src/mcp/guard-server.ts'
import { startGuardedServer, type GuardedServer, type RecordedEvent } from '../guarded-server.ts'

const SCRIPTED = [process.execPath, fileURLToPath(new URL('scripted-server.ts', import.meta.url))]

let server: GuardedServer
let directory: string
before(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'tacho-ends-'))
  process.env['TACHO_STATE_DIR'] = directory
  server = await startGuardedServer()
  await server.deploy({
    'ask-a-person': { condition: 'has(tool.input.confirm)', action: 'REQUIRE_APPROVAL' },
    'of-one-server': {
      condition: 'tool.server == "scripted" && tool.name == "wipe" && agent.name != ""',
      action: 'BLOCK',
    },
  })
})
after(async () => {
  delete process.env['TACHO_STATE_DIR']
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

interface Reply {
  id: unknown
  result?: { isError?: boolean; content: { text: string }[] }
  error?: { code: number; message: string }
}

let agents = 0

/** Starts a guard in this process. The test is its client. */
async function guard([command = '', ...args]: readonly string[]) {
  const agent = `agent-${++agents}`
  const { TACHO_URL: url = '', TACHO_API_KEY: apiKey = '' } = server.variables
  const [input, output] = [new PassThrough(), new PassThrough()]
  const replies: Reply[] = []
  let rest = ''
  output.on('data', (part: Buffer) => {
    const lines = (rest + part.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) replies.push(JSON.parse(line) as Reply)
  })
  const ended = guardServer({
    account: { url, apiKey },
    server: await startServer(command, args),
    serverName: JSON.stringify([command, ...args]),
    settings: { approvalTimeoutMs: 30_000, silentApprovalTimeoutMs: 30_000, agentId: agent, agentName: agent },
    warn: () => undefined,
    input,
    output,
  })
  let ids = 0
  const send = (message: object): void => void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const ask = async (method: string, params: object = {}): Promise<Reply> => {
    const id = ++ids
    send({ id, method, params })
    return eventually(() => replies.find((reply) => reply.id === id), `the answer of ${method}`)
  }
  const greet = () => ask('initialize', { protocolVersion: '2025-11-25', clientInfo: { name: agent, version: '1' } })
  const call = (name: string, given: object = {}, more: object = {}) =>
    ask('tools/call', { name, arguments: given, ...more })
  async function recorded(): Promise<RecordedEvent[]> {
    input.end()
    await ended
    const run = await eventually(
      async () => (await server.runs()).find((each) => each.agent.name === agent && each.status !== 'RUNNING'),
      'the run',
    )
    return server.events(run.runId)
  }
  return { send, ask, greet, call, ended, recorded, input, last: () => ids }
}

const calls = (events: RecordedEvent[]) =>
  events.filter(({ eventType }) => eventType === 'TOOL_CALL').map(({ payload }) => payload)
const failures = async () => {
  const { items } = await server.operator.listIssues({ params: { environmentId: server.environmentId } })
  return items.filter(({ detectionType }) => detectionType.toUpperCase() === 'TOOL_FAILED').map(({ title }) => title)
}

test('a condition names the server of a tool, and hides the tool if it blocks every call of it', async () => {
  const { greet, ask, call, recorded } = await guard(SCRIPTED)
  await greet()
  const listed = JSON.stringify((await ask('tools/list')).result)
  assert.match(listed, /"echo"/)
  assert.doesNotMatch(listed, /"wipe"/)
  assert.equal((await call('wipe')).result?.isError, true)
  const decision = (await recorded()).find(({ eventType }) => eventType === 'POLICY_DECISION')?.payload
  assert.deepEqual([decision?.['action'], decision?.['toolServer']], ['BLOCK', 'scripted'])
})

test('the server dies: every open request gets its error at once, and the guard ends', async () => {
  const { greet, call, ask, ended } = await guard(SCRIPTED)
  await greet()
  const open = [call('silent'), call('silent', { n: 2 }), ask('resources/silent')]
  const before = Date.now()
  await call('echo')
  open.push(call('exit'))
  for (const { error } of await Promise.all(open)) {
    assert.deepEqual(error, { code: -32_000, message: 'The MCP server ended with exit code 7.' })
  }
  assert.equal(await ended, 7)
  assert.ok(Date.now() - before < 5_000, `${Date.now() - before} ms`)
})

test('a server that ends at its start, or closes its output and lives on, keeps no one waiting', async () => {
  for (const script of ['process.exit(3)', 'require("fs").closeSync(1); setInterval(() => {}, 1000)']) {
    const { greet, ended, input } = await guard([process.execPath, '-e', script])
    const before = Date.now()
    assert.match((await greet()).error?.message ?? '', /^The MCP server (ended with exit code 3|closed its output)\.$/)
    assert.ok(Date.now() - before < 4_000)
    input.end()
    if (script.includes('exit')) assert.equal(await ended, 3)
  }
})

test('a command that cannot be started answers every request with the cause at once, and its run failed', async () => {
  const { greet, call, ask, recorded, ended } = await guard(['/nowhere/server'])
  const before = Date.now()
  for (const { error } of [await greet(), await ask('tools/list'), await call('echo')]) {
    const message = 'The server command "/nowhere/server" cannot be started (ENOENT).'
    assert.deepEqual(error, { code: -32_000, message })
  }
  const outcome = (await recorded()).find(({ eventType }) => eventType === 'SESSION_OUTCOME')?.payload
  assert.equal(outcome?.['status'], 'FAILED')
  assert.match(JSON.stringify(outcome['error']), /cannot be started \(ENOENT\)/)
  assert.equal(await ended, 1)
  assert.ok(Date.now() - before < 5_000, `${Date.now() - before} ms`)
})

test('a call that comes when the server has ended is answered too', async () => {
  const { greet, call, ended } = await guard([
    process.execPath,
    '-e',
    'require("fs").closeSync(1); setTimeout(() => {}, 4000)',
  ])
  await greet()
  assert.equal((await call('echo')).error?.message, 'The MCP server closed its output.')
  await ended
})

test('a server gets none of the variables that are for the guard', async () => {
  const { NODE_COMPILE_CACHE: cache, TACHO_OWN_VARIABLES: own } = process.env
  Object.assign(process.env, { NODE_COMPILE_CACHE: directory, TACHO_OWN_VARIABLES: ' NODE_COMPILE_CACHE' })
  const print = 'console.log(JSON.stringify([process.env.NODE_COMPILE_CACHE, process.env.TACHO_API_KEY]))'
  const its = await startServer(process.execPath, ['-e', print])
  Object.assign(process.env, { NODE_COMPILE_CACHE: cache, TACHO_OWN_VARIABLES: own })
  for (const name of ['NODE_COMPILE_CACHE', 'TACHO_OWN_VARIABLES'])
    if (process.env[name] === 'undefined') delete process.env[name]
  for await (const line of its.lines) assert.deepEqual(line, Buffer.from('[null,null]'))
  await its.ended
})

test('a cancelled call is cancelled and no failure; a frame of the guard is no reason', async () => {
  const { greet, call, send, last, ask, recorded } = await guard(SCRIPTED)
  await greet()
  void call('silent').catch(() => undefined)
  await ask('ping')
  send({ method: 'notifications/cancelled', params: { requestId: last() - 1, reason: 'user' } })
  await ask('ping')
  const [cancelled] = calls(await recorded())
  assert.equal(cancelled?.['outcome'], 'cancelled')
  assert.doesNotMatch(JSON.stringify(cancelled), /guard\.ts|node:internal|\bat /)
  assert.ok((await failures()).every((title) => !/cancel/i.test(title)))
})

test('a call that the server does not know, or whose arguments do not fit, never ran', async () => {
  const { greet, call, ask, recorded } = await guard(SCRIPTED)
  await greet()
  await ask('tools/list')
  assert.equal((await call('unknown')).error?.message, 'Unknown tool: unknown')
  assert.equal((await call('ship', { order: 'seven' })).result?.isError, true)
  assert.equal((await call('ship', { order: 7 })).result?.isError, undefined)
  const events = await recorded()
  assert.deepEqual(
    calls(events).map(({ toolName, outcome, reasonCode, arguments: given, toolServer }) => [
      toolName,
      outcome,
      reasonCode ?? null,
      given ?? null,
      toolServer,
    ]),
    [
      ['unknown', 'never_ran', 'unknown_tool', '{}', 'scripted'],
      ['ship', 'never_ran', 'unfit', '{"order":"seven"}', 'scripted'],
      ['ship', 'returned', null, null, 'scripted'],
    ],
  )
  const starts = events.filter(({ eventType }) => eventType === 'TOOL_START')
  assert.deepEqual(
    starts.map(({ payload }) => payload['input']),
    [{ order: 7 }],
  )
  await eventually(
    async () => (await failures()).filter((title) => /^(unknown|ship) /.test(title)).length === 2,
    'an issue of each',
  )
})

test('a held call whose client cancels or leaves is withdrawn, and an approval of it starts nothing', async () => {
  const { operator, environmentId } = server
  const pending = (before = '') =>
    eventually(async () => {
      const query = { status: 'PENDING' } as const
      const { items } = await operator.listApprovals({ params: { environmentId }, query })
      const found = items.find((each) => each.id !== before)
      if (!found) return null
      // The guard records the input after it has received the request's id. Before that, it cannot withdraw the request.
      const { inputPreview } = await operator.readApproval({ params: { environmentId, approvalId: found.id } })
      return inputPreview === null ? null : found
    }, 'the approval')
  for (const how of ['cancel', 'close']) {
    const { greet, call, send, last, recorded, input, ended } = await guard(SCRIPTED)
    await greet()
    void call('echo', { confirm: how }, { _meta: { 'claudecode/toolUseId': `toolu_${how}` } }).catch(() => undefined)
    const { id } = await pending()
    if (how === 'cancel') send({ method: 'notifications/cancelled', params: { requestId: last() } })
    else input.end()
    if (how === 'close') await ended
    const decided = operator.decideApproval({
      params: { environmentId, approvalId: id },
      body: { decision: 'APPROVED' },
    })
    await decided.catch(() => undefined)
    if (how === 'cancel') {
      // An equal call needs a new approval.
      const again = call('echo', { confirm: how })
      const second = await pending(id)
      await operator.decideApproval({
        params: { environmentId, approvalId: second.id },
        body: { decision: 'REJECTED' },
      })
      assert.equal((await again).result?.isError, true)
    }
    const events = await recorded()
    const withdrawn = events.filter(({ eventType }) => eventType === 'APPROVAL_WITHDRAWN').map(({ payload }) => payload)
    assert.deepEqual(
      withdrawn.map(({ approvalId, toolName, toolCallId, reason }) => [approvalId, toolName, toolCallId, reason]),
      [[id, 'echo', `toolu_${how}`, 'cancelled']],
    )
    const decision = events.find(({ payload }) => payload['approvalId'] === id)?.payload
    assert.equal(decision?.['toolCallId'], `toolu_${how}`)
    assert.deepEqual(calls(events), [])
  }
})

test('arguments fit a schema by type, required members and allowed values; what is not understood fits', () => {
  const schema = {
    type: 'object',
    properties: {
      n: { type: 'integer' },
      of: { enum: ['a', 'b'] },
      all: { type: 'array', items: { type: ['string', 'null'] } },
    },
    required: ['n'],
    additionalProperties: false,
  }
  for (const [given, expected] of [
    [{ n: 1 }, true],
    [{ n: 1, of: 'b', all: ['x', null] }, true],
    [{}, false],
    [{ n: '1' }, false],
    [{ n: 1.5 }, false],
    [{ n: 1, of: 'c' }, false],
    [{ n: 1, all: [1] }, false],
    [{ n: 1, more: 1 }, false],
  ] as const) {
    assert.equal(fits(given, schema), expected, JSON.stringify(given))
  }
  for (const odd of [null, true, 'x', { type: 'other' }, { $ref: '#/x' }, { required: 'n' }])
    assert.ok(fits({ n: 1 }, odd))
})
