/** Conditions on the past of a run in hooks, each of which runs in a separate process. */
import assert from 'node:assert/strict'
import { appendFileSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { denied, startHooks } from './hook-session.ts'

type Hooks = Awaited<ReturnType<typeof startHooks>>
let hooks: Hooks
before(async () => {
  hooks = await startHooks()
  const { operator, environmentId } = hooks.server
  await operator.changeToolLabels({
    params: { environmentId },
    body: {
      labels: [
        { tool: 'Read', output: ['secret'], when: 'tool.input.file_path.endsWith(".env")' },
        { tool: 'WebFetch', output: ['untrusted'], does: ['external'] },
        { tool: 'Bash', output: ['shell'], when: 'tool.output.stdout.contains("KEY=")' },
      ],
    },
  })
  const external = '"external" in tool.labels'
  await hooks.server.deploy({
    'no-network': { condition: `${external} && ("secret" in run.labels || "unknown" in run.labels)`, action: 'BLOCK' },
    'read-first': {
      condition: 'tool.name == "Edit" && !run.calls.exists(c, c.tool == "Read" && c.ok)',
      action: 'BLOCK',
    },
    'no-copy': { condition: 'tool.name == "Send" && "unknown" in origin(tool.input.to)', action: 'BLOCK' },
    'labels-only': { condition: '"external" in tool.labels && tool.input.url.contains("evil")', action: 'BLOCK' },
  })
})
after(() => hooks.close())

type Session = ReturnType<Hooks['session']>
let ids = 0

/** Runs a tool with its hooks, unless a policy stops it. */
async function called(session: Session, name: string, input: object, response: unknown = 'ok', isFailure = false) {
  const call = { tool_name: name, tool_input: input, tool_use_id: `use-${++ids}` }
  const asked = await session.hook('PreToolUse', call)
  assert.deepEqual([asked.code, asked.stderr], [0, ''])
  if (asked.answer !== null) return denied(asked)
  const end = isFailure ? { error: String(response) } : { tool_response: response }
  await session.hook(isFailure ? 'PostToolUseFailure' : 'PostToolUse', { ...call, ...end })
  return 'ran'
}

const page = { url: 'http://a.test' }

test('labels of earlier calls decide, each session by itself, and labels of the call without a past', async () => {
  const [clean, read] = [hooks.session(), hooks.session()]
  assert.equal(await called(clean, 'Read', { file_path: 'main.ts' }), 'ran')
  assert.equal(await called(clean, 'WebFetch', page), 'ran')
  assert.match(await called(clean, 'WebFetch', { url: 'http://evil.test' }), /labels-only/)
  assert.equal(await called(read, 'Read', { file_path: '/shop/.env' }, 'KEY=1'), 'ran')
  assert.match(await called(read, 'WebFetch', page), /no-network/)
  assert.equal(await called(clean, 'WebFetch', page), 'ran')
})

test('earlier calls and whether they failed are known; values are not', async () => {
  const session = hooks.session()
  assert.match(await called(session, 'Edit', { file_path: 'a' }), /read-first/)
  assert.equal(await called(session, 'Read', { file_path: 'a' }, 'no such file', true), 'ran')
  assert.match(await called(session, 'Edit', { file_path: 'a' }), /read-first|rejected|blocked/)
  assert.equal(await called(session, 'Read', { file_path: 'b' }), 'ran')
  assert.equal(await called(session, 'Edit', { file_path: 'b' }), 'ran')
  assert.match(await called(session, 'Send', { to: 'bob' }), /no-copy/)
})

test('a past that is missing in part, or cannot be read, is unknown', async () => {
  const folder = (): string => {
    const state = path.join(hooks.directory, 'state')
    const found = readdirSync(state, { recursive: true })
      .map(String)
      .find((name) => name.endsWith('pasts'))
    return path.join(state, found ?? '')
  }
  const lost = hooks.session()
  assert.equal(await called(lost, 'Read', { file_path: 'a' }), 'ran')
  assert.equal(await called(lost, 'WebFetch', page), 'ran')
  for (const file of readdirSync(folder())) {
    const text = readFileSync(path.join(folder(), file), 'utf8')
    assert.doesNotMatch(text, /a\.test|file_path|KEY=/, 'no content is kept')
    rmSync(path.join(folder(), file))
  }
  assert.match(await called(lost, 'WebFetch', page), /no-network/)
  const damaged = hooks.session()
  assert.equal(await called(damaged, 'WebFetch', page), 'ran')
  for (const file of readdirSync(folder())) appendFileSync(path.join(folder(), file), '{')
  assert.match(await called(damaged, 'WebFetch', page), /no-network/)
})
