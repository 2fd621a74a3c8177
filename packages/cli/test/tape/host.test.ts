/** The HTTP address of a replay: its secret, and its answers that do not come from the tape. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { verdictLines } from '../../src/record/replay.ts'
import { ReplayHost } from '../../src/record/tape/host.ts'
import { replayCommand } from '../../src/record/tape/replay-command.ts'
import type { ModelStep, Tape } from '../../src/record/tape/tape.ts'
import { madeTape, readBack } from './made-tape.ts'
import { collectGarbage } from '../../../server/test/setup/heap-growth.ts'

const model: ModelStep = {
  step: 1,
  kind: 'model',
  from: 1,
  to: 1,
  messages: [{ role: 'user', content: 'Hi' }],
  output: { role: 'assistant', content: 'Hello', toolCalls: [{ id: 'c1', name: 'look', arguments: { at: 1 } }] },
  usage: { promptTokens: 7, completionTokens: 3 },
}
const failing: ModelStep = {
  ...model,
  step: 2,
  from: 2,
  to: 2,
  error: { name: 'RateLimitError', message: '429 Slow down' },
}

const PROMPT = { name: 'greeting', promptId: 'p', version: '1', versionId: 'v', hash: 'h', content: 'Be kind.' }
const tapeOf = (steps: Tape['steps']): Tape => madeTape(steps, { prompts: [PROMPT] })

async function withHost(steps: Tape['steps'], act: (origin: string, host: ReplayHost) => Promise<void>): Promise<void> {
  const host = new ReplayHost(tapeOf(steps), { mode: 'strict', ignored: [] })
  try {
    await act(await host.start(), host)
  } finally {
    await host.close()
  }
}

const post = (url: string, body: unknown) => fetch(url, { method: 'POST', body: JSON.stringify(body) })

test('the proxy answers only requests with the secret path, on loopback, and none from web pages', async () => {
  await withHost([model], async (origin) => {
    const { hostname, origin: address, pathname } = new URL(origin)
    assert.deepEqual([hostname, pathname.length > 20], ['127.0.0.1', true])
    for (const path of ['/', '/openapi/v1/runtime-config', `${pathname.slice(0, -1)}/openapi/v1/runtime-config`])
      assert.equal((await fetch(`${address}${path}`)).status, 404)
    const configuration = (await (await fetch(`${origin}/openapi/v1/runtime-config`)).json()) as { prompts: object[] }
    assert.partialDeepStrictEqual(configuration.prompts, [{ name: 'greeting', content: 'Be kind.' }])
    assert.equal((await post(`${origin}/openapi/v1/replay/tool-calls`, { toolName: 1 })).status, 400)
    assert.equal((await post(`${origin}/openai/v1/files`, {})).status, 400)
  })
})

test('the command starts, whatever the user said first', async () => {
  for (const [text, isIn] of [
    ['a\0b', 'ab'],
    ['漢'.repeat(90_000), '漢'.repeat(33_333)],
  ]) {
    const tape = tapeOf([{ step: 1, kind: 'input', from: 0, to: 0, text }])
    const words = ['node', '-e', `process.exit(process.env.TACHO_REPLAY_INPUT === '${isIn}' ? 0 : 1)`]
    const options = { mode: 'strict', ignored: [], timeoutMs: 20_000, output: 'ignore' } as const
    assert.equal((await replayCommand(tape, words, options)).code, 0)
  }
})

test('one answer in the words of four providers, whole and streamed', async () => {
  for (const [path, body, expected] of [
    [
      '/openai/v1/chat/completions',
      { messages: [{ role: 'user', content: 'Hi' }] },
      /"tool_calls":\[\{"(index":0,")?id":"c1"/,
    ],
    ['/openai/v1/responses', { input: 'Hi' }, /"call_id":"c1","name":"look","arguments":"\{\\"at\\":1\}"/],
    [
      '/anthropic/v1/messages',
      { messages: [{ role: 'user', content: 'Hi' }] },
      /"type":"tool_use","id":"c1","name":"look"/,
    ],
    [
      '/gemini/v1beta/models/g:generateContent',
      { contents: 'Hi' },
      /"functionCall":\{"id":"c1","name":"look","args":\{"at":1\}\}/,
    ],
  ] as [string, object, RegExp][]) {
    for (const stream of [false, true]) {
      await withHost([model], async (origin) => {
        const reply = await post(`${origin}${stream ? path.replace(':generate', ':streamGenerate') : path}`, {
          ...body,
          stream,
        })
        assert.deepEqual(
          [reply.status, reply.headers.get('content-type')],
          [200, stream ? 'text/event-stream' : 'application/json'],
        )
        assert.match(await reply.text(), expected, `${path} ${stream}`)
      })
    }
  }
})

test('a recorded error has its status and its words, also if the client tries again', async () => {
  await withHost([model, failing], async (origin) => {
    const ask = () => post(`${origin}/openai/v1/chat/completions`, { messages: [{ role: 'user', content: 'Hi' }] })
    assert.equal((await ask()).status, 200)
    for (let attempt = 0; attempt < 2; attempt++) {
      const reply = await ask()
      assert.deepEqual([reply.status, reply.headers.get('x-should-retry')], [429, 'false'])
      assert.match(await reply.text(), /"message":"429 Slow down"/)
    }
  })
})

test('other telemetry of the command is off, and has no address but the tape', async () => {
  const script = `const { OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: at, TACHO_REPLAY } = process.env
    process.exit(OTEL_SDK_DISABLED === 'true' && OTEL_TRACES_EXPORTER === 'none' && at.startsWith(TACHO_REPLAY) ? 0 : 1)`
  process.env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] = 'http://collector.example:4318/v1/traces'
  for (const mode of ['strict', 'tools'] as const) {
    const options = { mode, ignored: [], timeoutMs: 20_000, output: 'ignore' } as const
    assert.equal((await replayCommand(tapeOf([]), ['node', '-e', script], options)).code, 0, mode)
  }
  delete process.env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']
})

test('a tape with an impossible status and escape sequences ends no host, and prints none of them', async () => {
  const wire = { protocol: '\u001b[2J', status: 99_999, isStream: false, body: '\u001b]0;x\u0007' }
  await withHost([{ ...model, wire }], async (origin) => {
    const ask = () => post(`${origin}/openai/v1/chat/completions`, { messages: [{ role: 'user', content: 'Hi' }] })
    assert.ok((await ask()).status >= 200)
    assert.equal((await fetch(`${origin}/openapi/v1/runtime-config`)).status, 200)
  })
  const step = { step: 1, kind: 'tool', from: 1, to: 1, tool: '\u001b[2J', input: {}, outcome: 'returned' } as const
  await withHost([step], async (origin, host) => {
    await post(`${origin}/openapi/v1/replay/tool-calls`, {
      toolName: 'x',
      input: { __proto__: null, text: '\u001b[2J' },
    })
    const result = { ...host.result('COMPLETED'), code: 0, milliseconds: 1, isSilent: false }
    assert.equal(verdictLines(result).join('\n').includes('\u001b'), false)
  })
})

const CALLS = 10_000
/** A program that requests the answer to each call of the tape, and delivers its events as an SDK does. */
const CALLER = `
const { gzipSync } = require('node:zlib')
const { Agent, request } = require('node:http')
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
const post = (path, body, headers = {}) => new Promise((resolve, reject) => {
  const sent = request(process.env.TACHO_REPLAY + '/openapi/v1' + path, { agent, method: 'POST', headers }, async (answer) => {
    if (answer.headers['content-length'] === undefined) throw new Error('an answer in pieces')
    resolve(JSON.parse((await answer.toArray()).join('')))
  })
  sent.on('error', reject).end(body)
})
let count = 0
let waiting = []
const record = (eventType, payload) => waiting.push({ eventId: 'e' + count, runId: 'r', eventType, label: '', timestamp: ++count, clientId: 'c', agentName: 'A', payload })
async function main() {
  for (let n = 0; n < ${CALLS}; n++) {
    const input = { n, text: n + 'x'.repeat(900) }
    const { output } = await post('/replay/tool-calls', JSON.stringify({ toolName: 'look', input }))
    record('TOOL_START', { toolName: 'look', input })
    record('TOOL_CALL', { toolName: 'look', input, output, startEventId: 'e' + (count - 1) })
    if (n === ${CALLS - 1}) record('SESSION_OUTCOME', { status: 'COMPLETED' })
    if (waiting.length < 100 && n < ${CALLS - 1}) continue
    await post('/events/batch', gzipSync(JSON.stringify(waiting), { level: 1 }), { 'content-encoding': 'gzip' })
    waiting = []
  }
  agent.destroy()
}
main()`

