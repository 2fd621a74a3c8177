/** The answers of a cursor, and the step at which it reports that an agent left its tape. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Cursor, type CursorOptions } from '../../src/record/tape/cursor.ts'
import { readExpectations } from '../../src/record/tape/expectations.ts'
import { recordedSteps, type RunEvent } from '../../src/record/tape/recorded-steps.ts'
import { readTape, tapeText, TapeFault, type Tape, type ToolStep } from '../../src/record/tape/tape.ts'
import { madeTape, readBack } from './made-tape.ts'
import { wireQuestion } from '../../src/record/tape/wire-answer.ts'
import { REAL_TRANSCRIPTS, withoutRealTranscripts } from '../real-transcripts.ts'

const STRICT: CursorOptions = { mode: 'strict', ignored: [] }
let count = 0

function event(eventType: string, payload: Record<string, unknown>, at: number): RunEvent {
  const eventId = `e${++count}`
  return {
    eventId,
    eventType,
    label: eventType,
    timestamp: 1_790_000_000_000 + at,
    clientId: 'c',
    agentName: 'A',
    payload,
  }
}

/** One call after the other, unless `open` names how many begin before the first ends. */
function calls(...given: { tool: string; input: unknown; output?: unknown; error?: unknown; agent?: string }[]) {
  return (open = 1): RunEvent[] => {
    const events: RunEvent[] = []
    for (let from = 0; from < given.length; from += open) {
      const group = given.slice(from, from + open)
      const starts = group.map(({ tool: toolName, input }) => event('TOOL_START', { toolName, input }, from))
      const ends = group.map(({ tool: toolName, ...result }, index) =>
        event('TOOL_CALL', { toolName, startEventId: starts[index]?.eventId, ...result }, from + 1),
      )
      events.push(...starts, ...ends)
    }
    return [...events, event('SESSION_OUTCOME', { status: 'COMPLETED' }, given.length + 1)]
  }
}

function tapeOf(events: readonly RunEvent[]): Tape {
  const { steps, obstacles, recordedBy, outcome, agent } = recordedSteps(events)
  const replayable = obstacles.length === 0 || obstacles
  return readBack(madeTape(steps, { agent, recordedBy, outcome, replayable }))
}

const A = { tool: 'a', input: { n: 1 }, output: 'one' }
const B = { tool: 'b', input: { n: 2 }, output: 'two' }

test('repeated calls get their answers in order, errors are errors, and the end closes the tape', () => {
  const tape = tapeOf(
    calls(A, { ...A, output: 'again' }, { tool: 'b', input: {}, error: { name: 'TypeError', message: 'no' } })(),
  )
  const cursor = new Cursor(tape, STRICT)
  assert.deepEqual(cursor.tool(A), { answer: 'returned', output: 'one', step: 1 })
  assert.deepEqual(cursor.tool(A), { answer: 'returned', output: 'again', step: 2 })
  assert.deepEqual(cursor.tool({ tool: 'b', input: {} }), {
    answer: 'failed',
    error: { name: 'TypeError', message: 'no' },
    step: 3,
  })
  cursor.end('COMPLETED')
  assert.equal(cursor.departure, undefined)
})

test('another order is a difference, unless the calls ran at once', () => {
  const inOrder = new Cursor(tapeOf(calls(A, B)()), STRICT)
  assert.equal(inOrder.tool(B).answer, 'stop')
  assert.match(String(inOrder.departure?.sentence), /^step 1: the tape has a \{"n":1\}, the agent asks b \{"n":2\}$/)
  const parallel = new Cursor(tapeOf(calls(A, B)(2)), STRICT)
  assert.equal(parallel.tool(B).answer, 'returned')
  assert.equal(parallel.tool(A).answer, 'returned')
  parallel.end('COMPLETED')
  assert.equal(parallel.departure, undefined)
})

test('a missing call, another outcome and one call too many are found at the end', () => {
  const missing = new Cursor(tapeOf(calls(A, B)()), STRICT)
  missing.tool(A)
  missing.end('COMPLETED')
  assert.match(
    String(missing.departure?.sentence),
    /^step 2: the tape has b \{"n":2\}, the agent ended with COMPLETED$/,
  )
  const failed = new Cursor(tapeOf(calls(A)()), STRICT)
  failed.tool(A)
  failed.end('FAILED')
  assert.equal(failed.departure?.step, 2)
  const more = new Cursor(tapeOf(calls(A)()), STRICT)
  more.tool(A)
  assert.match(JSON.stringify(more.tool(B)), /step 3: the tape has ended, the agent asks b/)
})

