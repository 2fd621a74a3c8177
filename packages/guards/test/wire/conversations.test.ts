/** Which requests of a program are one conversation, and which conversations are runs of their own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AnswerShare } from '../../src/wire/body-copy.ts'
import { startRecordedWire, type RecordedWire } from './recorded-wire.ts'
import { answerJson, chatAnswer, type Script } from './scripted-model.ts'

type Said = Readonly<Record<string, unknown>>

const user = (content: string): Said => ({ role: 'user', content })
const system = (content: string): Said => ({ role: 'system', content })
const TOOLS = [{ type: 'function', function: { name: 'task' } }]

async function ask(wire: RecordedWire, messages: readonly Said[], more: object = {}): Promise<Said> {
  const body = JSON.stringify({ model: 'gpt-5', messages, ...more })
  const answer = await fetch(`${wire.baseOf('openai', '/v1')}/chat/completions`, { method: 'POST', body })
  return ((await answer.json()) as { choices: { message: Said }[] }).choices[0]?.message ?? {}
}

/** Repeats the last message as its answer, or asks for the tools if the last message lists some as JSON. */
const echo: Script = async ({ body }, response) => {
  const { messages } = JSON.parse(body.toString()) as { messages: { role: string; content: string }[] }
  const last = messages.at(-1)
  if (last?.content.includes('slow')) await new Promise((resolve) => setTimeout(resolve, 150))
  const calls =
    last?.role === 'user' && last.content.startsWith('[')
      ? (JSON.parse(last.content) as { id: string; name: string; args: string }[])
      : []
  answerJson(response, chatAnswer(`You said ${last?.content.slice(0, 40)}`, calls))
}

async function runsOf(wire: RecordedWire) {
  const events = await wire.end()
  const ids = [...new Set(events.map(({ runId }) => runId))]
  return ids.map((runId) => events.filter((event) => event.runId === runId))
}

const inputsOf = (events: Awaited<ReturnType<typeof runsOf>>[number]) =>
  events.filter(({ eventType }) => eventType === 'USER_INPUT').map(({ payload }) => payload['text'])

test('questions one after another are one run; each input is recorded once', async () => {
  await using wire = await startRecordedWire(echo)
  const first = [user('one')]
  const answer = await ask(wire, first)
  await ask(wire, [...first, answer, user('two')])
  await ask(wire, [user('something else')])
  const [run = [], ...others] = await runsOf(wire)
  assert.equal(others.length, 0)
  assert.deepEqual(inputsOf(run), ['one', 'two', 'something else'])
})

test('two agents side by side are two runs of one session, and stay apart', async () => {
  await using wire = await startRecordedWire(echo)
  const talk = async (agent: string) => {
    const said = [system(`You are ${agent}.`), user('slow question')]
    const answer = await ask(wire, said, { tools: TOOLS })
    await ask(wire, [...said, answer, user(`slow thanks, ${agent}`)], { tools: TOOLS })
  }
  await Promise.all([talk('A'), talk('B')])
  const runs = await runsOf(wire)
  assert.equal(runs.length, 2)
  assert.deepEqual(
    new Set(runs.map(inputsOf)),
    new Set([
      ['slow question', 'slow thanks, A'],
      ['slow question', 'slow thanks, B'],
    ]),
  )
  for (const run of runs) assert.equal(run.at(-1)?.eventType, 'SESSION_OUTCOME')
  const [main, beside] = runs
  assert.equal(beside?.[0]?.sessionId, main?.[0]?.runId)
})

test('a conversation with the prompt of a call is its run, with the parent, and ends with it', async () => {
  await using wire = await startRecordedWire(echo)
  const calls = [
    {
      id: 'call_1',
      name: 'task',
      args: '{"subagent_type":"searcher","prompt":"Look for the leak in the north wing."}',
    },
    { id: 'call_2', name: 'task', args: '{"prompt":"Look for the leak in the south wing."}' },
  ]
  const said = [system('You lead.'), user(JSON.stringify(calls))]
  const asked = await ask(wire, said, { tools: TOOLS })
  const search = (where: string) => ask(wire, [system('You search.'), user(`Look for the leak in the ${where} wing.`)])
  await Promise.all([search('south'), search('north')])
  const results = calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'none' }))
  await ask(wire, [...said, asked, ...results], { tools: TOOLS })
  const runs = await runsOf(wire)
  const [parent = []] = runs
  const children = runs.slice(1)
  assert.equal(children.length, 2)
  const handoffs = parent.filter(({ eventType }) => eventType === 'HANDOFF').map(({ payload }) => payload)
  for (const { toolCallId, runId, to } of handoffs) {
    const child = children.find(([event]) => event?.runId === runId)
    assert.equal(
      inputsOf(child ?? [])[0],
      `Look for the leak in the ${toolCallId === 'call_1' ? 'north' : 'south'} wing.`,
    )
    assert.equal(child?.[0]?.agentName, to)
    assert.equal(child?.[0]?.payload['parentRunId'], parent[0]?.runId)
    assert.deepEqual(child?.at(-1)?.payload['status'], 'COMPLETED')
  }
  assert.deepEqual(new Set(handoffs.map(({ to }) => to)), new Set(['searcher', 'task']))
  const tools = parent.filter(({ eventType }) => eventType === 'TOOL_CALL')
  assert.deepEqual(new Set(tools.map(({ payload }) => payload['toolCallId'])), new Set(['call_1', 'call_2']))
})

