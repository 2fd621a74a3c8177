/** The agents' own session files, in lines as the real programs wrote them. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { readRecord } from '../../src/hook/record.ts'
import { readSessionFile } from '../../src/hook/session/session-files.ts'

let directory: string
before(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'session-files-'))
})
after(() => rmSync(directory, { recursive: true, force: true }))

const NOT_IN_WORKSPACE =
  'Path not in workspace: Attempted path "/home/me/x" resolves outside the allowed workspace directories: /home/me/shop'

test('gemini-cli: a path that it refuses before any hook is not a call that ran', () => {
  const call = (id: string, name: string, response: object) => ({
    id,
    name,
    args: { file_path: id },
    result: [{ functionResponse: { id, name, response } }],
    status: 'error' in response ? 'error' : 'success',
  })
  const lines = [
    { sessionId: 'a795939e-65f5-4e8f-8761-890f9998da4a', kind: 'main' },
    { timestamp: '2026-11-24T01:39:33.397Z', toolCalls: [call('refused', 'write_file', { error: NOT_IN_WORKSPACE })] },
    // The same words in the output of a tool do not count as a refusal.
    {
      timestamp: '2026-11-24T01:39:34.397Z',
      toolCalls: [call('said', 'read_file', { output: `"error":"${NOT_IN_WORKSPACE}` })],
    },
    { timestamp: '2026-11-24T01:39:35.397Z', toolCalls: [call('failed', 'read_file', { error: 'File not found.' })] },
  ]
  const file = path.join(directory, 'chats.jsonl')
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const { calls } = readSessionFile('gemini-cli', file, 0)
  assert.deepEqual(
    calls.map(({ input }) => input),
    [{ file_path: 'said' }, { file_path: 'failed' }],
  )
})

test('qwen-code: a hook names a call otherwise than the session file, and the two are the same call', () => {
  const sessionId = 'de194b13-a2e0-4a48-a97b-8003933433d2'
  const [name, args] = ['run_shell_command', { command: 'echo harmless', is_background: false }]
  const lines = [
    {
      sessionId,
      timestamp: '2026-11-27T15:27:52.397Z',
      message: { parts: [{ functionCall: { id: 'call_0', name, args } }] },
    },
    { sessionId, message: { parts: [{ functionResponse: { id: 'call_0', name } }] }, toolCallResult: {} },
  ]
  const file = path.join(directory, 'qwen.jsonl')
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const { calls } = readSessionFile('qwen-code', file, 0)
  const step = { session_id: sessionId, hook_event_name: 'PreToolUse', tool_use_id: 'toolu_1795793314156_8jpa3nka5' }
  const record = readRecord('qwen-code', JSON.stringify({ ...step, tool_name: name, tool_input: args }))
  assert.deepEqual(
    calls.map(({ callId }) => callId),
    [record?.callId],
  )
})