test('nothing after a difference is answered, and nothing runs', () => {
  const cursor = new Cursor(tapeOf(calls(A, B)()), STRICT)
  cursor.tool({ tool: 'a', input: { n: 9 } })
  assert.equal(cursor.departure?.differences[0]?.path, 'input.n')
  assert.equal(cursor.tool(A).answer, 'stop')
  assert.equal(cursor.model([]).answer, 'stop')
})

test('a changed text of a long request is shown where it changed', () => {
  const long = (word: string) =>
    `${'You are an agent. '.repeat(40)}Be ${word} to people. ${'Answer at once. '.repeat(40)}`
  const asked = (system: string) => [
    { role: 'system', content: system },
    { role: 'user', content: 'Hi' },
  ]
  const events = [
    event(
      'LLM_CALL',
      { model: 'm', messages: asked(long('polite')), output: { role: 'assistant', content: 'Yes' } },
      1,
    ),
    event('SESSION_OUTCOME', { status: 'COMPLETED' }, 2),
  ]
  const cursor = new Cursor(tapeOf(events), STRICT)
  cursor.model(asked(long('very rude')))
  const [first = '', detail = ''] = String(cursor.departure?.sentence).split('\n')
  assert.match(
    first,
    /, the agent asks a model with another system text: "….*Be polite to.*…" is now "….*Be very rude to.*…"$/,
  )
  assert.ok(first.length < 300 && detail.length < 250, first + detail)
})

test('with live models: calls in any order, stubs, tools that only read, and otherwise a stop', () => {
  const options: CursorOptions = {
    mode: 'tools',
    ignored: [['tool', 'input', 'id']],
    readOnly: new Set(['read']),
    stubs: new Map([['stubbed', { ok: true }]]),
  }
  const cursor = new Cursor(tapeOf(calls(A, B)()), options)
  assert.equal(cursor.model([{ role: 'user', content: 'x' }]).answer, 'live')
  assert.deepEqual(cursor.tool({ tool: 'b', input: { n: 2, id: 'new' } }), {
    answer: 'returned',
    output: 'two',
    step: 2,
  })
  assert.deepEqual(cursor.tool({ tool: 'stubbed', input: {} }), { answer: 'returned', output: { ok: true } })
  assert.deepEqual(cursor.tool({ tool: 'read', input: {} }), { answer: 'run' })
  assert.equal(cursor.tool({ tool: 'b', input: { n: 2 } }).answer, 'stop')
})

test('what was masked matches anything in its place, and nothing else', () => {
  const masked = { tool: 'a', input: { card: 'no [masked:card], thanks', key: '[masked:credential]' }, output: 1 }
  const ask = (input: unknown) => new Cursor(tapeOf(calls(masked)()), STRICT).tool({ tool: 'a', input }).answer
  assert.equal(ask({ card: 'no 4111 1111, thanks', key: { any: 1 } }), 'returned')
  assert.equal(ask({ card: 'yes 4111 1111, thanks', key: 'x' }), 'stop')
  // A malicious tape with many marks: the text is read once, not once for each mark.
  const text = { tool: 'a', input: '[masked:'.repeat(100_000), output: 1 }
  const begun = process.threadCpuUsage()
  assert.equal(new Cursor(tapeOf(calls(text)()), STRICT).tool({ tool: 'a', input: 'x' }).answer, 'stop')
  assert.ok(process.threadCpuUsage(begun).user < 2_000_000)
})

test('a file of a stranger is checked member by member, and a changed one is refused', () => {
  const good = tapeText(tapeOf(calls(A, B)()))
  const [head = '', first = '', ...rest] = good.trimEnd().split('\n')
  const refused = (lines: string[], why: RegExp) =>
    assert.throws(
      () => readTape(Buffer.from(lines.join('\n'))),
      (error) => error instanceof TapeFault && why.test(error.message),
    )
  refused([head, first.replace('"one"', '"two"'), ...rest], /checksum differs/)
  refused([head.replace('"tape":1', '"tape":2'), first, ...rest], /version 2; this program reads version 1/)
  refused(['{"any":1}'], /is not a tape/)
  refused(['[]'], /is not an object/)
  refused(['{'], /is not JSON/)
  refused([head, first.replace('"kind":"tool"', '"kind":"__proto__"')], /kind must be one of/)
  refused([head, first.replace('{', '{"command":"rm",')], /unknown member "command"/)
  refused([head, first.replace('"step":1', '"step":"1"')], /step has a wrong value/)
  refused([head, first.replace('"one"', '['.repeat(300) + ']'.repeat(300))], /nested too deeply/)
  refused([head, `{"x":"${'x'.repeat(5_000_000)}"}`], /line 2 of more than 4 MiB/)
  const timed = { step: 1, kind: 'model', from: 0, to: 0 }
  for (const status of [99_999, 0, 101, 199, 600, -1, 200.5, '200', null]) {
    const wire = { protocol: 'chat', status, isStream: false, body: '{}' }
    refused(
      [head, JSON.stringify({ ...timed, wire })],
      /^line 2: wire\.status must be a status of an HTTP answer, from 200 to 599$/,
    )
  }
  refused([head, JSON.stringify({ ...timed, wire: { status: 200 } })], /wire\.protocol is missing/)
  refused([head, JSON.stringify({ ...timed, wire: 'x' })], /wire has a wrong value/)
})