function longTape(): Tape {
  const steps = Array.from({ length: CALLS }, (_, n): Tape['steps'][number] => {
    const [input, output] = [{ n, text: `${n}${'x'.repeat(900)}` }, `${n}${'y'.repeat(900)}`]
    return { step: n + 1, kind: 'tool', from: n, to: n, tool: 'look', input, output, outcome: 'returned' }
  })
  steps.push({ step: CALLS + 1, kind: 'end', from: CALLS, to: CALLS, status: 'COMPLETED' })
  return readBack(tapeOf(steps))
}

test('after 10,000 calls by HTTP, the texts of the tape are held once', async () => {
  const tape = longTape()
  const held = () => {
    collectGarbage()
    return process.memoryUsage().heapUsed
  }
  const before = held()
  const options = { mode: 'strict', ignored: [], output: 'stderr', timeoutMs: 600_000 } as const
  const result = await replayCommand(tape, [process.execPath, '-e', CALLER], options)
  // The events' texts alone have 27 MB. They must share them with the tape.
  const more = held() - before
  assert.ok(more < 27_000_000, `${more} bytes`)
  assert.deepEqual([result.verdict, result.events.length, tape.steps.length], ['same', 2 * CALLS + 1, CALLS + 1])
})

test('a tool that runs for real is approved with its own input, or not at all', async () => {
  const [own, other] = ['aa'.repeat(32), 'bb'.repeat(32)]
  const timed = (step: number) => ({ step, from: step, to: step })
  const look = { ...timed(1), kind: 'tool', tool: 'look', input: {}, outcome: 'returned', output: 1 } as const
  const approval = { ...timed(2), kind: 'approval', tool: 'refund', inputHash: own, status: 'APPROVED' } as const
  const refund = { ...timed(3), kind: 'tool', tool: 'refund', input: { amount: 30 }, outcome: 'returned' } as const
  const replayed = async (inputHash: string, amount: number, isLiveWhenAsked: boolean) => {
    const host = new ReplayHost(tapeOf([look, approval, refund]), { mode: 'strict', ignored: [], from: 3 })
    const origin = await host.start()
    const answerOf = async (toolName: string, input: object) =>
      (await (await post(`${origin}/openapi/v1/replay/tool-calls`, { toolName, input })).json()) as { answer: string }
    const headers = { 'x-api-key': 'replay', 'x-service-client-id': 'c', 'content-type': 'application/json' }
    try {
      if (isLiveWhenAsked) assert.equal((await answerOf('look', {})).answer, 'returned')
      const body = JSON.stringify({ clientRequestId: 'r', toolName: 'refund', inputHash, timeoutMs: 60_000 })
      const url = `${origin}/openapi/v1/firewall-approvals`
      const { id } = (await (await fetch(url, { method: 'POST', headers, body })).json()) as { id: string }
      const { status } = (await (await fetch(`${url}/${id}`, { headers })).json()) as { status: string }
      if (!isLiveWhenAsked) assert.equal((await answerOf('look', {})).answer, 'returned')
      return [status, (await answerOf('refund', { amount })).answer]
    } finally {
      await host.close()
    }
  }
  assert.deepEqual(await replayed(own, 30, true), ['APPROVED', 'run'])
  assert.equal((await replayed(other, 9_999, true))[0], 'REJECTED')
  // The approval is requested while the tape answers, and the call runs after its end.
  assert.deepEqual(await replayed(own, 30, false), ['APPROVED', 'run'])
  assert.equal((await replayed(other, 9_999, false))[1], 'stop')
})
