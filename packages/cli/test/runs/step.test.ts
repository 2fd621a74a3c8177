import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventRow } from '@tacho/contract/record/event.ts'
import { isFailed, stepHead, stepLine } from '../../src/runs/step-line.ts'
import { widthOf } from '../../src/engine/text-width.ts'
import type { Look } from '../../src/engine/display.ts'

const START = Date.UTC(2026, 10, 22, 12)
const PIPE: Look = { width: null, isExact: false, now: START }
const TERMINAL: Look = { ...PIPE, width: 80 }
const TIMELINE = { startedAt: START, hasCost: true, neverEnded: new Set<string>() }

function row(eventType: string, label: string, latency: number | null = null): EventRow {
  const timestamp = new Date(START + 1_234).toISOString()
  const ids = { id: '', eventId: 'e', runId: 'r', sessionId: null, agentId: null, agentName: 'a', clientId: 'c' }
  const rest = { receivedAt: timestamp, schemaVersion: null, promptVersionId: null, spanId: null, parentSpanId: null }
  return {
    ...ids,
    ...rest,
    eventType,
    label,
    timestamp,
    latency,
    tokens: null,
    cost: null,
    payloadBytes: 2,
  } as EventRow
}

const line = (event: EventRow, payload: unknown, look = TERMINAL) => stepLine(event, payload, TIMELINE, look)

test('a step says what it did, how long it took and what it cost, in one line as wide as the terminal', () => {
  const output = { content: 'Here it is', tool_calls: [{ function: { name: 'find', arguments: '{"id":7}' } }] }
  const model = line(row('LLM_CALL', 'chat', 420), { model: 'small-1', output, cost: 0.0031 })
  assert.match(model, /^ +\+1\.2 s {2}Model {7}small-1: Here it is; asks for fi.*… +420 ms +\$0\.0031$/)
  assert.equal(widthOf(model), 80)
  assert.equal(widthOf(stepHead(TIMELINE, TERMINAL)[0] ?? ''), 80)
  assert.match(
    line(row('TOOL_CALL', 'find', 12), { toolName: 'find', input: { id: 7 }, output: 'ok' }),
    /find \{"id":7\} → ok/,
  )
  assert.match(line(row('USER_INPUT', 'question'), { text: 'Where\nis  it?' }), /User {8}Where is it\?$/)
  assert.match(line(row('CUSTOM', 'Something'), {}), /CUSTOM {6}Something$/)
})

test('what failed or was held back has a mark and a word', () => {
  const failed = line(row('TOOL_CALL', 'find'), { toolName: 'find', input: {}, error: 'timeout' })
  assert.match(failed, /^✕ .* FAILED find: timeout, input \{\}$/)
  const exception = {
    type: 'Late',
    message: 'no answer',
    causes: [
      { type: 'A', message: 'x' },
      { type: 'Refused', message: 'at 10.0.0.1' },
    ],
  }
  const caused = stepLine(row('TOOL_CALL', 'find'), { toolName: 'find', exception }, TIMELINE, PIPE)
  assert.match(caused, /FAILED find: Late: no answer, because Refused: at 10\.0\.0\.1$/)
  const block = { action: 'BLOCK', toolName: 'refund', policyIds: ['limit'] }
  assert.match(line(row('POLICY_DECISION', 'x'), block), /^✕ .* BLOCK refund by limit$/)
  const input = { note: 'x'.repeat(250) }
  assert.match(line(row('TOOL_CALL', 'find'), { toolName: 'find', input, error: 'timeout' }), /find: timeout, .*…$/)
  assert.match(line(row('POLICY_DECISION', 'x'), { ...block, input }), /BLOCK refund by limit .*…$/)
  assert.match(line(row('SESSION_OUTCOME', 'completed'), { status: 'COMPLETED' }), /Outcome {5}completed$/)
  assert.match(line(row('TOOL_START', 'find'), { toolName: 'find' }), /Tool start {2}find$/)
  const asked = { action: 'REQUIRE_APPROVAL', toolName: 'refund' }
  assert.match(line(row('POLICY_DECISION', 'x'), asked), /^! .* REQUIRE_APPROVAL refund$/)
  assert.match(line(row('SESSION_OUTCOME', 'end'), { status: 'FAILED' }), /^✕ .*Outcome {5}FAILED: end$/)
  const cancelled = { status: 'CANCELLED', error: 'SIGTERM: The process was ended by SIGTERM.' }
  assert.match(line(row('SESSION_OUTCOME', 'cancelled'), cancelled), /cancelled: SIGTERM: The process .*…$/)
  for (const [type, payload, is] of [
    ['ERROR', {}, true],
    ['TOOL_CALL', { error: 'x' }, true],
    ['TOOL_CALL', { error: null }, false],
    ['TOOL_CALL', { error: false }, false],
    ['POLICY_DECISION', block, true],
    ['POLICY_DECISION', asked, false],
    ['SESSION_OUTCOME', { status: 'COMPLETED' }, false],
    ['LLM_CALL', 'not an object', false],
  ] as const) {
    assert.equal(isFailed(row(type, 'x'), payload, TIMELINE), is, type)
  }
  const start = row('TOOL_START', 'find')
  const lost = { ...TIMELINE, neverEnded: new Set(['e']) }
  const call = { toolName: 'find', input: { id: 7 } }
  assert.match(stepLine(start, call, lost, TERMINAL), /^✕ .* Tool start {2}NEVER ENDED find \{"id":7\}$/)
  assert.match(line(start, call), /^ {2}.* Tool start {2}find \{"id":7\}$/)
  assert.deepEqual([isFailed(start, call, lost), isFailed(start, call, TIMELINE)], [true, false])
})

