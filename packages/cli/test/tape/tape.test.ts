/** `tacho tape` and `tacho replay` with a real server, a scripted model and agents of their own process, in both languages. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { interpreter, PYTHON_SDK, withoutPython } from '../../../sdk-conformance/test/python.ts'
import { inTurn, startModelServer } from '../../../sdk-integrations/src/model-server.ts'
import { API_KEY, ended, runCommand, startServer, startTacho, type TestServer } from '../tacho.ts'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const AGENTS = {
  typescript: [process.execPath, here('refund-agent.ts')],
  python: [interpreter, here('refund_agent.py')],
}
const LANGUAGES = ['typescript', ...(withoutPython ? [] : (['python'] as const))] as const
const PROMPT = 'Refund order 1.'
const POLICIES = `
workspace: default
policies:
  large: { condition: tool.name == "refund" && tool.input.amount > 10.0, severity: HIGH, action: REQUIRE_APPROVAL }
environments:
  development: { policies: [large] }
`

let server: TestServer
let folder: string
let tape: string
before(async () => {
  server = await startServer()
  folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-tape-'))
  writeFileSync(path.join(folder, 'tacho.yaml'), POLICIES)
  await server.text('apply', '-f', path.join(folder, 'tacho.yaml'), '--yes')
  await recordRun()
  const { items } = await server.json<{ items: { runId: string }[] }>('runs', 'list')
  tape = path.join(folder, 'tapes', 'refund.jsonl')
  const said = await server.text('tape', String(items[0]?.runId), '-o', tape)
  assert.match(said, /with 10 steps written/)
})
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

/** A person approves one refund of two that the model wants at once. */
async function recordRun(): Promise<void> {
  const model = await startModelServer(
    inTurn(
      { toolCalls: [{ name: 'get_order', input: { order: 1 } }] },
      { toolCalls: [30, 5].map((amount) => ({ name: 'refund', input: { order: 1, amount } })) },
      { text: 'Refunded.' },
    ),
  )
  const env = { ...process.env, TACHO_URL: server.url, TACHO_API_KEY: API_KEY, OPENAI_BASE_URL: `${model.url}/v1` }
  const running = ended(spawn(process.execPath, [here('refund-agent.ts'), PROMPT], { env, stdio: 'pipe' }))
  for (let approval: { id: string } | undefined; !approval; await sleep(100)) {
    const { items } = await server.json<{ items: { id: string }[] }>('approvals', 'list')
    approval = items[0]
    if (approval) await server.text('approvals', 'approve', approval.id, '--reason', 'The customer is right.')
  }
  const { code, stderr } = await running
  assert.equal(code, 0, stderr)
  await model.close()
}

async function replay(language: (typeof LANGUAGES)[number], options: readonly string[], agent: readonly string[]) {
  const words = ['replay', tape, '--ignore', 'tool.input.requestId', ...options, '--json', '--']
  const env = { PYTHONPATH: path.join(PYTHON_SDK, 'src') }
  const result = await ended(startTacho([...words, ...AGENTS[language], PROMPT, ...agent], env))
  assert.ok(result.stdout.startsWith('{'), result.stderr)
  const { verdict, departure } = JSON.parse(result.stdout) as {
    verdict: string
    departure: { step: number; sentence: string } | null
  }
  return { code: result.code, verdict, step: departure?.step, sentence: String(departure?.sentence) }
}

test('an unchanged agent differs nowhere, in either language, and no tool runs', async () => {
  for (const language of LANGUAGES) {
    const proof = path.join(folder, `proof-${language}`)
    const { verdict, code, sentence } = await replay(language, [], ['', proof])
    assert.deepEqual([verdict, code], ['same', 0], `${language}: ${sentence}`)
    assert.equal(existsSync(proof), false, language)
  }
})

