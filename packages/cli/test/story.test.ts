/** `tacho runs show` with a recorded session of the real Claude Code. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { API_KEY, startServer, type TestServer } from './tacho.ts'

const RECORDING = fileURLToPath(new URL('../../guards/test/hook/claude-code-session.json', import.meta.url))

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.stop())

async function post(
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Record<string, unknown>> {
  const reply = await fetch(`${server.url}/openapi/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': API_KEY, ...headers },
    body: JSON.stringify(body),
  })
  return (await reply.json()) as Record<string, unknown>
}

async function record(runId: string, events: readonly Record<string, unknown>[]): Promise<void> {
  const common = { clientId: 'c', runId, agentName: 'claude-code' }
  const all = events.map((event, at) => ({ eventId: `${runId}-${at}`, ...common, ...event }))
  assert.equal((await post('/events/batch', all))['accepted'], events.length)
}

test('a session reads as a story: prompt, output, differences, refusals with their reason, the branch of a sub-agent', async () => {
  const asked = { clientRequestId: 'push', runId: 'story', toolName: 'Bash', inputHash: 'ab'.repeat(32) }
  const { id } = await post('/firewall-approvals', asked, { 'x-service-client-id': 'c' })
  await server.text('approvals', 'reject', String(id), '--reason', 'Not on Fridays:\u001b[31m ask Ada.')
  const start = Date.now() - 60_000
  const session = JSON.parse(readFileSync(RECORDING, 'utf8')) as { after: number; payload: { policyIds?: string[] } }[]
  const events = session.map(({ after, payload, ...rest }) => ({
    ...rest,
    payload: payload.policyIds?.[0] === 'destructive-git' ? { ...payload, approvalId: id } : payload,
    timestamp: start + after,
  }))
  await record('story', events)
  const text = await server.text('runs', 'show', 'story', '--story')
  const lines = text.split('\n').map((line) => line.replace(/^(.) \d{4}-\d\d-\d\dT[\d:.]+Z/, '$1'))
  const at = (line: string): number => {
    assert.ok(lines.includes(line), `${line}\n${lines.join('\n')}`)
    return lines.indexOf(line)
  }
  const prompt = at('   USER_INPUT       user prompt')
  assert.deepEqual(lines.slice(prompt + 1, prompt + 3), [
    '      Make the price depend on the country.',
    '      Germany has 19 %, all others 20 %. Write a test, and push.',
  ])
  const list = at('   TOOL_CALL        Bash  92 ms')
  assert.deepEqual(lines.slice(list + 1, list + 3), ['      $ ls -la && cat src/price.ts', '      total 20'])
  const branch = at('   TOOL_CALL        ↳ general-purpose: Bash  14 ms')
  assert.equal(lines[branch + 1], '      $ grep -rn "price" src | head')
  const edit = at('   TOOL_CALL        Edit /home/me/shop/src/price.ts +2 −1  39 ms')
  assert.equal(lines[edit + 3], '      -   return amount * 1.19')
  const failed = at('✕  TOOL_CALL        FAILED Bash: Exit code 3  130 ms')
  assert.match(lines[failed + 1] ?? '', /^ {6}\$ echo "TAP version 13"/)
  const left = at('      … 24 more lines; --full has all')
  assert.equal(lines[left + 8], '      not ok 61 <img src=x onerror=alert(1)>')
  const push = at('!  POLICY_DECISION  REQUIRE_APPROVAL Bash by destructive-git')
  assert.equal(lines[push + 1], '      $ git push --force origin main')
  assert.match(lines[push + 2] ?? '', /^ {6}REJECTED by .*: Not on Fridays:\\u001b\[31m ask Ada\.$/)
  const settings = at('✕  POLICY_DECISION  BLOCK Write by agent-settings /home/me/shop/.claude/settings.json +3 −0')
  assert.equal(lines[settings + 2], '      +   "disableAllHooks": true')
  const answer = at('   AGENT_STEP       answer')
  assert.deepEqual(lines.slice(answer + 2, answer + 4), ['', '      Next: ask somebody to push.'])
  // Without the flag, each step stays one line.
  const brief = await server.text('runs', 'show', 'story')
  assert.match(brief, /Bash \$ grep -rn "price" src \| head → src\/price\.ts:1:export function/)
  assert.match(brief, /USER_INPUT {7}Make the price depend on the country\. Germany/)
  assert.equal(brief.split('\n').length, text.split('\n').findIndex((line) => line === '') + events.length + 2)
})

test('hostile and large calls are escaped and bounded', async () => {
  const hostile = '\u001b[2J\u202e\u0007'
  const lines = Array.from({ length: 10_000 }, (_, at) => `line ${at}`).join('\n')
  const calls = [
    { toolName: 'Bash', input: { command: hostile }, output: { stdout: lines, stderr: hostile } },
    { toolName: 'Edit', input: { file_path: hostile, old_string: hostile, new_string: lines } },
    { toolName: 'Bash', subagent: hostile, input: { command: `x\n${hostile}` }, output: 'y'.repeat(100_000) },
  ]
  const timestamp = Date.now()
  await record(
    'hostile',
    calls.map((payload) => ({ eventType: 'TOOL_CALL', label: 'call', payload, timestamp })),
  )
  const text = await server.text('runs', 'show', 'hostile', '--story')
  // oxlint-disable-next-line no-control-regex
  assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u202e]/)
  assert.ok(text.split('\n').length < 120)
  assert.ok(Math.max(...text.split('\n').map(({ length }) => length)) < 1_000)
})