test('30,000 events are read and replayed within five seconds', () => {
  const many = Array.from({ length: 15_000 }, (_, n) => ({ tool: `t${n % 7}`, input: { n }, output: 'x'.repeat(500) }))
  const bytes = Buffer.from(tapeText(tapeOf(calls(...many)())))
  const begun = process.cpuUsage()
  const cursor = new Cursor(readTape(bytes), STRICT)
  for (const { tool, input } of many) assert.equal(cursor.tool({ tool, input }).answer, 'returned')
  cursor.end('COMPLETED')
  assert.equal(cursor.departure, undefined)
  const { user, system } = process.cpuUsage(begun)
  assert.ok(user + system < 5_000_000, `${user + system} µs`)
})

test('thousands of calls that overlap or are equal are found in any order within five seconds', () => {
  const parallel = Array.from({ length: 7_500 }, (_, n): ToolStep => {
    const input = { n, at: n % 2 ? '[masked:email]' : 'a' }
    return { step: n + 1, kind: 'tool', from: n, to: 20_000, tool: 'look', input, outcome: 'returned', output: n }
  })
  const equal = parallel.map((step): ToolStep => ({ ...step, from: step.step, to: step.step, input: {}, agent: 'A' }))
  for (const [steps, mode] of [
    [parallel, 'strict'],
    [parallel, 'tools'],
    [equal, 'strict'],
  ] as const) {
    const begun = process.cpuUsage()
    const cursor = new Cursor({ steps }, { mode, ignored: [] })
    const asked = steps === equal ? steps : steps.toReversed()
    for (const { tool, input, output } of asked)
      assert.partialDeepStrictEqual(cursor.tool({ tool, input }), { answer: 'returned', output })
    cursor.end('COMPLETED')
    assert.equal(cursor.departure, undefined)
    const { user, system } = process.cpuUsage(begun)
    assert.ok(user + system < 5_000_000, `${user + system} µs`)
  }
})

test('the example of the docs is what a test can expect, and an unknown member is named', () => {
  const page = readFileSync(new URL('../../../../docs/replay.md', import.meta.url), 'utf8')
  const [, example = ''] = /```yml\n([^]*?)```/.exec(page) ?? []
  assert.partialDeepStrictEqual(readExpectations(example), { mode: 'tools', never: ['send_certificate'] })
  assert.throws(() => readExpectations('tool: [a]'), /unknown member "tool"; use mode, ignore/)
  assert.throws(() => readExpectations('budget: { tokens: many }'), /budget.tokens must be a number from 0/)
})

interface Said {
  role: string
  content?: string | null
  tool_calls?: { id: string; function: { name: string; arguments: string } }[]
  tool_call_id?: string
}

interface Twist {
  prompt?: string
  /** The number of the call whose input changes. */
  input?: number
  /** The number of the call that is swapped with the next one. */
  swap?: number
}

