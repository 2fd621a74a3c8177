/** What failed, as read from events of the SDKs, of OpenTelemetry and of plain HTTP clients. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  cancellationOf,
  causeLines,
  FAILURE_CHARS,
  failureLine,
  failureOf,
  isErrorEvent,
  whyCancelled,
  whyLook,
  type Failure,
} from '../src/issues/failure.ts'
import { anyCharacter } from './any-character.ts'

const told = (eventType: string, payload: Record<string, unknown>, label = 'label'): Failure | null =>
  failureOf({ eventType, label, payload })

/** `place: class | message | causes` */
function line(failure: Failure | null): string | null {
  if (failure === null) return null
  const { place, errorClass, message, causes } = failure
  const text = (one: Pick<Failure, 'errorClass' | 'message'>) => `${one.errorClass ?? '-'} | ${one.message ?? '-'}`
  return [`${place.kind} ${place.name ?? '-'}: ${text({ errorClass, message })}`, ...causes.map(text)].join(' < ')
}

const JS_STACK = `TimeoutError: no answer after 5,000 ms
    at getOrder (/app/orders.ts:12:9)
    at async main (/app/main.ts:3:1) {
  [cause]: Error: connect ECONNREFUSED 127.0.0.1:5432
      at TCPConnectWrap.afterConnect (node:net:1)
}`

const PYTHON_STACK = `Traceback (most recent call last):
  File "/app/db.py", line 3, in connect
    sock.connect(address)
ConnectionRefusedError: [Errno 111] Connection refused

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/agent.py", line 9, in run
    order = get_order("42")
            ^^^^^^^^^^^^^^^
app.errors.OrderError: no order 42
the second line
`

test('an outcome names the exception, its causes and its stack as the SDKs write them', () => {
  const exception = {
    type: 'TimeoutError',
    message: 'no answer after 5 s\nand more',
    stack: JS_STACK,
    causes: [{ type: 'Error', message: 'connect ECONNREFUSED' }],
  }
  const failure = told('SESSION_OUTCOME', { status: 'FAILED', error: 'TimeoutError: no answer after 5 s', exception })
  assert.equal(line(failure), 'run -: TimeoutError | no answer after 5 s < Error | connect ECONNREFUSED')
  assert.equal(failure?.stack, JS_STACK)
})

test('a text, a stack and an object say the same', () => {
  const cases: [unknown, string][] = [
    ['TimeoutError: no answer', 'TimeoutError | no answer'],
    ['httpx.ReadTimeout: timed out', 'httpx.ReadTimeout | timed out'],
    ['OSError', 'OSError | -'],
    ['StopIteration', 'StopIteration | -'],
    ['no such order: 42', '- | no such order: 42'],
    ['Warning: this is text', '- | Warning: this is text'],
    ['\n  KeyError: 42  \nmore', 'KeyError | 42'],
    ['[left out]', '- | -'],
    [true, '- | -'],
    ['', '- | -'],
    [{}, '- | -'],
    [{ message: 'no', type: 'ValueError' }, 'ValueError | no'],
    [{ message: 'ValueError: no', name: 'ValueError' }, 'ValueError | no'],
    [{ 'exception.type': 'ValueError', 'exception.message': 'no' }, 'ValueError | no'],
    [['first error', 'second'], '- | first error'],
    [[{ message: 'first', type: 'AError' }], 'AError | first'],
    [JS_STACK, 'TimeoutError | no answer after 5,000 ms < Error | connect ECONNREFUSED 127.0.0.1:5432'],
    [PYTHON_STACK, 'app.errors.OrderError | no order 42 < ConnectionRefusedError | [Errno 111] Connection refused'],
    [
      { type: 'OrderError', stack: PYTHON_STACK },
      'OrderError | no order 42 < ConnectionRefusedError | [Errno 111] Connection refused',
    ],
    [
      { stacktrace: 'java.io.IOException: no\n\tat a.B.c(B.java:1)\nCaused by: java.net.SocketException: reset' },
      'java.io.IOException | no < java.net.SocketException | reset',
    ],
  ]
  for (const [error, expected] of cases) {
    assert.equal(line(told('TOOL_CALL', { toolName: 'get_order', error })), `tool get_order: ${expected}`)
  }
})

test('it says where: a tool, a model, a step, the run', () => {
  const error = 'TypeError: x'
  assert.equal(line(told('LLM_CALL', { model: 'gpt-5', error })), 'model gpt-5: TypeError | x')
  assert.equal(line(told('LLM_CALL', { error })), 'model -: TypeError | x')
  assert.equal(line(told('TOOL_CALL', { error }, 'pay')), 'tool pay: TypeError | x')
  assert.equal(line(told('AGENT_STEP', { error }, 'plan')), 'step plan: TypeError | x')
  assert.equal(line(told('AGENT_END', { status: 'FAILED', error, name: 'helper' }, 'plan')), 'step plan: TypeError | x')
  assert.equal(line(told('ERROR', { message: 'x' }, 'TypeError')), 'run -: TypeError | x')
  assert.equal(line(told('ERROR', { message: 'x', code: 'ValueError' }, 'exception')), 'run -: ValueError | x')
  assert.equal(line(told('ERROR', { message: 'x', model: 'm', code: '529' }, 'api_error')), 'model m: - | x')
  assert.equal(line(told('ERROR', { message: 'x', toolName: 'pay' }, 'error')), 'tool pay: - | x')
})