test('both languages have the same first difference: its step, and what differs', async () => {
  for (const [twist, step, expected] of [
    [
      'prompt',
      2,
      /^step 2: the tape has a call of a model, the agent asks a model with another system text: "Be brief\." is now "Be very kind\."\n {2}messages\.0\.text: the tape has "Be brief\."/,
    ],
    [
      'amount',
      7,
      /^step 7: the tape has refund \{"order":1,"amount":30\}, the agent asks refund \{"order":1,"amount":31\}\n {2}input\.amount: the tape has 30, now it is 31$/,
    ],
  ] as [string, number, RegExp][]) {
    const results = await Promise.all(LANGUAGES.map((language) => replay(language, [], [twist])))
    for (const result of results) {
      assert.deepEqual([result.verdict, result.code, result.step], ['another way', 3, step], result.sentence)
      assert.match(result.sentence, expected)
    }
    assert.deepEqual(new Set(results.map(({ sentence }) => sentence)).size, 1)
  }
})

test('with live models no guarded tool runs, whatever the model wants: a call that the tape does not have ends the replay', async () => {
  const proof = path.join(folder, 'proof-live')
  const model = await startModelServer(
    inTurn(
      { toolCalls: [{ name: 'refund', input: { order: 1, amount: 5 } }] },
      { toolCalls: [{ name: 'refund', input: { order: 2, amount: 5 } }] },
      { text: 'Refunded.' },
    ),
  )
  process.env['OPENAI_BASE_URL'] = `${model.url}/v1`
  const { verdict, sentence } = await replay('typescript', ['--mode', 'tools'], ['', proof])
  delete process.env['OPENAI_BASE_URL']
  await model.close()
  assert.equal(verdict, 'another way')
  assert.match(sentence, /the agent asks refund \{"order":2,"amount":5\}/)
  assert.equal(existsSync(proof), false)
})

test('a folder of tapes is a test suite: what is expected beside a tape, what was not fulfilled, JUnit', async () => {
  const junit = path.join(folder, 'results.xml')
  const run = async (expectations: string) => {
    writeFileSync(path.join(folder, 'tapes', 'refund.yaml'), expectations)
    const words = ['test', path.join(folder, 'tapes'), '--junit', junit, '--json', '--', ...AGENTS.typescript, PROMPT]
    const { code, stdout, stderr } = await ended(startTacho(words))
    assert.ok(stdout.startsWith('{'), stderr)
    return { code, ...(JSON.parse(stdout) as { passed: number; items: { faults: string[] }[] }) }
  }
  const ignore = 'ignore: [tool.input.requestId]\n'
  const good = await run(
    `${ignore}tools: [get_order, refund, refund]\nanswer: Refunded\ncalls: [{ tool: refund, input: { amount: 5 } }]`,
  )
  assert.deepEqual([good.code, good.passed], [0, 1], String(good.items[0]?.faults))
  assert.match(readFileSync(junit, 'utf8'), /<testsuite name="tacho test" tests="1" failures="0">/)
  const bad = await run(`${ignore}never: [refund]\noutcome: FAILED\nanswer: Sorry\nbudget: { tokens: 1, cost: 1 }`)
  assert.equal(bad.code, 1)
  assert.deepEqual(bad.items[0]?.faults, [
    'the outcome is COMPLETED, not FAILED',
    'refund was called',
    'the answer does not say "Sorry"',
    'the budget of tokens cannot hold: a call of a model has no usage',
    'the budget of cost cannot hold: a call of a model has no usage, or its model no known price',
  ])
  assert.match(
    readFileSync(junit, 'utf8'),
    /<failure message="the outcome is COMPLETED, not FAILED&#10;refund was called/,
  )
  rmSync(path.join(folder, 'tapes', 'refund.yaml'))
})