/** The agent's requests contain the answers that it got, so a wrong answer would show as a difference. */
function airlineAgent(cursor: Cursor, script: readonly Said[], twist: Twist = {}): void {
  const messages: Said[] = []
  const answered = script
    .flatMap(({ tool_calls: asked = [] }) => asked)
    .filter(({ id: callId }) => script.some(({ tool_call_id: id }) => id === callId))
  let tools = 0
  for (const [at, one] of script.entries()) {
    if (one.role === 'system') messages.push({ ...one, content: twist.prompt ?? one.content ?? '' })
    else if (one.role === 'user') messages.push(one)
    else if (one.role === 'assistant') {
      const question = wireQuestion('/v1/chat/completions', { model: 'm', messages, stream: at % 2 === 0 })
      const answer = cursor.model(question?.messages)
      if (answer.answer !== 'tape') return
      const body = question?.reply(answer.step).body ?? ''
      const message =
        at % 2 === 0 ? streamed(body) : (JSON.parse(body) as { choices: { message: Said }[] }).choices[0]?.message
      messages.push(message as Said)
      for (const call of message?.tool_calls ?? []) {
        if (!script.some(({ tool_call_id: id }) => id === call.id)) continue
        const { name: tool, arguments: text } =
          (++tools === twist.swap ? answered[tools] : call)?.function ?? call.function
        const input = JSON.parse(text) as Record<string, unknown>
        if (tools === twist.input) input['changed'] = true
        const result = cursor.tool({ tool, input })
        if (result.answer !== 'returned') return
        messages.push({ role: 'tool', content: String(result.output), tool_call_id: call.id })
      }
    }
  }
  cursor.end('COMPLETED')
}

function streamed(body: string): Said {
  const deltas = [...body.matchAll(/^data: (\{.*)$/gm)].flatMap(([, json = '']) => {
    const { choices } = JSON.parse(json) as { choices: { delta: Said }[] }
    return choices.map(({ delta }) => delta)
  })
  const content = deltas.map((delta) => delta.content ?? '').join('')
  const calls = deltas.flatMap((delta) => delta.tool_calls ?? [])
  return { role: 'assistant', content: content === '' ? null : content, ...(calls.length > 0 && { tool_calls: calls }) }
}

function airlineTape(script: readonly Said[]): Tape {
  const events: RunEvent[] = []
  const messages: Said[] = []
  const names = new Map<string, { name: string; arguments: string }>()
  for (const [at, one] of script.entries()) {
    if (one.role === 'assistant') {
      events.push(event('LLM_CALL', { model: 'gpt-4o', messages: [...messages], output: one, latency: 1 }, at * 10))
      for (const { id, function: named } of one.tool_calls ?? []) names.set(id, named)
    } else if (one.role === 'tool') {
      const { name: toolName = '', arguments: text = '{}' } = names.get(String(one.tool_call_id)) ?? {}
      const payload = { toolName, input: JSON.parse(text) as unknown, toolCallId: one.tool_call_id }
      const start = event('TOOL_START', payload, at * 10)
      events.push(
        start,
        event('TOOL_CALL', { ...payload, startEventId: start.eventId, output: one.content }, at * 10 + 1),
      )
    }
    messages.push(one)
  }
  return tapeOf([...events, event('SESSION_OUTCOME', { status: 'COMPLETED' }, script.length * 10)])
}

test(
  '150 real runs: an unchanged agent differs nowhere; a changed prompt, input or order of tools is found at its step',
  { skip: withoutRealTranscripts },
  () => {
    const runs = readFileSync(REAL_TRANSCRIPTS, 'utf8').trimEnd().split('\n')
    const isSameCall = (one: ToolStep, other: ToolStep) =>
      JSON.stringify([one.tool, one.input]) === JSON.stringify([other.tool, other.input])
    let [changedInputs, changedOrders] = [0, 0]
    for (const line of runs) {
      const { messages } = JSON.parse(line) as { messages: Said[] }
      // After the last answer there is no further request, and some runs end with an unanswered call.
      const script = messages.slice(0, messages.findLastIndex(({ role }) => role !== 'user') + 1)
      const tape = airlineTape(script)
      assert.equal(tape.head.replayable, true)
      const replay = (twist: Twist) => {
        const cursor = new Cursor(tape, STRICT)
        airlineAgent(cursor, script, twist)
        return cursor.departure
      }
      assert.equal(replay({})?.sentence, undefined)
      assert.deepEqual(
        [replay({ prompt: 'Be kind.' })?.step, replay({ prompt: 'Be kind.' })?.differences[0]?.path],
        [1, 'messages.0.text'],
      )
      const calls = tape.steps.filter((step) => step.kind === 'tool')
      for (const [index, call] of calls.entries()) {
        const departure = replay({ input: index + 1 })
        assert.equal(departure?.step, call.step, String(departure?.sentence))
        changedInputs++
        const next = calls[index + 1]
        if (!next || isSameCall(next, call)) continue
        const swapped = replay({ swap: index + 1 })
        assert.equal(swapped?.step, call.step, String(swapped?.sentence))
        changedOrders++
      }
    }
    assert.ok(changedInputs > 500, String(changedInputs))
    assert.ok(changedOrders > 300, String(changedOrders))
  },
)