test('an outcome that only says FAILED tells a failure, but is no error event; a reason makes it one', () => {
  assert.equal(line(told('SESSION_OUTCOME', { status: 'FAILED', name: 'x', type: 'y' })), 'run -: - | -')
  assert.equal(line(told('SESSION_OUTCOME', { status: 'FAILED', reason: 'no money' })), 'run -: - | no money')
  assert.equal(isErrorEvent('SESSION_OUTCOME', { status: 'FAILED' }), false)
  assert.equal(isErrorEvent('SESSION_OUTCOME', { status: 'FAILED', error: 'x' }), true)
  assert.equal(isErrorEvent('SESSION_OUTCOME', { status: 'FAILED', reason: 'no money' }), true)
  for (const status of ['COMPLETED', 'CANCELLED', undefined]) {
    assert.equal(told('SESSION_OUTCOME', { status, error: 'x' }), null)
    assert.equal(isErrorEvent('SESSION_OUTCOME', { status, error: 'x', reason: 'y' }), false)
  }
})

test('one line says what, where and why; causes follow', () => {
  const error = { errorClass: 'TimeoutError', message: 'no answer' }
  assert.equal(failureLine(error, { kind: 'tool', name: 'get_order' }), 'TimeoutError in get_order: no answer')
  assert.equal(failureLine(error, { kind: 'model', name: 'gpt-5' }), 'TimeoutError from gpt-5: no answer')
  assert.equal(failureLine(error, { kind: 'run', name: null }), 'TimeoutError: no answer')
  const blocked = { errorClass: 'tacho_sdk.ToolBlockedError', message: 'The tool pay was not run (policy): too much' }
  assert.equal(failureLine(blocked, { kind: 'tool', name: 'pay' }), blocked.message)
  const failure = told('TOOL_CALL', { toolName: 'get_order', error: JS_STACK })
  assert.deepEqual(failure && causeLines(failure), ['because Error: connect ECONNREFUSED 127.0.0.1:5432'])
})

test('a list says why a person should look: a run failed, was cancelled, or is silent', () => {
  const now = Date.UTC(2026, 10, 22, 12)
  const startedAt = new Date(now - 20 * 60_000).toISOString()
  const failure = { errorClass: 'TimeoutError', message: 'no answer', place: 'tool', name: 'get_order' } as const
  const run = { startedAt, endedAt: startedAt, lastEventAt: startedAt, closedByRuleAt: null, failure }
  assert.equal(whyLook({ ...run, status: 'FAILED' }, now), 'TimeoutError in get_order: no answer')
  assert.equal(whyLook({ ...run, status: 'FAILED', closedByRuleAt: startedAt }, now), 'its process went silent')
  assert.equal(whyLook({ ...run, status: 'CANCELLED' }, now), 'TimeoutError in get_order: no answer')
  assert.equal(whyLook({ ...run, status: 'COMPLETED' }, now), null)
  assert.equal(whyLook({ ...run, status: 'RUNNING', endedAt: null }, now), 'no event for 20 m 00 s')
  assert.equal(whyLook({ ...run, status: 'RUNNING', endedAt: null }, now - 10 * 60_000), null)
})

test('a cancelled run may say why, and is no failure', () => {
  const exception = { type: 'SIGTERM', message: 'The process was ended by SIGTERM.' }
  const payload = { status: 'CANCELLED', error: 'SIGTERM: The process was ended by SIGTERM.', exception }
  assert.equal(whyCancelled('SESSION_OUTCOME', payload), 'SIGTERM: The process was ended by SIGTERM.')
  assert.equal(whyCancelled('SESSION_OUTCOME', { status: 'CANCELLED', reason: 'the user left' }), 'the user left')
  assert.equal(whyCancelled('SESSION_OUTCOME', { status: 'CANCELLED' }), null)
  assert.equal(whyCancelled('SESSION_OUTCOME', { status: 'FAILED', exception }), null)
  assert.equal(told('SESSION_OUTCOME', payload), null)
  const event = {
    eventType: 'SESSION_OUTCOME',
    label: 'cancelled',
    payload: { ...payload, exception: { ...exception, stack: 'at a' } },
  }
  assert.deepEqual(cancellationOf(event)?.stack, 'at a')
})