test('a program without an SDK is recorded, taped and replayed byte for byte, without its model', async () => {
  const model = await startModelServer(inTurn({ text: 'Hello.' }, { text: 'Again.' }))
  const ask = `const ask = async (content) => {
    const body = JSON.stringify({ model: 'gpt-5', stream: true, messages: [{ role: 'user', content }] })
    const reply = await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', { method: 'POST', body })
    process.stdout.write(await reply.text())
  }
  await ask('Hi'); await ask(process.argv[1])`
  const program = (content: string) => [process.execPath, '--input-type=module', '-e', ask, content]
  const variables = { ...server.variables, OPENAI_BASE_URL: `${model.url}/v1` }
  const recorded = await ended(startTacho(['record', '--agent', 'plain', '--', ...program('More')], variables))
  assert.equal(recorded.code, 0, recorded.stderr)
  await model.close()
  const { items } = await server.json<{ items: { runId: string }[] }>('runs', 'list', '--agent', 'plain')
  const runId = String(items[0]?.runId)
  assert.equal(recorded.stderr, `tacho: recorded as run ${runId}: tacho runs show ${runId}\n`)
  const file = path.join(folder, 'plain.jsonl')
  await server.text('tape', String(items[0]?.runId), '-o', file)
  const replayed = async (content: string) => ended(startTacho(['replay', file, '--json', '--', ...program(content)]))
  const same = await replayed('More')
  assert.match(same.stdout, /"verdict": ?"same"/, same.stdout)
  assert.ok(same.stderr.includes(recorded.stdout) && recorded.stdout.includes('data: [DONE]'))
  const other = await replayed('Less')
  assert.equal(other.code, 3)
  assert.match(other.stdout, /the tape has \\"More\\", now it is \\"Less\\"/)
})

test('the file has a head, and one line for each step in the order of the run', () => {
  const lines = readFileSync(tape, 'utf8').trimEnd().split('\n')
  const [head, ...steps] = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  const { policies, ...facts } = head ?? {}
  assert.partialDeepStrictEqual(facts, {
    tape: 1,
    agent: 'Refunds',
    recordedBy: 'sdk',
    outcome: 'COMPLETED',
    replayable: true,
  })
  assert.partialDeepStrictEqual(policies, [{ policyId: 'large', version: '1', action: 'REQUIRE_APPROVAL' }])
  assert.match(String((policies as { hash: string }[])[0]?.hash), /^[0-9a-f]{64}$/)
  assert.deepEqual(
    steps.map(({ kind }) => kind),
    ['input', 'model', 'tool', 'model', 'decision', 'approval', 'tool', 'tool', 'model', 'end'],
  )
  assert.equal(steps[5]?.['reason'], 'The customer is right.')
})

test('--from lets the agent go on with a live model and another name of it; --record keeps the replay as a run with its original', async () => {
  const model = await startModelServer(inTurn({ text: 'Refunded by another model.' }))
  const variables = { ...server.variables, OPENAI_BASE_URL: `${model.url}/v1` }
  const words = ['replay', tape, '--ignore', 'tool.input.requestId', '--from', '9', '--model', 'gpt-5-mini', '--record']
  const proof = path.join(folder, 'proof-from')
  const result = await ended(startTacho([...words, '--json', '--', ...AGENTS.typescript, PROMPT, '', proof], variables))
  await model.close()
  const report = JSON.parse(result.stdout) as { verdict: string; recorded: string; outcome: string }
  assert.deepEqual([report.verdict, report.outcome, result.code], ['same', 'COMPLETED', 0], result.stderr)
  assert.deepEqual(
    model.requests.map(({ body }) => body.model),
    ['gpt-5-mini'],
  )
  assert.equal(existsSync(proof), false, 'the tools were before the step')
  const run = await server.json<{ run: { metadata: Record<string, string>; tags: string[] } }>(
    'runs',
    'show',
    report.recorded,
  )
  const { run: original } = JSON.parse(readFileSync(tape, 'utf8').split('\n')[0] ?? '') as { run: string }
  assert.partialDeepStrictEqual(run.run, { metadata: { replayOf: original }, tags: ['replay'] })
})

