/** Finish reasons after which the tool calls of an answer are complete. The Python SDK tests the same list. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { askedCalls, isWhole } from '../src/integrations/asked-calls.ts'

const file = new URL('../../contract/vectors/finish-reasons.json', import.meta.url)
const { whole, cut, unlisted } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string[]>

test('calls are whole after the reasons of the list, and after no other', () => {
  assert.deepEqual([whole, []], [whole?.filter(isWhole), [...(cut ?? []), ...(unlisted ?? [])].filter(isWhole)])
  assert.ok((cut?.length ?? 0) > 20)
  // Some models repeat the reason in each piece of a stream, and frameworks join the pieces.
  assert.deepEqual(['STOPSTOP', 'tool_callstool_calls', 'stoplength', 'nonstop'].map(isWhole), [
    true,
    true,
    false,
    false,
  ])
  assert.deepEqual([undefined, null, ''].map(isWhole), [true, true, true], 'nobody said')
})

test('a call that its provider says is complete is whole in any answer', () => {
  const call = { type: 'function_call', call_id: 'c', name: 'refund', arguments: '{"order":7}' }
  const problems = ['completed', 'incomplete'].map(
    (status) => askedCalls([{ ...call, status }], 'max_output_tokens')[0]?.problem,
  )
  assert.deepEqual(problems, [undefined, 'cut'])
})