test('metadata-only capture leaves the classes', () => {
  const exception = { type: 'TimeoutError', causes: [{ type: 'OSError' }] }
  const failure = told('SESSION_OUTCOME', { status: 'FAILED', error: 'TimeoutError', exception })
  assert.equal(line(failure), 'run -: TimeoutError | - < OSError | -')
})

test('other events tell none', () => {
  for (const error of [undefined, null, false]) assert.equal(told('TOOL_CALL', { toolName: 'pay', error }), null)
  assert.equal(told('POLICY_DECISION', { action: 'BLOCK', error: 'x' }), null)
  assert.equal(told('USER_INPUT', { text: 'Error: x', error: 'x' }), null)
})

const types = fc.constantFrom(
  'TOOL_CALL',
  'LLM_CALL',
  'AGENT_STEP',
  'ERROR',
  'SESSION_OUTCOME',
  'AGENT_END',
  'constructor',
)
const words = fc.constantFrom(
  'constructor',
  '__proto__',
  'toString',
  'type',
  'name',
  'message',
  'stack',
  'causes',
  'errors',
)
const text = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc.constantFrom(
    PYTHON_STACK,
    JS_STACK,
    'Traceback (most recent call last):',
    '\0Error: \ud800',
    'Error:',
    'a.B: \u2028',
  ),
)
const anything = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, text, fc.double(), fc.boolean(), fc.constant(null), tie('list'), tie('fields')),
  list: fc.array(tie('value'), { maxLength: 3 }),
  fields: fc.dictionary(fc.oneof(words, fc.constantFrom('exception.type', 'exception.stacktrace')), tie('value')),
}))

test('whatever the shape: texts that every store accepts, within their bounds', () => {
  const payloads = fc.record({
    status: fc.constant('FAILED'),
    error: anything.value,
    exception: anything.value,
    message: text,
  })
  fc.assert(
    fc.property(types, text, payloads, (eventType, label, payload) => {
      const failure = failureOf({ eventType, label, payload: payload as Record<string, unknown> })
      if (failure === null) return assert.equal(isErrorEvent(eventType, payload as Record<string, unknown>), false)
      assertBounded(failure)
    }),
    { numRuns: 2_000 },
  )
})

test('prototype words of JSON are fields like others', () => {
  const payload = JSON.parse('{"error":{"__proto__":{"message":"x","type":"y"},"constructor":"z"}}') as object
  assert.equal(line(told('TOOL_CALL', { ...payload }, 'pay')), 'tool pay: - | -')
})

test('texts of megabytes take a moment and stay bounded', () => {
  const million = 1_000_000
  const texts = ['x', '\n', ' ', '\n  at ', 'Caused by: ', 'A.', '\ud83d\ude00', 'Traceback (most recent call last):\n']
  for (const piece of texts) {
    const long = piece.repeat(Math.ceil((2 * million) / piece.length))
    const begun = process.cpuUsage()
    for (const error of [long, { message: long, stack: long, type: long, causes: Array(million).fill(long) }]) {
      assertBounded(told('TOOL_CALL', { toolName: long, error }) as Failure)
    }
    const { user, system } = process.cpuUsage(begun)
    // A search that goes back over such a text takes minutes.
    assert.ok(user + system < 5_000_000, `${JSON.stringify(piece)} took ${(user + system) / 1_000} ms`)
  }
})

const isStorable = (value: string) => value.isWellFormed() && !value.includes('\0')

function assertBounded({ place, errorClass, message, stack, causes }: Failure): void {
  const within = (value: string | null, chars: number) => {
    if (value === null) return
    assert.ok(Array.from(value).length <= chars && isStorable(value), JSON.stringify(value.slice(0, 200)))
  }
  within(stack, FAILURE_CHARS.stack)
  within(place.name, FAILURE_CHARS.name)
  assert.ok(causes.length <= 10)
  for (const one of [{ errorClass, message }, ...causes]) {
    within(one.errorClass, FAILURE_CHARS.errorClass)
    within(one.message, FAILURE_CHARS.message)
    assert.doesNotMatch(`${one.errorClass} ${one.message}`, /[\r\n]/)
  }
}

test('an error whose class a bundler shortened has the class of its status, or its code', () => {
  const error = (exception: object) => told('LLM_CALL', { model: 'm', exception })?.errorClass
  for (const [status, errorClass] of [
    [401, 'AuthenticationError'],
    [429, 'RateLimitError'],
    [503, 'InternalServerError'],
    [418, 'Error [418]'],
  ] as const) {
    assert.equal(error({ type: 'Error', message: 'm', status, code: 'x' }), errorClass)
  }
  assert.equal(error({ type: 'Error', message: 'm', code: 'ECONNREFUSED' }), 'Error [ECONNREFUSED]')
  assert.equal(error({ type: 'Error', message: 'm', status: 200 }), 'Error')
  assert.equal(error({ type: 'openai.RateLimitError', message: 'm', status: 500 }), 'openai.RateLimitError')
})