test('each state of a call that neither returned nor failed has its words; the raw arguments are shown as received', () => {
  const call = { toolName: 'refund', toolCallId: 'a' }
  const never = {
    ...call,
    outcome: 'never_ran',
    reasonCode: 'cut',
    arguments: '{"order": 7, "amount": 5',
    error: { message: 'The answer was cut.' },
  }
  const pipe = (type: string, payload: object) => line(row(type, 'refund'), payload, PIPE)
  const text = 'NEVER RAN: THE ANSWER OF THE MODEL WAS CUT refund: The answer was cut. {"order": 7, "amount": 5'
  assert.ok(pipe('TOOL_CALL', never).startsWith('✕ ') && pipe('TOOL_CALL', never).endsWith(text))
  const declined = pipe('TOOL_CALL', { ...never, reasonCode: 'declined', error: undefined })
  assert.match(declined, /^ {2}.*NEVER RAN: DECLINED refund \{"order": 7, "amount": 5$/)
  assert.match(
    pipe('TOOL_CALL', { ...call, outcome: 'cancelled', input: { id: 7 } }),
    /^ {2}.*CANCELLED refund \{"id":7\}$/,
  )
  assert.match(pipe('TOOL_CALL', { ...call, outcome: 'did_not_report' }), /^! .*DID NOT REPORT BACK refund$/)
  const withdrawn = { ...call, approvalId: 'x', reason: 'process_ended' }
  assert.match(pipe('APPROVAL_WITHDRAWN', withdrawn), /^! .*approval of refund any more: process ended$/)
  assert.match(pipe('HANDOFF', { from: 'Triage', to: 'Refunds' }), /Triage hands off to Refunds$/)
  assert.match(pipe('TOOL_START', { ...call, agent: 'Refunds' }), /↳ Refunds: refund$/)
  const toolCalls = [{ id: 'a', name: 'refund', arguments: '{"order": 7', problem: 'cut' }]
  assert.match(
    pipe('LLM_CALL', { model: 'small-1', toolCalls }),
    /small-1: refund, the answer of the model was cut: \{"order": 7$/,
  )
  for (const [payload, is] of [
    [never, true],
    [{ ...never, reasonCode: 'declined' }, false],
    [{ ...call, outcome: 'cancelled', error: 'x' }, false],
    [{ ...call, outcome: 'did_not_report' }, false],
  ] as const)
    assert.equal(isFailed(row('TOOL_CALL', 'x'), payload, TIMELINE), is)
})

test('in a pipe a step has its exact time and type, and is not cut; clients cannot control the terminal', () => {
  const text = 'x'.repeat(250)
  assert.equal(line(row('USER_INPUT', 'q'), { text }, PIPE), `  2026-11-22T12:00:01.234Z  USER_INPUT       ${text}`)
  assert.ok(!line(row('ERROR', 'q'), { message: '\u001b[2J' }).includes('\u001b[2J'))
})
