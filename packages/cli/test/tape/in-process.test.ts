/** `replay(tape, agent)` of both SDKs: in the process of a test, with the cursor beside it. */
import assert, { AssertionError } from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Tacho } from '@tacho/sdk'
import { replay } from '@tacho/sdk/testing'
import { interpreter, PYTHON_SDK, withoutPython } from '../../../sdk-conformance/test/python.ts'
import { madeTape, writeTape } from './made-tape.ts'

const program = fileURLToPath(new URL('../../../../tacho', import.meta.url))
const CALLS = [
  { id: 'c1', name: 'get_order', arguments: { order: 1 } },
  { id: 'c2', name: 'refund', arguments: { order: 1, amount: 30 } },
]
const timed = (step: number) => ({ step, from: step, to: step })
const asked = (content: string) => ({ role: 'user', content })
const assistant = (...toolCalls: object[]) => ({ role: 'assistant', content: '', toolCalls })
const result = (toolCallId: string, content: string) => ({ role: 'tool', toolCallId, content })
const [FIRST, SECOND] = CALLS as [object, object]
const TURNS = [
  [asked('Refund order 1.')],
  [assistant(FIRST), result('c1', '{"paid":30}')],
  [assistant(SECOND), result('c2', '{"refunded":30}')],
]
const TAPE = madeTape(
  [
    { ...timed(1), kind: 'input', text: 'Refund order 1.' },
    { ...timed(2), kind: 'model', messages: TURNS[0], output: assistant(FIRST) },
    { ...timed(3), kind: 'tool', tool: 'get_order', input: { order: 1 }, outcome: 'returned', output: { paid: 30 } },
    { ...timed(4), kind: 'model', messages: TURNS.slice(0, 2).flat(), output: assistant(SECOND) },
    {
      ...timed(5),
      kind: 'tool',
      tool: 'refund',
      input: { order: 1, amount: 30 },
      outcome: 'returned',
      output: { refunded: 30 },
    },
    { ...timed(6), kind: 'model', messages: TURNS.flat(), output: { role: 'assistant', content: 'Refunded.' } },
    { ...timed(7), kind: 'end', status: 'COMPLETED' },
  ],
  { run: 'r1', agent: 'Refunds' },
)

let folder: string
let tape: string
before(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-in-process-'))
  tape = path.join(folder, 'refund.jsonl')
  writeTape(tape, TAPE)
  const steps = TAPE.steps.filter(({ kind }) => kind === 'input')
  writeTape(path.join(folder, 'short.jsonl'), { ...TAPE, steps })
})
after(() => rmSync(folder, { recursive: true }))

interface Message {
  role: string
  content: string | null
  tool_calls?: { id: string; function: { name: string; arguments: string } }[]
  tool_call_id?: string
}

const ran: string[] = []

/** @param twist changes what the agent does. */
async function agent(prompt: string, twist = '', tacho = new Tacho({ agentName: 'Refunds' })): Promise<string> {
  const guarded = (name: string) =>
    tacho.guard((input: object) => void ran.push(`${name} ${JSON.stringify(input)}`), { name })
  const tools = new Map(CALLS.map(({ name }) => [name, guarded(name)]))
  return tacho.run(async () => {
    const messages: Message[] = [{ role: 'user', content: twist === 'prompt' ? 'Refund order 2.' : prompt }]
    for (;;) {
      const body = JSON.stringify({ model: 'gpt-5', messages })
      const reply = await fetch(`${process.env['OPENAI_BASE_URL']}/chat/completions`, { method: 'POST', body })
      if (!reply.ok) throw new Error(await reply.text())
      const { message } = ((await reply.json()) as { choices: [{ message: Message }] }).choices[0]
      messages.push(message)
      if (!message.tool_calls) return String(message.content)
      for (const { id, function: call } of message.tool_calls) {
        const input = JSON.parse(call.arguments) as { amount?: number }
        if (twist === 'input' && input.amount) input.amount = 31
        const name = twist === 'tool' && call.name === 'get_order' ? 'refund' : call.name
        const output: unknown = await tools.get(name)?.(input)
        messages.push({ role: 'tool', tool_call_id: id, content: JSON.stringify(output) })
      }
    }
  })
}

