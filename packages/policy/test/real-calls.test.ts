import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { decide } from '../src/decide.ts'
import { evaluate } from '../src/evaluate.ts'
import { inputHash } from '../src/input/input-hash.ts'
import { condition } from './condition.ts'

// 150 recorded runs of an airline's agent (tau-bench, MIT), from outside the project: TEST_TRANSCRIPTS, or a folder beside
// the checkout.
const file =
  process.env['TEST_TRANSCRIPTS'] ?? path.resolve(import.meta.dirname, '../../../../shared/data/tau-airline/runs.jsonl')
const skip = existsSync(file) ? false : 'there are no real transcripts here'

type Message = { tool_calls?: { function: { name: string; arguments: string } }[] | null }
type Input = Record<string, unknown> & {
  passengers?: unknown[]
  flights?: unknown[]
  payment_methods?: { payment_id: string }[]
}
type ToolCall = { name: string; input: Input }

function readCalls(): ToolCall[] {
  const runs = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { messages: Message[] })
  return runs
    .flatMap(({ messages }) => messages.flatMap((message) => message.tool_calls ?? []))
    .map((call) => ({ name: call.function.name, input: JSON.parse(call.function.arguments) as Input }))
}

test('conditions over real tool calls match exactly what a plain script counts', { skip }, () => {
  const calls = readCalls()
  assert.ok(calls.length > 500)
  const expected: [string, (call: ToolCall) => boolean][] = [
    [
      'tool.name in ["cancel_reservation", "update_reservation_flights"]',
      ({ name }) => ['cancel_reservation', 'update_reservation_flights'].includes(name),
    ],
    ['tool.name.matches("^(book|cancel|update|send)_")', ({ name }) => /^(book|cancel|update|send)_/.test(name)],
    [
      'tool.name == "book_reservation" && size(tool.input.passengers) > 1',
      ({ name, input }) => name === 'book_reservation' && (input.passengers?.length ?? 0) > 1,
    ],
    [
      'has(tool.input.payment_methods) && tool.input.payment_methods.exists(p, p.payment_id.startsWith("certificate"))',
      ({ input }) => (input.payment_methods ?? []).some(({ payment_id }) => payment_id.startsWith('certificate')),
    ],
    ['has(tool.input.amount) && tool.input.amount >= 100', ({ input }) => Number(input['amount'] ?? 0) >= 100],
    [
      '"cabin" in tool.input && tool.input.cabin != "basic_economy"',
      ({ input }) => 'cabin' in input && input['cabin'] !== 'basic_economy',
    ],
    [
      'has(tool.input.flights) && tool.input.flights.all(f, f.date.matches("^2024-05-(1[0-9]|2[0-9])$"))',
      ({ input }) =>
        input.flights?.every((flight) => /^2024-05-(1[0-9]|2[0-9])$/.test((flight as { date: string }).date)) ?? false,
    ],
  ]
  for (const [source, holds] of expected) {
    const compiled = condition(source)
    let matches = 0
    for (const { name, input } of calls) {
      const result = evaluate(compiled, { tool: { name, input }, now: 0 })
      assert.deepEqual(
        result,
        { ok: true, matched: holds({ name, input }) },
        `${source} on ${name} ${JSON.stringify(input)}`,
      )
      if (result.ok && result.matched) matches++
    }
    assert.ok(matches > 0 && matches < calls.length, `${source} matched ${matches}`)
  }
})

test('real tool calls are decided and hashed without a failure', { skip }, () => {
  const policy = { name: 'n', version: '1', severity: 'HIGH' }
  const policies = [
    { ...policy, policyId: 'a', condition: 'tool.name == "cancel_reservation"', action: 'REQUIRE_APPROVAL' },
    {
      ...policy,
      policyId: 'b',
      condition: 'tool.name == "send_certificate" && tool.input.amount > 200',
      action: 'BLOCK',
    },
  ]
  const hashes = new Map<string, string>()
  for (const { name, input } of readCalls()) {
    const { failures, action } = decide(policies, { tool: { name, input }, now: 0 })
    assert.deepEqual(failures, [])
    if (name === 'cancel_reservation') assert.equal(action, 'REQUIRE_APPROVAL')
    // Equal hashes mean equal calls; agents repeat many calls.
    const hash = inputHash(name, input)
    const call = JSON.stringify([name, Object.entries(input).sort(([a], [b]) => (a < b ? -1 : 1))])
    assert.equal(hashes.get(hash) ?? call, call)
    hashes.set(hash, call)
  }
  assert.ok(hashes.size > 100)
})