test('a program that shortens what was said goes on in its conversation, by the results of its calls', async () => {
  await using wire = await startRecordedWire(echo)
  const asked = await ask(wire, [user('[{"id":"call_1","name":"task","args":"{}"}]')], { tools: TOOLS })
  await ask(wire, [user('Summary of before.'), asked, { role: 'tool', tool_call_id: 'call_1', content: 'done' }], {
    tools: TOOLS,
  })
  const [run = [], ...others] = await runsOf(wire)
  assert.equal(others.length, 0)
  assert.equal(run.find(({ eventType }) => eventType === 'TOOL_CALL')?.payload['output'], 'done')
})

test('a call whose arguments were cut is no result; a failed one says so in Anthropic messages', async () => {
  let count = 0
  await using wire = await startRecordedWire((_asked, response) => {
    const content =
      count++ === 0
        ? [{ type: 'tool_use', id: 't1', name: 'task', input: { a: 1 } }]
        : [{ type: 'text', text: 'Sorry.' }]
    answerJson(response, {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'claude',
      content,
      stop_reason: 'tool_use',
      usage: { input_tokens: 1, output_tokens: 1 },
    })
  })
  const send = async (messages: unknown) => {
    const answer = await fetch(`${wire.baseOf('anthropic')}/v1/messages`, {
      method: 'POST',
      body: JSON.stringify({ model: 'claude', messages }),
    })
    return (await answer.json()) as { content: unknown }
  }
  const first = await send([user('Go')])
  const result = { type: 'tool_result', tool_use_id: 't1', is_error: true, content: 'no such file' }
  await send([user('Go'), { role: 'assistant', content: first.content }, { role: 'user', content: [result] }])
  const [run = []] = await runsOf(wire)
  const tool = run.find(({ eventType }) => eventType === 'TOOL_CALL')?.payload
  assert.equal(tool?.['outcome'], 'failed')
  assert.deepEqual(tool?.['error'], { message: 'no such file' })
  assert.deepEqual(inputsOf(run), ['Go'])
})

test('what waits behind an answer that is still read counts in the bound of all answers, and passes all the same', async () => {
  await using wire = await startRecordedWire(echo)
  const { promise, resolve } = Promise.withResolvers<void>()
  wire.recorder.ending(promise)
  const others = new AnswerShare()
  const room = 512 * 1_048_576 - 100_000
  assert.ok(others.take(room))
  const texts = [user('a small one'), user(`a large one${'x'.repeat(60_000)}`), user('a last one')]
  for (const message of texts) assert.match(String((await ask(wire, [message]))['content']), /^You said a/)
  // The bodies and pieces of these answers use up the shared memory.
  assert.equal(new AnswerShare().take(40_000), false)
  others.release()
  // The proxy has seen the end of each answer.
  await wire.proxy.close()
  resolve()
  const events = (await runsOf(wire)).flat()
  const calls = events.filter(({ eventType }) => eventType === 'LLM_CALL')
  assert.deepEqual(
    calls.map(({ payload }) => JSON.stringify(payload['output']).slice(0, 50)),
    ['a small one', 'a large one', 'a last one'].map((text) =>
      JSON.stringify({ role: 'assistant', content: `You said ${text}` }).slice(0, 50),
    ),
  )
  const all = new AnswerShare()
  assert.ok(all.take(512 * 1_048_576), 'nothing is counted any more')
  all.release()
})

test('an answer that finds no room behind an earlier one is recorded as too large', async () => {
  await using wire = await startRecordedWire(echo)
  const { promise, resolve } = Promise.withResolvers<void>()
  wire.recorder.ending(promise)
  const others = new AnswerShare()
  assert.ok(others.take(512 * 1_048_576 - 100))
  const answer = await ask(wire, [user('Hello')])
  assert.equal(answer['content'], 'You said Hello')
  others.release()
  // The proxy has seen the end of each answer.
  await wire.proxy.close()
  resolve()
  const call = (await runsOf(wire)).flat().find(({ eventType }) => eventType === 'LLM_CALL')
  assert.deepEqual(
    [call?.payload['output'], call?.payload['messages']],
    ['[too large]', [{ role: 'user', content: 'Hello' }]],
  )
})
