/** MCP of 2026-07-28 through `tacho mcp-guard`: without `initialize`, with questions as results, and with tasks. */
import assert from 'node:assert/strict'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { ended, startTacho } from '../../../cli/test/tacho.ts'
import { startGuardedServer, type GuardedServer, type RecordedEvent } from '../guarded-server.ts'

const SCRIPTED = fileURLToPath(new URL('scripted-server.ts', import.meta.url))
const VERSION = 'io.modelcontextprotocol/protocolVersion'
const CLIENT = 'io.modelcontextprotocol/clientInfo'

let server: GuardedServer
before(async () => {
  server = await startGuardedServer()
  await server.deploy({
    'at-most-500': {
      condition:
        'has(tool.input.inputResponses) && has(tool.input.inputResponses.amount.content) && tool.input.inputResponses.amount.content.value > 500.0',
      action: 'BLOCK',
    },
    'ask-for-answers': { condition: 'tool.name == "pay" && has(tool.input.ask)', action: 'REQUIRE_APPROVAL' },
    'no-claimed-harm': {
      condition: 'has(tool.annotations.destructiveHint) && tool.annotations.destructiveHint == true',
      action: 'BLOCK',
    },
  })
})
after(() => server.stop())

interface Reply {
  result?: Record<string, unknown> & { content?: { text: string }[] }
  error?: { code: number; message: string }
}