const faultOf = async (act: () => Promise<unknown>): Promise<string> => {
  const error = await act().then(
    () => assert.fail('it passed'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof AssertionError, String(error))
  return error.message
}

const STEPS: [twist: string, expected: RegExp][] = [
  ['prompt', /step 2: [^]*the tape has "Refund order 1\.", now it is "Refund order 2\."/],
  ['input', /step 5: the tape has refund [^]*input\.amount: the tape has 30, now it is 31/],
  ['tool', /step 3: the tape has get_order \{"order":1\}, the agent asks refund \{"order":1\}/],
]

test('an agent of this process is answered by the tape, and the first difference is an AssertionError', async () => {
  const variables = { ...process.env }
  assert.equal(await replay(tape, (input) => agent(input), { program }), 'Refunded.')
  for (const [twist, expected] of STEPS)
    assert.match(await faultOf(() => replay(tape, (input) => agent(input, twist), { program })), expected)
  assert.equal(
    await replay(tape, (input) => agent(input, 'input'), { program, ignore: ['refund.input.amount'] }),
    'Refunded.',
  )
  assert.deepEqual(ran, [], 'no tool ran')
  assert.deepEqual({ ...process.env }, variables)
})

test('what could give a wrong result is an error: two at once, clients of before and after, and an agent that is not seen', async () => {
  const guard = { whenUnconfigured: 'allow', configurationWaitMs: 10 } as const
  const early = new Tacho({ apiKey: 'key', baseUrl: 'http://127.0.0.1:9', guard, onDiagnostic: () => undefined })
  const before = early.guard(() => ran.push('early'), { name: 'get_order' })
  let late = before
  await assert.rejects(
    replay(
      tape,
      async (input) => {
        await assert.rejects(
          replay(tape, () => 1, { program }),
          /A replay runs already/,
        )
        await assert.rejects(before(), /get_order was not run: make its client in the replay/)
        const tacho = new Tacho()
        late = tacho.guard(() => ran.push('late'), { name: 'get_order' })
        await agent(input, '', tacho)
        throw new RangeError('of a check')
      },
      { program },
    ),
    RangeError,
    'what the function throws',
  )
  await assert.rejects(late(), /not run: make its client in/)
  assert.deepEqual(ran, [])
  await early.shutdown(0)
  const unseen = replay(path.join(folder, 'short.jsonl'), () => 1, { program })
  assert.match(await faultOf(() => unseen), /The agent recorded nothing/)
  const missing = replay(path.join(folder, 'none.jsonl'), () => 1, { program })
  await assert.rejects(missing, /does not answer/)
  await assert.rejects(
    replay(tape, () => 1, { program: path.join(folder, 'none') }),
    /ENOENT/,
  )
  assert.equal(process.env['TACHO_REPLAY'], undefined)
})

test('pytest has the same first differences', { skip: withoutPython, timeout: 120_000 }, async () => {
  writeFileSync(path.join(folder, 'conftest.py'), 'pytest_plugins = ["tacho_sdk.testing.fixtures"]\n')
  writeFileSync(path.join(folder, 'test_replay.py'), PYTHON_TESTS)
  const env = { ...process.env, TACHO_PROGRAM: program, PYTHONPATH: path.join(PYTHON_SDK, 'src') }
  const output = await new Promise<string>((resolve) =>
    execFile(interpreter, ['-m', 'pytest', '-q', '--rootdir', '.', '.'], { cwd: folder, env }, (_, stdout) =>
      resolve(stdout),
    ),
  )
  assert.match(output, /7 passed/, output)
})

const PYTHON_TESTS = `
import asyncio, json, os, urllib.error, urllib.request
import pytest
import tacho_sdk as tacho

ran = []

@tacho.guard(name="get_order")
def get_order(order): ran.append(order)

@tacho.guard(name="refund")
def refund(order, amount=0): ran.append(order)

def agent(prompt, twist=""):
    messages = [{"role": "user", "content": "Refund order 2." if twist == "prompt" else prompt}]
    with tacho.run(agent_name="Refunds"):
        while True:
            body = json.dumps({"model": "gpt-5", "messages": messages}).encode()
            request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
            try:
                message = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
            except urllib.error.HTTPError as error:
                raise RuntimeError(error.read().decode()) from None
            messages.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            for call in message["tool_calls"]:
                given = json.loads(call["function"]["arguments"])
                if twist == "input" and "amount" in given:
                    given["amount"] = 31
                tool = refund if twist == "tool" or "amount" in given else get_order
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(tool(**given))})

def test_unchanged(replay_tape):
    assert replay_tape("refund.jsonl", agent) == "Refunded."
    assert replay_tape("refund.jsonl", lambda text: agent(text, "input"), ignore=["refund.input.amount"]) == "Refunded."
    assert ran == [] and "TACHO_REPLAY" not in os.environ

def test_async(replay_tape):
    async def run(text):
        return await asyncio.to_thread(agent, text)
    assert asyncio.run(replay_tape("refund.jsonl", run)) == "Refunded."

@pytest.mark.parametrize(("twist", "expected"), [
    ("prompt", 'step 2: .*\\n.*the tape has "Refund order 1.", now it is "Refund order 2."'),
    ("input", 'step 5: the tape has refund .*\\n.*input.amount: the tape has 30, now it is 31'),
    ("tool", 'step 3: the tape has get_order {"order":1}, the agent asks refund {"order":1,"amount":0}'),
])
def test_changed(replay_tape, twist, expected):
    with pytest.raises(AssertionError, match=expected):
        replay_tape("refund.jsonl", lambda text: agent(text, twist))
    assert ran == []

def test_other_clients(replay_tape):
    guard = tacho.GuardDefaults(when_unconfigured="allow", configuration_wait=0.01)
    early = tacho.Tacho(api_key="key", base_url="http://127.0.0.1:9", guard=guard, on_diagnostic=lambda said: None)
    before = early.guard(name="get_order")(lambda order: ran.append(order))
    clients = []
    def act(text):
        with pytest.raises(RuntimeError, match="A replay runs already"):
            replay_tape("refund.jsonl", agent)
        with pytest.raises(Exception, match="make its client in the replay"):
            before(order=1)
        clients.append(tacho.Tacho())
        agent(text)
        raise KeyError("of a check")
    with pytest.raises(KeyError):
        replay_tape("refund.jsonl", act)
    with pytest.raises(Exception, match="was not run"):
        clients[0].guard(name="get_order")(lambda order: ran.append(order))(order=1)
    assert ran == []
    early.shutdown(0)

def test_not_seen(replay_tape):
    with pytest.raises(AssertionError, match="The agent recorded nothing"):
        replay_tape("short.jsonl", lambda text: None)
`