test('two tapes of the same thing show what each run makes anew, and nothing is left with it ignored', async () => {
  const other = path.join(folder, 'other.jsonl')
  await recordRun()
  const { items } = await server.json<{ items: { runId: string }[] }>('runs', 'list', '--agent', 'Refunds')
  await server.text('tape', String(items[0]?.runId), '-o', other)
  const different = await server.tacho(['tape', 'diff', tape, other])
  assert.equal(different.code, 3)
  assert.match(
    different.stdout,
    /^step 3: input\.requestId: [^\n]*\nTo ignore them: --ignore get_order\.input\.requestId\n$/,
  )
  const same = await server.text('tape', 'diff', tape, other, '--ignore', 'get_order.input.requestId')
  assert.equal(same, 'The tapes differ nowhere.\n')
})

async function post(runId: string, events: readonly { eventType: string; payload: object }[]): Promise<void> {
  const common = { clientId: 'c', runId, agentName: 'Raw', timestamp: Date.now() }
  const body = events.map((event, at) => ({ eventId: `${runId}-${at}`, label: event.eventType, ...common, ...event }))
  const headers = { 'content-type': 'application/json', 'x-api-key': API_KEY }
  const reply = await fetch(`${server.url}/openapi/v1/events/batch`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  assert.equal(((await reply.json()) as { accepted: number }).accepted, events.length)
}

const OUTCOME = { eventType: 'SESSION_OUTCOME', payload: { status: 'COMPLETED' } }

test('nothing is written of a run that holds what masks of today would mask', async () => {
  const secret = `sk-proj-${'a1B2'.repeat(12)}`
  await post('unmasked', [
    { eventType: 'USER_INPUT', payload: { text: `My key is ${secret}, mail ada@example.org` } },
    OUTCOME,
  ])
  const file = path.join(folder, 'unmasked.jsonl')
  const { stderr } = await server.refused('tape', 'unmasked', '-o', file)
  assert.match(stderr, /^tacho: Step 1 holds what the masks of today would mask, at text\./)
  assert.ok(!stderr.includes(secret) && !existsSync(file))
  await post('mail', [{ eventType: 'USER_INPUT', payload: { text: 'Write to ada@example.org' } }, OUTCOME])
  await server.refused('tape', 'mail', '-o', file, '--mask', 'email')
  await server.text('tape', 'mail', '-o', file)
})

test('nothing is written beside a prompt or a policy that holds what masks of today would mask', async () => {
  const secret = `sk-proj-${'c3D4'.repeat(12)}`
  const manifest = (more: string) =>
    writeFileSync(path.join(folder, 'masked.yaml'), `${POLICIES.replace('policies: [large] }', `${more} }`)}`)
  const [file, applied] = [path.join(folder, 'head.jsonl'), path.join(folder, 'masked.yaml')]
  await post('head', [{ eventType: 'USER_INPUT', payload: { text: 'Hello' } }, OUTCOME])
  for (const [what, top, deployed] of [
    [
      'prompt greeting',
      `prompts: { greeting: { content: 'Use ${secret}.' } }`,
      'prompts: [greeting], policies: [large]',
    ],
    [
      'policy keyed',
      `  keyed: { condition: tool.input.key == "${secret}", severity: HIGH, action: BLOCK }`,
      'prompts: [], policies: [keyed]',
    ],
  ] as const) {
    manifest(deployed)
    const text = readFileSync(applied, 'utf8')
    writeFileSync(applied, text.replace('environments:', `${top}\nenvironments:`))
    await server.text('apply', '-f', applied, '--yes', '--prune')
    const { stderr } = await server.refused('tape', 'head', '-o', file)
    assert.match(stderr, new RegExp(`^tacho: The ${what} holds what the masks of today would mask`))
    assert.ok(!stderr.includes(secret) && !existsSync(file))
  }
  manifest('prompts: [], policies: [large]')
  await server.text('apply', '-f', applied, '--yes', '--prune')
  await server.text('tape', 'head', '-o', file)
})