/** A client that writes every message itself. */
function connect(name: string) {
  const variables = { ...server.variables, TACHO_STATE_DIR: path.join(server.directory, name) }
  const child = startTacho(['mcp-guard', '--', process.execPath, SCRIPTED], variables)
  const end = ended(child)
  let stderr = ''
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  assert.ok(child.stdin && child.stdout)
  const waiting = new Map<number, (reply: Reply) => void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, ...reply } = JSON.parse(line) as Reply & { id: number }
    waiting.get(id)?.(reply)
  })
  let ids = 0
  return {
    stderr: () => stderr,
    async send(method: string, params: object): Promise<Reply> {
      const id = ++ids
      const _meta = { [VERSION]: '2026-07-28', [CLIENT]: { name, version: '1' } }
      const reply = new Promise<Reply>((resolve) => waiting.set(id, resolve))
      child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta } })}\n`)
      return reply
    },
    async recorded(): Promise<RecordedEvent[]> {
      child.stdin?.end()
      await end
      const run = await eventually(
        async () => (await server.runs()).find(({ agent, status }) => agent.name === name && status !== 'RUNNING'),
        `the run of ${name}`,
      )
      return server.events(run.runId)
    },
  }
}

const textOf = ({ result }: Reply) => result?.content?.map(({ text }) => text).join('')
const typed = (events: readonly RecordedEvent[], type: string) =>
  events.filter(({ eventType }) => eventType === type).map(({ payload }) => payload)
const amount = (value: number) => ({ amount: { action: 'accept', content: { value } } })

test('a call without initialize is judged and recorded; server/discover names the server', async () => {
  const { send, recorded } = connect('stateless')
  assert.equal(textOf(await send('tools/call', { name: 'echo', arguments: { n: 1 } })), '{"n":1}')
  assert.deepEqual((await send('server/discover', {})).result?.['supportedVersions'], ['2026-07-28'])
  await send('tools/call', { name: 'echo', arguments: { n: 2 } })
  const calls = typed(await recorded(), 'TOOL_CALL')
  assert.deepEqual(
    calls.map(({ input, mcpServer }) => [input, mcpServer]),
    [
      [{ n: 1 }, undefined],
      [{ n: 2 }, 'scripted'],
    ],
  )
})

test('answers to questions of the server are judged, approved, hashed and recorded with the input', async () => {
  const { send, recorded, stderr } = connect('questions')
  const call = { name: 'pay', arguments: { to: 'ada' } }
  const asked = await send('tools/call', call)
  assert.equal(asked.result?.['resultType'], 'input_required')
  const repeat = { ...call, requestState: 'state-1' }
  const blocked = await send('tools/call', { ...repeat, inputResponses: amount(501) })
  assert.deepEqual([blocked.result?.['isError'], blocked.result?.['resultType']], [true, 'complete'])
  assert.doesNotMatch(stderr(), /501/, 'the server never sees the answer')
  const paid = await send('tools/call', { ...repeat, inputResponses: amount(500) })
  assert.equal(textOf(paid), `paid ${JSON.stringify(amount(500))}`)
  // An argument named `inputResponses` could be confused with the answers.
  const both = { name: 'pay', arguments: { inputResponses: amount(1) }, inputResponses: amount(501) }
  assert.match((await send('tools/call', both)).error?.message ?? '', /no argument has that name/)
  const spelt = { ...call, InputResponses: amount(501) }
  assert.match((await send('tools/call', spelt)).error?.message ?? '', /must be written inputResponses\./)

  const events = await recorded()
  const decisions = typed(events, 'POLICY_DECISION')
  assert.deepEqual(
    decisions.map(({ action, input }) => [action, input]),
    [['BLOCK', { to: 'ada', inputResponses: amount(501) }]],
  )
  const [first, second, ...more] = typed(events, 'TOOL_CALL')
  assert.deepEqual([first?.['input'], more.length], [{ to: 'ada' }, 0])
  const whole = { to: 'ada', inputResponses: amount(500) }
  assert.deepEqual([second?.['input'], second?.['inputHash']], [whole, inputHash('pay', whole)])
})

test('an approval of a call does not count for its answers; a rejected call is asked once', async () => {
  const { send, recorded } = connect('approvals')
  const call = { name: 'pay', arguments: { ask: 1 } }
  const first = send('tools/call', call)
  const one = await server.decideNext('pay', 'APPROVED')
  assert.equal((await first).result?.['resultType'], 'input_required')
  const second = send('tools/call', { ...call, inputResponses: amount(7), requestState: 'state-1' })
  const two = await server.decideNext('pay', 'REJECTED', 'Ask Ada.')
  assert.match(textOf(await second) ?? '', /A person rejected this call.*Ask Ada\./)
  // The model repeats the call with the same answers. It is refused without asking a person again.
  const again = await send('tools/call', { ...call, inputResponses: amount(7), requestState: 'state-1' })
  assert.match(textOf(again) ?? '', /A person rejected this call.*Ask Ada\./)
  const params = { environmentId: server.environmentId }
  const { items } = await server.operator.listApprovals({ params, query: {} })
  const ids = items.filter(({ toolName }) => toolName === 'pay').map(({ id }) => id)
  assert.deepEqual(ids.toSorted(), [one, two].toSorted())
  const hash = inputHash('pay', { ask: 1, inputResponses: amount(7) })
  assert.equal(items.find(({ id }) => id === two)?.inputHash, hash)
  const decisions = typed(await recorded(), 'POLICY_DECISION')
  assert.deepEqual(
    decisions.map(({ action, approvalId }) => [action, approvalId]),
    [
      ['REQUIRE_APPROVAL', one],
      ['REQUIRE_APPROVAL', two],
      ['BLOCK', two],
    ],
  )
})

test('the real result of a task is recorded when it comes, and answers to its questions are judged', async () => {
  const { send, recorded, stderr } = connect('tasks')
  const created = await send('tools/call', { name: 'export', arguments: { year: 2026 } })
  const taskId = created.result?.['taskId']
  assert.equal(taskId, 'task-1')
  const blocked = await send('tasks/update', { taskId, inputResponses: amount(501) })
  assert.match(blocked.error?.message ?? '', /The tool export was not run\. A policy forbids this call/)
  assert.deepEqual(
    (await send('tasks/update', { taskId, inputResponses: amount(3) })).result?.['resultType'],
    'complete',
  )
  // Wait, because the server's log arrives through another pipe than the answer.
  await eventually(() => /updated .*"value":3/.test(stderr()), 'what the server wrote')
  assert.doesNotMatch(stderr(), /501/)
  const other = await send('tasks/update', { taskId: 'task-9', inputResponses: amount(3) })
  assert.match(other.error?.message ?? '', /does not know this task/)
  assert.equal((await send('tasks/get', { taskId })).result?.['status'], 'working')
  assert.equal((await send('tasks/get', { taskId })).result?.['status'], 'completed')
  // The task of this call never ends.
  await send('tools/call', { name: 'export', arguments: { year: 2027 } })
  const events = await recorded()
  const [done, left] = typed(events, 'TOOL_CALL')
  assert.deepEqual(
    [done?.['input'], done?.['output']],
    [{ year: 2026 }, { content: [{ type: 'text', text: 'exported task-1' }] }],
  )
  assert.match(String(left?.['error']), /connection ended before the task's result came/)
  const [step] = typed(events, 'AGENT_STEP').filter((payload) => payload['taskId'] === taskId)
  assert.deepEqual(step?.['input'], { year: 2026, inputResponses: amount(3) })
})

test('conditions see what the server says of a tool, once it listed the tool', async () => {
  const { send, recorded } = connect('claims')
  await send('tools/list', {})
  assert.equal((await send('tools/call', { name: 'wipe' })).result?.['isError'], true)
  assert.equal((await send('tools/call', { name: 'echo' })).result?.['isError'], undefined)
  assert.equal(typed(await recorded(), 'TOOL_CALL').length, 1)
})