test('what a replay cannot answer is said at once, with its step', async () => {
  await post('half', [
    // Ignore policies of the agent's own code, which a replay has again. Report versions that the workspace does not have.
    {
      eventType: 'LLM_CALL',
      payload: { model: 'm', policyVersions: { '../made-up': '9', own: '../1', large: '7', 'stop:none': '1' } },
    },
    { eventType: 'LLM_CALL', payload: { model: 'm', messages: [] } },
    { eventType: 'TOOL_CALL', payload: { toolName: 'bash', input: {}, output: 'x' } },
    { eventType: 'TOOL_CALL', payload: { toolName: 'cut', input: {}, output: 'x', tachoShortened: {} } },
  ])
  const { code, stdout } = await server.tacho(['tape', 'half', '-o', path.join(folder, 'half.jsonl'), '--json'])
  assert.equal(code, 3)
  assert.deepEqual((JSON.parse(stdout) as { replayable: unknown }).replayable, [
    { step: 0, why: 'version 9 of the policy ../made-up is not known' },
    { step: 0, why: 'version 7 of the policy large is not known' },
    { step: 0, why: 'version 1 of the policy stop:none is not known' },
    { step: 1, why: 'the request of the model is not recorded: metadata only' },
    { step: 2, why: 'the model call has no answer' },
    { step: 3, why: 'bash is not guarded, so a replay runs it' },
    { step: 4, why: 'the payload was shortened' },
    { step: 0, why: 'the run has not ended' },
  ])
})

test('an issue gives the run of its newest occurrence', async () => {
  const headers = { 'content-type': 'application/json', 'x-api-key': API_KEY }
  const record = {
    sdkInstanceId: 'c',
    clientRecordId: 'r1',
    recordKind: 'DETECTION',
    detectionType: 'TOOL_FAILED',
    runId: 'mail',
    agentId: 'Raw',
    detectedAt: Date.now(),
    payload: { toolName: 'send' },
  }
  await fetch(`${server.url}/openapi/v1/issue-records`, { method: 'POST', headers, body: JSON.stringify(record) })
  let issue: { id: string } | undefined
  for (; !issue; await sleep(100)) issue = (await server.json<{ items: { id: string }[] }>('issues', 'list')).items[0]
  const said = await server.text('tape', '--from-issue', issue.id, '-o', folder)
  assert.match(said, /^Tape of run mail with 2 steps written to .*mail\.jsonl\.\n/)
  // The issue lists the tape as its test, by its checksum, and only once.
  const { checksum } = JSON.parse(readFileSync(path.join(folder, 'mail.jsonl'), 'utf8').split('\n')[0] ?? '') as {
    checksum: string
  }
  await server.text('tape', '--from-issue', issue.id, '-o', path.join(folder, 'again'))
  const { activity } = await server.json<{ activity: { items: { text: string }[] } }>('issues', 'show', issue.id)
  assert.deepEqual(
    activity.items.map(({ text }) => text),
    [`A test: the tape of the run mail, checksum ${checksum}`],
  )
})

// This test comes last: with a second workspace, the commands of other tests would have to name theirs.
test('a run of another tenant is not found, and nothing of it leaks', async () => {
  const { items } = await server.json<{ items: { id: string; runId: string }[] }>(
    'runs',
    'list',
    '-e',
    'default/development',
  )
  await server.text('workspaces', 'create', 'globex')
  await server.text('environments', 'create', 'production', '--workspace', 'globex')
  const token = await server.text('tokens', 'create', '--workspace', 'globex', '--name', 'member', '--role', 'owner')
  const member = { ...server.variables, TACHO_OPERATOR_TOKEN: token.trim() }
  const output = path.join(folder, 'stolen')
  for (const name of [String(items[0]?.id), String(items[0]?.runId), String(items[0]?.runId).slice(0, 8)]) {
    for (const environment of ['globex/production', 'default/development']) {
      const { code, stdout, stderr } = await runCommand(['tape', name, '-e', environment, '-o', output], member)
      assert.deepEqual([code, stdout], [2, ''], stderr)
      assert.match(stderr, /^tacho: Unknown (run|environment) "[^"]*": `tacho [a-z]+ list` shows/)
      assert.doesNotMatch(stderr, /refund|order|Refund/)
    }
  }
  assert.equal(existsSync(output), false)
})
